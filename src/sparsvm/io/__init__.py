"""Fitted models in files."""

from sparsvm.io.model_files import load_model, read_metadata, save_model

__all__ = ["load_model", "read_metadata", "save_model"]
