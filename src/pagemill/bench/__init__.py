"""Benchmarks that run from an installation: functions that return rows; nothing else of pagemill imports them."""
