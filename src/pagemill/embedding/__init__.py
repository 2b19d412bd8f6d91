"""Vectors of pages, regions and queries: engines that make them, files that keep them and bind each row to its page."""
