"""The REST server: jobs that survive its end, results page by page, limits, and who may do what."""
