"""Markdown, DocJSON, text for embedding and the HTML report."""
