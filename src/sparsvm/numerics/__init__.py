"""Arrays by blocks of rows, columns in use, sparse formats and cone programs."""
