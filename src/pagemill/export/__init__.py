"""Markdown, DocJSON, HTML, Parquet, CSV, text for embedding and the HTML report."""
