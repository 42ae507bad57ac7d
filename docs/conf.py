"""How Sphinx makes the site: `make docs`, without network, every warning an error."""

from __future__ import annotations

import os
from pathlib import Path

import sparsvm

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
autodoc_typehints = "none"  # numpydoc's sections say them in words
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "doc_module": ("sparsvm",),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "sparsvm"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 4,
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without pages below them have nothing to show at the left.
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}
del html_sidebars["api"]
html_show_sourcelink = False


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn and the standard library document themselves."""
    origin = getattr(obj, "__module__", None) or ""
    return True if callable(obj) and not origin.startswith("sparsvm") else skip


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
