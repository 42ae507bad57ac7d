"""A real browser for the tests of pages."""

import shutil

import pytest


@pytest.fixture(scope="session")
def chromium():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # A container has no sandbox of its own, no graphics card and little shared memory; and nothing
    # that a page asks of the network is answered.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    page = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield page
    page.quit()


@pytest.fixture
def show(chromium):
    """Open a page in a window of some width, and wait until its pictures are drawn."""

    def opened(path, width=1200, dark=False):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        # Without motion, a click waits for no scrolling.
        wishes = {"color-scheme": "dark" if dark else "light", "reduced-motion": "reduce"}
        features = [{"name": f"prefers-{name}", "value": wish} for name, wish in wishes.items()]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        chromium.get_log("browser")  # what earlier pages left
        chromium.get(path.resolve().as_uri())
        chromium.set_script_timeout(60)
        chromium.execute_async_script(
            "const done = arguments[0], root = document.documentElement;"
            "const look = () => root.dataset.ready ? done() : setTimeout(look, 50);"
            "look();"
        )
        return chromium

    return opened
