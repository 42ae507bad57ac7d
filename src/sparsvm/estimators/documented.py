"""Estimators know the page of the documentation that is about them."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

SITE = "https://sparsvm.github.io/sparsvm"


def _page(estimator: Any) -> dict[str, str]:
    """Return the public name under which the API lists the class."""
    kind = type(estimator)
    room = kind.__module__.split(".")[1]
    return {"name": kind.__name__ if room == "estimators" else f"{room}.{kind.__name__}"}


class Documented(BaseEstimator):
    """Let the HTML representation link to the estimator's page, as scikit-learn's own do."""

    _doc_link_module = "sparsvm"
    _doc_link_template = f"{SITE}/api/sparsvm.{{name}}.html"
    _doc_link_url_param_generator = _page
