"""The comparison behind ``make demo``."""
