"""Many machines: the pages of a run on a Ray cluster."""
