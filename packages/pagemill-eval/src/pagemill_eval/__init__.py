"""Metrics, benchmarks and their scorers: what ``pagemill eval`` measures."""
