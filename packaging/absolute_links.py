"""Make the links of the README absolute: the package index shows it where there are no files.

Pages of the documentation are linked on the published site, other files in the repository.

A release runs it in its own checkout, before it builds.
"""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
REPOSITORY = "https://github.com/sparsvm/sparsvm"
SITE = "https://sparsvm.github.io/sparsvm"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")
PAGE = re.compile(r"docs/(.+)\.md(#.*)?")


def absolute(text: str) -> str:
    """Return Markdown whose links to files lead to the repository."""

    def link(found: re.Match[str]) -> str:
        image, words, path = found.groups()
        if page := PAGE.fullmatch(path):
            return f"[{words}]({SITE}/{page[1]}.html{page[2] or ''})"
        kind = "raw" if image or path.endswith((".png", ".svg")) else "blob"
        return f"{image}[{words}]({REPOSITORY}/{kind}/main/{path})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text("utf-8")), "utf-8")
