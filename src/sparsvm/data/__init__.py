"""From what the user has to a training set."""
