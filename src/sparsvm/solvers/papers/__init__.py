"""The algorithms of the papers, as references: plain, faithful, certified."""
