"""Profiles of runs: time by stage, the bottleneck, and the possible gain."""
