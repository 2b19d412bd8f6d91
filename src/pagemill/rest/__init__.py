"""The REST server: durable jobs, results page by page, limits, and access control."""
