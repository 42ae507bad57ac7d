"""What running a solver takes: options, threads, progress, the best point so far."""
