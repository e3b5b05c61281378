"""`make bench`: speed and memory of the whole console, each beside a baseline of the same run."""
