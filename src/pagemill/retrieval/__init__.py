"""A search index over the pages of a run, and hybrid search in it."""
