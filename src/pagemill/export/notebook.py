"""HTML and Markdown of documents, pages and regions for notebooks.

The text of a document is escaped, as in the HTML export; there are no scripts, styles or ids, and nothing is loaded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

import msgspec

from pagemill.document.page import PageResult, Region
from pagemill.document.shown import count
from pagemill.export.html import fragment
from pagemill.export.markdown import page_markdown, region_markdown

MAX_PAGES = 20
"""Pages of a document that are shown: a notebook keeps what it shows. Not measured."""
MAX_PICTURES = 4_000_000
"""Bytes of pictures that are shown, for the same reason. Not measured."""
_ID = re.compile(r' id="[^"]*"')
"""Prefix that keeps our elements apart from those of the notebook."""


def html_of(shown: PageResult | Region) -> str:
    """HTML of a page, without its pictures, or of a region."""
    if isinstance(shown, PageResult):
        return pages_html([shown])
    if not shown.content:
        return f"<div>{escape(repr(shown))}</div>"
    # Alone on a page of its own: its relations to other regions lead nowhere.
    alone = msgspec.structs.replace(shown, index=0, caption_of=None, furniture=None)
    page = PageResult(page_id="", page_idx=0, page_number=None, doc_id="", source="", regions=[alone])
    return pages_html([page])


def markdown_of(shown: PageResult | Region) -> str:
    """Markdown of a page, without its pictures, or of a region."""
    if isinstance(shown, PageResult):
        return page_markdown(msgspec.structs.replace(shown, image_crops=[]))
    return region_markdown(shown)


def pages_html(pages: Sequence[PageResult], crops: Mapping[str, bytes] | None = None) -> str:
    """HTML of one document's pages, with pictures inlined where their bytes are given."""
    pictures: dict[str, bytes] = {}
    room = MAX_PICTURES
    for path, data in (crops or {}).items():
        # Smaller pictures may still fit after one that does not.
        if len(data) <= room:
            pictures[path] = data
            room -= len(data)
    shown = [
        msgspec.structs.replace(page, image_crops=[crop for crop in page.image_crops if crop.path in pictures])
        for page in pages[:MAX_PAGES]
    ]
    body = _ID.sub("", "".join(fragment(shown)))
    for path, data in pictures.items():
        body = body.replace(f'src="{quote(path)}"', f'src="data:image/jpeg;base64,{base64.b64encode(data).decode()}"')
    more = len(pages) - MAX_PAGES
    note = f"<p><em>and {count(more, 'more page')}</em></p>" if more > 0 else ""
    # Notebooks would typeset dollar signs of the text as formulas.
    return f'<div class="tex2jax_ignore mathjax_ignore">{body}{note}</div>'
