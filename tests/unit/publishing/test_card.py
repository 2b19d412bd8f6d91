from datetime import UTC, datetime

import pytest

from pagemill.publishing.card import dataset_card
from pagemill.publishing.options import BuildOptions, Shape
from pagemill.store.summary import RunSummary

yaml = pytest.importorskip("yaml")


def card(**fields):
    summary = RunSummary(started=datetime(2026, 1, 1, tzinfo=UTC), **fields.pop("summary", {}))
    facts = {"page_images": False, "vectors": {}, "languages": {}, "summary": summary, "pages": 3}
    facts |= {name: fields.pop(name) for name in set(facts) & set(fields)}
    options = {"title": "Mills", "licence": "cc0-1.0", "repository": "me/mills", **fields}
    return dataset_card(BuildOptions(**options), **facts)


def metadata(text):
    _, head, _ = text.split("---\n", 2)
    return yaml.safe_load(head)


@pytest.mark.parametrize(
    "title",
    [
        "no",
        "a: b # c",
        'quote " and \\',
        "line\nbreak\n---\nlicense: mit",
        "\x7f\x85\u2028del",
        "물레 ⚙",
        "\udcff",
        "{[&*!%@`",
    ],
)
def test_any_title_is_a_title(title):
    text = card(title=title)
    found = metadata(text)
    assert found["license"] == "cc0-1.0"
    assert isinstance(found["pretty_name"], str)
    assert text.encode("utf-8")


def test_names_in_counts_are_no_markup():
    kinds = {"<img src=x onerror=alert(1)> | [a](b)": 1}
    text = card(title="<script>", summary={"failures_by_kind": kinds}, languages={"`x` | <b>": 1})
    body = text.split("---\n", 2)[2]
    for markup in ("<img", "<script", "<b", "[a"):
        assert markup not in body.replace(f"\\{markup}", "")


def test_languages_are_codes_that_the_hub_knows():
    assert metadata(card(languages={"ko": 2, "und-Latn": 1, "en": 1}))["language"] == ["en", "ko", "und"]
    assert metadata(card(languages={"ko": 2, "und": 1}))["language"] == ["ko", "und"]
    assert metadata(card(languages={"ko": 2, "en": 1}))["language"] == ["en", "ko"]
    assert "language" not in metadata(card(languages={"und-Latn": 1}))


def test_what_load_dataset_reads():
    assert metadata(card())["configs"][0]["data_files"][0]["path"] == "data/train-*.parquet"
    assert metadata(card(shape=Shape.FILES))["configs"][0]["data_files"][0]["path"] == "parsed_texts.jsonl"


def test_columns_that_are_left_out_are_not_told():
    assert "`image`" not in card()
    assert "`image`" in card(page_images=True)
    assert "crop_images" not in card(crops=False)


def test_names_of_files_are_shown_without_code_spans_and_settings_that_nobody_chose_as_default():
    # In a code span the backslash that keeps an underscore plain would be shown.
    text = card(vectors={"corpus_ocr_text.npy": 0}, summary={"identity": {"layout_model": None, "crops": True}})
    assert "\n- corpus\\_ocr\\_text.npy\n" in text
    assert "| layout\\_model | default |" in text
    assert "| crops | true |" in text
