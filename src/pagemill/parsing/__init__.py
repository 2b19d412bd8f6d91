"""One page: what happens to it from pixels to record."""
