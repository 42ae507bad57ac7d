"""Open every page of the built site in headless Chromium, as wide as a desk and as a phone.

``make check-docs`` ends with an error where a page warns in the console, is wider than the
window, has a picture that is missing or has no alternative text, links to nothing, or cuts off a
formula on a desk; and where the search finds nothing.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selenium import webdriver

DESK, PHONE = 1280, 390
SITE = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs").resolve()
LOOK = """
const width = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > width) found.push("is wider than the window");
for (const i of document.images) {
  if (i.loading !== "lazy" && i.complete && !i.naturalWidth) found.push("lacks " + i.src);
  if (!i.alt.trim()) found.push("has no words for " + i.src);
}
if (width >= 1000) for (const e of document.querySelectorAll("article mjx-container[display]"))
  if (e.scrollWidth > e.clientWidth + 2) found.push("cuts off " + e.textContent.slice(0, 40));
return found;"""
LINKS = 'return [...document.querySelectorAll("a[href]")].map(a => a.href)'
NAMES = 'return [...document.querySelectorAll("[id]")].map(e => e.id)'
# Formulas are set after the page has loaded.
SET = 'return !document.querySelector("div.math") || !!document.querySelector("mjx-container")'
RESULTS = 'return document.querySelectorAll("#search-results li").length'


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""


def browser(width):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = shutil.which("chromedriver")
    service = webdriver.ChromeService(driver) if driver else None
    found = webdriver.Chrome(options=options, service=service)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    found.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return found


def wait(driver, script):
    """Return what the script returns once that is true, or after ten seconds."""
    end = time.monotonic() + 10.0
    while not (value := driver.execute_script(script)) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def look(address, pages, width):
    """Return what is wrong, and the links and names of every page."""
    wrong, links, names = [], {}, {}
    driver = browser(width)
    for page in pages:
        driver.get(address + page)
        wait(driver, SET)
        wrong += [f"{page} at {width}: {what}" for what in driver.execute_script(LOOK)]
        logged = [entry for entry in driver.get_log("browser") if entry["level"] != "INFO"]
        wrong += [f"{page} at {width}: {entry['message']}" for entry in logged]
        links[page] = set(driver.execute_script(LINKS))
        names[page] = set(driver.execute_script(NAMES))
    driver.get(f"{address}search.html?q=certificate")
    if not wait(driver, RESULTS):
        wrong.append(f"The search finds nothing at {width}.")
    driver.quit()
    return wrong, links, names


def broken(address, links, names):
    for page, targets in links.items():
        for target in sorted(target for target in targets if target.startswith(address)):
            path = unquote(urlsplit(target).path)[1:] or "index.html"
            name = unquote(urlsplit(target).fragment)
            if not (SITE / path).is_file() or (name and name not in names.get(path, {name})):
                yield f"{page} links to {path}#{name}"


def main() -> None:
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    paths = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    pages = sorted(path.as_posix() for path in paths if path.parts[0] != "_static")
    wrong = look(address, pages, PHONE)[0]
    more, links, names = look(address, pages, DESK)
    wrong += [*more, *broken(address, links, names)]
    print("\n".join([*wrong, f"{len(pages)} pages at two widths, {len(wrong)} complaints"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
