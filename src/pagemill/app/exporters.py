"""Connects the files of a run directory (``store``) with their formats (``export``)."""

from __future__ import annotations

from pagemill.export.docjson import document_json
from pagemill.export.embedding_text import embedding_text
from pagemill.export.markdown import document_markdown
from pagemill.export.report import report_html
from pagemill.store.derived import Exporters


def default_exporters(report: bool = True) -> Exporters:
    """Markdown, DocJSON, text for embedding, and the report unless ``report`` is off."""
    return Exporters(
        embedding_text=embedding_text,
        document_markdown=document_markdown,
        document_json=document_json,
        report=report_html if report else None,
    )
