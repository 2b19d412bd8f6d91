"""Links of the pages outside of the site; those within it are checked by ``mkdocs build --strict``."""

import re

from markdown_pages import PAGES, ROOT, name


def test_relative_links_lead_to_files():
    broken = []
    for page in (*PAGES, ROOT / "CHANGELOG.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        broken += [(name(page), link) for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []
