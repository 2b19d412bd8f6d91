"""Time limits of computation, in CPU time of threads and processes."""
