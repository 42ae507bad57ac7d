"""A page about a fitted model, to read and to pass on."""

from sparsvm.reporting.report import report

__all__ = ["report"]
