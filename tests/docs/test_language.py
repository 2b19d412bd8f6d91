"""The documentation says things in the standard terms."""

import re

from markdown_pages import PAGES, ROOT, name

AVOIDED = {
    r"sittings?": "invocation, process",
    r"mend(s|ed|ing)?": "repair",
    r"pass(es|ed|ing)? over": "skip",
    r"keepers?": "watchdog",
    r"corridors?": "gutter",
    r"under way": "in flight",
    r"(come|comes|came) to (an|its|their) end": "finish, complete",
    r"(is|are|was|were) told": "be reported",
    r"lone retry": "isolated retry",
    r"misfortunes?": "failure",
    r"anew": "again",
    r"stands? where": "be at",
    r"for want of": "without, as there is no",
    r"bears": "hold, take",
    r"(wherever|where) (it|they) lies?": "is stored",
}
"""Turns of phrase, and what to write instead."""


ANY = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)


def avoided_in(prose):
    return {said for said, *_ in ANY.findall(prose)}


def test_pages_use_standard_terms():
    pages = {name(page): page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "CHANGELOG.md")}
    found = {
        page: avoided_in(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)) for page, text in pages.items()
    }
    assert {page: terms for page, terms in found.items() if terms} == {}


def test_messages_docstrings_and_comments_use_standard_terms():
    modules = [*(ROOT / "src").rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")]
    found = {module.name: avoided_in(module.read_text(encoding="utf-8")) for module in modules}
    assert {name: terms for name, terms in found.items() if terms} == {}
