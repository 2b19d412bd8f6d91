import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import TABLE, page, region, sample_pages
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

import pagemill
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Description, Furniture, PageResult, TextLine
from pagemill.errors import InputError, UsageError
from pagemill.export.chunks import Chunk, cut
from pagemill.export.token_count import estimated_tokens, token_counter


def chunked(*regions: Any, **options: Any) -> list[Chunk]:
    return list(pagemill.chunks([page("mill", 1, regions)], **options))


def texts(*regions: Any, **options: Any) -> list[str]:
    return [chunk.text for chunk in chunked(*regions, **options)]


def sentence(number: int) -> str:
    return f"Sentence {number} of the mill is here."


def test_a_section_is_a_chunk_that_knows_the_headings_above_it():
    found = chunked(
        region(0, Label.DOC_TITLE, "Mills", level=1),
        region(1, Label.PARAGRAPH_TITLE, "1 Wheels", level=2),
        region(2, Label.TEXT, "They turn."),
        region(3, Label.PARAGRAPH_TITLE, "2 Vats", level=2),
        region(4, Label.TEXT, "They hold."),
        region(5, Label.TEXT, "They leak."),
    )
    assert [(chunk.text, chunk.headings) for chunk in found] == [
        ("Mills\n\n1 Wheels\n\nThey turn.", ("Mills", "1 Wheels")),
        ("2 Vats\n\nThey hold.\n\nThey leak.", ("Mills", "2 Vats")),
    ]
    assert found[1].contextualized == "Mills\n2 Vats\n\nThey hold.\n\nThey leak."
    assert [place.element for place in found[1].places] == ["mill_1/3", "mill_1/4", "mill_1/5"]


def test_the_rest_of_a_section_has_its_heading_in_the_context():
    words = " ".join(map(sentence, range(20)))
    first, *_, last = chunked(
        region(0, Label.PARAGRAPH_TITLE, "Wheels", level=2), region(1, Label.TEXT, words), max_tokens=50
    )
    assert first.text.startswith("Wheels\n\nSentence 0")
    assert last.contextualized == f"Wheels\n{last.text}" and last.headings == ("Wheels",)


def test_furniture_is_left_out_and_footnotes_are_not():
    assert texts(
        region(0, Label.HEADER, "Annual report", furniture=Furniture.PROVEN),
        region(1, Label.TEXT, "They turn."),
        region(2, Label.FOOTNOTE, "1 Slowly."),
        region(3, Label.NUMBER, "12", furniture=Furniture.PROVEN),
    ) == ["They turn.\n\n1 Slowly."]


def test_cuts_are_between_sentences():
    words = " ".join(map(sentence, range(30)))
    found = texts(region(0, Label.TEXT, words), max_tokens=40)
    assert len(found) > 5 and all(re.fullmatch(r"(Sentence \d+ of the mill is here\. ?)+", text) for text in found)


def test_a_sentence_that_is_too_long_is_cut_between_words_and_a_word_anywhere():
    found = texts(region(0, Label.TEXT, "mill wheel " * 100 + "x" * 1000), max_tokens=32)
    assert all(estimated_tokens(text) <= 32 for text in found)
    assert re.fullmatch("(mill wheel ?)+", found[0])
    assert "".join("".join(found).split()) == "millwheel" * 100 + "x" * 1000


def rows(count: int) -> str:
    body = "".join(f"<tr><td>vat {number}</td><td>{number} kg</td></tr>" for number in range(count))
    return f"<table><thead><tr><th>Vat</th><th>Weight</th></tr></thead><tbody>{body}</tbody></table>"


def test_a_table_is_cut_between_rows_and_repeats_its_head_and_caption():
    found = texts(
        region(0, Label.FIGURE_TITLE, "Table 1: Weights", caption_of=1),
        region(1, Label.TABLE, rows(30), content_format=ContentFormat.HTML),
        max_tokens=60,
    )
    assert len(found) == 3
    assert all(text.startswith("Table 1: Weights\nVat | Weight\nvat ") for text in found)
    assert [line for text in found for line in text.split("\n")[2:]] == [f"vat {n} | {n} kg" for n in range(30)]


def test_a_cell_over_several_rows_is_in_each_of_them():
    html = '<table><tr><td rowspan="2">oak</td><td>1</td></tr><tr><td>2</td></tr></table>'
    assert texts(region(0, Label.TABLE, html, content_format=ContentFormat.HTML)) == ["oak | 1\noak | 2"]


def test_a_figure_comes_with_its_caption_description_and_lettering():
    said = Description(summary="Losses by step.", keywords=("loss", "mill"), chart=(("step", "kg"), ("washing", "9")))
    (chunk,) = chunked(
        region(0, Label.CHART, "kg 0 5 10", description=said),
        region(1, Label.FIGURE_TITLE, "Figure 1: Loss", caption_of=0),
    )
    assert chunk.text == "Figure 1: Loss\nLosses by step.\nloss, mill\nstep | kg\nwashing | 9\nkg 0 5 10"
    assert [place.element for place in chunk.places] == ["mill_1/1", "mill_1/0"]


def test_overlap_repeats_whole_sentences_of_the_section():
    words = " ".join(map(sentence, range(20)))
    plain = texts(region(0, Label.TEXT, words), max_tokens=60)
    found = texts(region(0, Label.TEXT, words), max_tokens=60, overlap=15)
    for before, after in pairwise(found):
        assert after.split(". ")[0].rstrip(".") == before.rstrip(".").split(". ")[-1]
    assert sum(map(len, found)) > sum(map(len, plain))


def test_paragraphs_over_a_page_break_are_one_and_cite_both_pages():
    first, *_ = pagemill.chunks(sample_pages()[:2])
    assert "the wheel turns the beater, day and night." in first.text
    assert first.pages == (1, 2)


def test_boxes_are_those_of_the_lines_that_a_chunk_holds():
    lines = tuple(
        TextLine(text=sentence(number), box=(0.0, 100.0 * number, 90.0, 100.0 * number + 10)) for number in range(10)
    )
    words = " ".join(map(sentence, range(10)))
    found = chunked(region(0, Label.TEXT, words, lines=lines), max_tokens=40)
    boxes = [chunk.places[0].bbox_2d for chunk in found]
    assert boxes[0][1] == 0 and boxes[-1][3] == round(910 / 1400 * 1000)
    assert all(before[3] < after[1] for before, after in pairwise(boxes))


def test_ids_are_stable_and_unique():
    regions = [region(0, Label.TEXT, "Same.")]
    pages = [page("mill", 1, regions), page("mill", 2, [region(0, Label.PARAGRAPH_TITLE, "A"), region(1, Label.TEXT)])]
    twice = [chunk.id for chunk in pagemill.chunks([*pages, *pages])]
    assert len(set(twice)) == len(twice)
    assert [chunk.id for chunk in pagemill.chunks(pages)] == [chunk.id for chunk in pagemill.chunks(pages)]
    assert next(iter(pagemill.chunks([page("other", 1, regions)]))).id not in twice


def test_a_tokenizer_counts_with_what_it_puts_around_a_text(tmp_path: Path):
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = token_counter(tmp_path / "tokenizer.json")
    assert count("one two three four five six") == 7
    found = chunked(region(0, Label.TEXT, "word " * 100), max_tokens=33, tokenizer=tmp_path / "tokenizer.json")
    assert [chunk.tokens for chunk in found] == [33, 33, 33, 5]


def test_what_is_no_tokenizer_is_refused(tmp_path: Path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path / "tokenizer.json", tmp_path / "none.json"):
        with pytest.raises(InputError):
            token_counter(path)
    with pytest.raises(UsageError):
        chunked(max_tokens=100, overlap=60)


WORDS = st.text(st.sampled_from("ab다물水。. \n!?\udc80"), min_size=1, max_size=80)
REGIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [Label.TEXT, Label.PARAGRAPH_TITLE, Label.ABSTRACT, Label.IMAGE, Label.FOOTNOTE, Label.ALGORITHM]
        ),
        WORDS,
        st.booleans(),
    ),
    max_size=12,
)


@given(REGIONS, st.integers(32, 60))
def test_nothing_is_lost_and_no_chunk_is_too_long(drawn: list[tuple[Label, str, bool]], most: int):
    regions = [
        region(i, label, text, list_item=marked and label is Label.TEXT, continues=marked)
        for i, (label, text, marked) in enumerate(drawn)
    ]
    pages: list[PageResult] = [page("mill", 1, regions[:6]), page("mill", 2, regions[6:])]
    for index, each in enumerate(pages[1].regions):
        each.index = index
    found = list(pagemill.chunks(pages, max_tokens=most))
    whole = sorted("".join(text for _, text, _ in drawn))
    assert sorted("".join(chunk.text for chunk in found).replace(" ", "").replace("\n", "")) == [
        character for character in whole if not character.isspace()
    ]
    assert all(0 < chunk.tokens <= most for chunk in found)


@given(st.lists(st.lists(WORDS, min_size=2, max_size=2), min_size=1, max_size=12), st.integers(32, 60))
def test_every_cell_is_in_a_chunk(cells: list[list[str]], most: int):
    body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in cells)
    table = region(0, Label.TABLE, f"<table>{body}</table>", content_format=ContentFormat.HTML)
    found = "".join("".join(texts(table, max_tokens=most)).split())
    expected = pagemill.Document([page("a", 1, [table])]).tables
    for cell in expected[0].cells if expected else ():
        assert "".join(cell.text.split()) in found


def test_a_table_of_the_samples_keeps_its_two_rows_of_heads():
    (text,) = texts(region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML))
    assert text == "Vat | Weight\nVat | in | out\n1 | -4.5 | =1+1"


@pytest.mark.parametrize("text", ["a. " * 3000, "a\n" * 3000, "a" + "\n" * 3000 + "b", "- a\n" * 3000])
@pytest.mark.parametrize("max_tokens", [512, 1_000_000])
def test_little_is_counted_more_than_once(text: str, max_tokens: int):
    counted = 0

    def counting(said: str) -> int:
        nonlocal counted
        counted += len(said)
        return estimated_tokens(said)

    made = list(cut([page("mill", 1, [region(0, Label.ALGORITHM, text)])], counting, max_tokens, max_tokens // 2))
    assert made and all(chunk.tokens <= max_tokens for chunk in made)
    assert counted < 200 * len(text)


def test_a_long_cell_over_many_rows_is_there_once():
    rows = "".join(f"<tr><td>{number}</td></tr>" for number in range(1, 50))
    html = f'<table><tr><td rowspan="50">{"mill " * 100}</td><td>0</td></tr>{rows}</table>'
    found = texts(region(0, Label.TABLE, html, content_format=ContentFormat.HTML))
    assert "".join(found).count("mill") == 100
