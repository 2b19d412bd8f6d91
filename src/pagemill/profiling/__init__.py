"""Profiles of runs: where their time goes, what holds them up, and what would be gained without it."""
