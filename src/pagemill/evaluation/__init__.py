"""Retrieval metrics, and sets of queries."""
