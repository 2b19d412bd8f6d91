"""Scorers: character error rate, TEDS, reading order."""
