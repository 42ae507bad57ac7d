"""The problem to solve, points of it, and problems derived from it."""
