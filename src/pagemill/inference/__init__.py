"""Requests to model servers: pooled HTTP, balancing, limits, retries."""
