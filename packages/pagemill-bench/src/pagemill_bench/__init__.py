"""Measurements of ``pagemill bench`` and ``pagemill profile``, and tools for tests of engines."""
