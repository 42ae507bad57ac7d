"""How Sphinx makes the site: `make docs`, without network, every warning an error."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import sparsvm

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

# One thread, so that the examples take the same time everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "sparsvm"
author = "The sparsvm developers"
copyright = author
version = release = sparsvm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["gallery/*.py.md5", "gallery/*.ipynb"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections say them in words
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_figures.Telling",
    "abort_on_example_error": True,
    "image_scrapers": ("gallery_figures.described",),
    "reset_modules": ("matplotlib", "seaborn", "gallery_figures.safe_colours"),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "doc_module": ("sparsvm",),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "sparsvm"
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without pages below them have nothing to show at the left.
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}
del html_sidebars["api"]
html_show_sourcelink = False


ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+://|#)([^)\s]+)\)")


def copy_pages(source, target, pages):
    """Copy pages that lie outside of docs, with their pictures, and list them.

    Links to what is not part of the site, such as scripts, become the names of the files.
    """
    shutil.rmtree(target, ignore_errors=True)
    copied = {page.resolve() for page in pages}
    for page in pages:

        def link(match, folder=page.parent):
            text, name = match.groups()
            there = (folder / name.partition("#")[0]).resolve()
            if there in copied or there.suffix in (".png", ".svg"):
                return match.group(0)
            path = f"`{os.path.relpath(there, ROOT)}`"
            return path if text.strip("`") in path else f"{text} ({path})"

        place = target / page.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LINK.sub(link, page.read_text("utf-8")), "utf-8")
    for picture in {p for page in pages for p in page.parent.glob("*.png")}:
        shutil.copy(picture, target / picture.relative_to(source))


def outside_pages(app):
    """Make the measurements and the repetitions of the papers part of the site."""
    docs = Path(app.srcdir)
    for room in ("experiments", "benchmarks"):
        source = ROOT / room
        pages = [source / "README.md", *sorted(source.glob("results/*.md"))]
        copy_pages(source, docs / "measured" / room, pages)
        contents = "\n\n```{toctree}\n:hidden:\n:glob:\n\nresults/*\n```\n"
        with (docs / "measured" / room / "README.md").open("a", encoding="utf-8") as readme:
            readme.write(contents)


THUMBNAIL = re.compile(r"(:alt:)\n(.*?thumbnail-title\">([^<]*)<)", re.DOTALL)


def describe_thumbnails(app, page, source):
    """Give the thumbnails of the gallery the titles of their examples as alternative texts."""
    if page == "gallery/index":
        source[0] = THUMBNAIL.sub(r"\1 \3\n\2", source[0])


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn and the standard library document themselves."""
    origin = getattr(obj, "__module__", None) or ""
    return True if callable(obj) and not origin.startswith("sparsvm") else skip


def setup(app):
    app.connect("builder-inited", outside_pages)
    app.connect("source-read", describe_thumbnails)
    app.connect("autodoc-skip-member", skip_member)
