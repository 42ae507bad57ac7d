"""The page itself: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import gzip
from functools import lru_cache
from importlib.resources import files
from typing import Any


def render(values: dict[str, Any]) -> str:
    """Return the page; every value is escaped, whatever the names of features hold."""
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(_missing("Jinja2")) from error
    environment = Environment(autoescape=True, trim_blocks=False)
    own = {"css": Markup(_text("page.css")), "js": Markup(_text("page.js")), "plotly": _plotly()}
    return environment.from_string(_text("page.html")).render(**own, **values)


def _text(name: str) -> str:
    return files("sparsvm.reporting").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _plotly() -> str:
    """Return plotly.js, compressed to 1.9 MB of text; the package has only its whole 4.8 MB.

    Browsers since 2023 unpack it by themselves (``DecompressionStream``).
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(_missing("plotly")) from error
    packed = gzip.compress(get_plotlyjs().encode(), mtime=0)
    return base64.b64encode(packed).decode("ascii")


def _missing(package: str) -> str:
    return f'A report needs {package}, which is not installed: pip install "sparsvm[report]".'
