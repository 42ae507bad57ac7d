"""Regularisation paths, and the alpha where they begin."""
