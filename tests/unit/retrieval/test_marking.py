from pagemill.retrieval.marking import SNIPPET_WIDTH, matches, snippet
from pagemill.retrieval.tokens import match_expression, tokens


def marked(text, query):
    found = matches([(1, text)], match_expression(query))
    return snippet(text, found.get(1, ())).marked("[", "]")


def test_what_sqlite_finds_is_marked():
    assert marked("The weights were weighed twice", "weighing") == "The weights were [weighed] twice"


def test_overlapping_pairs_are_one_mark():
    assert marked("한지박물관 2층", "박물관") == "한지[박물관] 2층"


def test_a_piece_is_cut_out_around_the_hits():
    text = "filler " * 100 + "the lost fibre " + "filler " * 100
    shown = marked(text, "lost fibre")
    assert "[lost] [fibre]" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= SNIPPET_WIDTH + len("[][]……")


def test_the_beginning_where_nothing_is_hit():
    assert snippet("one\ntwo", ()).text == "one two"


def test_control_characters_are_not_shown():
    assert "\x1b" not in snippet("a\x1b[2Jb \u202e c", ()).text


def test_marks_stay_within_the_piece():
    text = "x" * 500
    piece = snippet(text, list(tokens(text)))
    assert all(0 <= start < end <= len(piece.text) for start, end in piece.marks)


def test_the_best_text_comes_first():
    texts = [(7, "the press and the loft"), (9, "loft loft loft"), (3, "nothing here")]
    assert list(matches(texts, match_expression("loft"))) == [9, 7]
