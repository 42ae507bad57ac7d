"""Fitted models in files and as ONNX."""

from sparsvm.io.model_files import load_model, read_metadata, save_model
from sparsvm.io.onnx_export import register_converters, to_onnx

__all__ = ["load_model", "read_metadata", "register_converters", "save_model", "to_onnx"]
