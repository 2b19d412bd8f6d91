"""Many pages at once: flight control, microbatching, decoding processes."""
