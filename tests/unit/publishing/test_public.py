import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.page import PageError, PageResult
from pagemill.publishing.public import public_page, public_source, public_text, public_values


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/home/miller/my scans/a b.pdf", "a b.pdf"),
        ("scans/a.pdf", "a.pdf"),
        ("a.pdf", "a.pdf"),
        ("C:\\Users\\miller\\a.pdf", "a.pdf"),
        ("file:///home/miller/a.pdf", "a.pdf"),
        ("https://miller:secret@mill.example/in/a.pdf?X-Signature=secret#p", "https://mill.example/in/a.pdf"),
        ("hf://datasets/mills/pages/a.parquet", "hf://datasets/mills/pages/a.parquet"),
        ("s3://bucket/a.pdf", "s3://bucket/a.pdf"),
        ("http://[secret/a.pdf", "a.pdf"),
    ],
)
def test_sources(source, shown):
    assert public_source(source) == shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/home/miller/my scans/a.pdf is not a PDF", "a.pdf is not a PDF"),
        ("see '/home/miller/my scans/b.pdf'", "see 'b.pdf'"),
        ("cannot write /data/out/crops/x.png: full", "cannot write x.png: full"),
        ("C:\\data\\x.png is gone", "x.png is gone"),
        ("http://miller:secret@10.0.0.1:8000/v1 does not answer", "(address) does not answer"),
        ("and/or, 3/4 of 200 dpi", "and/or, 3/4 of 200 dpi"),
    ],
)
def test_messages(message, shown):
    assert public_text(message, "/home/miller/my scans/a.pdf") == shown


@given(st.text(max_size=30))
def test_any_text_is_taken(text):
    public_text(text, text)
    public_source(text)
    public_values(text)


def test_a_hostile_text_is_read_in_linear_time():
    """Else this takes hours."""
    for unit in ("/", "a://", "//a", "a" * 20, "~/", "\\\\", "file:/"):
        public_text(unit * (200_000 // len(unit)))


def test_settings():
    values = {"served_model": "/models/glm", "servers": ["http://u:p@h:1/v1?key=1"], "model": "zai-org/GLM-OCR", "n": 1}
    assert public_values(values) == {
        "served_model": "glm",
        "servers": ["http://h:1/v1"],
        "model": "zai-org/GLM-OCR",
        "n": 1,
    }


def test_a_record():
    error = PageError(
        component="source", category="corrupt", message="/in/a.pdf is damaged", remedy="Look at /in/a.pdf"
    )
    page = PageResult(page_id="a_1", page_idx=0, doc_id="a", source="/in/a.pdf", page_number=1, errors=[error])
    shown = public_page(page)
    assert shown.source == "a.pdf"
    assert (shown.errors[0].message, shown.errors[0].remedy) == ("a.pdf is damaged", "Look at a.pdf")
    assert page.source == "/in/a.pdf"
