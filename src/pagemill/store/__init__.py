"""A run directory: records, texts, crops, documents, the report."""
