"""How far a point is from the optimum, proven on all the data."""
