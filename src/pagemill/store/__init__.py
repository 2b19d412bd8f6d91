"""A run directory: records, crops, documents."""
