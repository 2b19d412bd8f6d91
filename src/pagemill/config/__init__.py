"""Settings of a run, typed."""
