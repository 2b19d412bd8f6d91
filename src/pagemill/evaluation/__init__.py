"""Scorers: character error rate, TEDS, retrieval; sets of queries."""
