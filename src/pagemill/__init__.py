"""pagemill: documents in, structured and searchable pages out."""

__version__ = "0.1.0"
