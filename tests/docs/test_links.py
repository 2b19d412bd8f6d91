"""Links of the pages outside of the site; those within it are checked by ``mkdocs build --strict``."""

from __future__ import annotations

import re

import pytest
from markdown_pages import PAGES, ROOT, name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_relative_links_lead_to_files(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
