"""The problems of the benchmark and the programs that the baselines solve."""
