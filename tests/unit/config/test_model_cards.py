import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pagemill.config.model_cards import ModelCard, ModelKind, card_names, load_card
from pagemill.errors import UsageError
from pagemill.recognition.vlm.cleanup import STEPS

GUIDE = Path(__file__).parents[3] / "docs" / "models.md"

MINIMAL = """
name = "mine"
title = "Mine"
kind = "recognition"
repository = ""
licence = "MIT"
licence_source = ""
parameters = 0
download_bytes = 0
languages = ""
languages_source = ""
prompts.text = "Read."
image.max_pixels = 1000
"""


CARDS = [load_card(name) for name in card_names()]


def test_facts_have_sources():
    for card in CARDS:
        assert card.languages, card.name
        if card.repository:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", card.repository), card.name
            assert card.licence_source.startswith("https://"), card.name
            assert card.languages_source.startswith("https://"), card.name
            assert card.parameters > 0, card.name
            assert card.download_bytes > 0, card.name
    assert [card.name for card in CARDS] == card_names()


def test_recognition_cards_ask_for_every_task_with_known_steps():
    for card in CARDS:
        if card.kind is ModelKind.RECOGNITION:
            assert {"text", "table", "formula"} <= card.prompts.keys(), card.name
            assert set(card.cleanup) <= STEPS.keys(), card.name
            assert "delimiters" in card.cleanup, card.name


def test_images_and_answers_fit_the_longest_request():
    for card in CARDS:
        if card.architecture is not None:
            assert card.server.max_model_len <= card.architecture.max_position, card.name
            image_tokens = card.image.max_pixels / card.image.multiple**2
            answer = card.sampling.max_tokens if card.kind is ModelKind.RECOGNITION else 0
            assert image_tokens + answer + 100 <= card.server.max_model_len, card.name


def test_flags_are_well_formed():
    for card in CARDS:
        for flags in [card.server.args, *card.server.optional.values()]:
            for before, word in pairwise(["", *flags]):
                assert word.startswith("--") or before.startswith("--"), (card.name, word)
                if word.startswith("{"):
                    json.loads(word)
        assert "--trust-remote-code" not in card.server.args, card.name


def test_embedding_cards_say_how():
    for card in CARDS:
        if card.kind is ModelKind.EMBEDDING:
            assert card.architecture is not None, card.name
            assert card.embedding["dimension"] == card.architecture.hidden_size, card.name
            assert card.embedding["max_tokens"] <= card.server.max_model_len, card.name
            assert set(card.embedding["instructions"]) <= {"query", "image", "text"}, card.name
            assert all(text.endswith((".", "?")) for text in card.embedding["instructions"].values()), card.name


def test_a_card_of_ones_own(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL)
    assert load_card(path).prompts == load_card(str(path)).prompts == {"text": "Read."}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("typo = 1", "typo"),
        ('prompts.tabel = "x"', "tabel"),
        ("image.quality = 101", "quality"),
        ("sampling.temperature = 'hot'", "temperature"),
        ('reads = "pages"', "needs a prompt for a page"),
        ('reads = "words"', "words"),
        ("= nonsense", "nonsense|Invalid"),
    ],
)
def test_what_is_wrong_with_a_card_is_reported(tmp_path: Path, line: str, message: str):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL + line)
    with pytest.raises(UsageError, match=message):
        load_card(path)


def test_a_recognition_card_needs_a_prompt(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL.replace('prompts.text = "Read."', ""))
    with pytest.raises(UsageError, match="prompt for text"):
        load_card(path)


def test_cards_that_are_not_there(tmp_path: Path):
    with pytest.raises(UsageError, match="no model card 'nope'"):
        load_card("nope")
    with pytest.raises(UsageError, match="cannot be read"):
        load_card(tmp_path / "none.toml")


def size_of(card: ModelCard) -> str:
    return (
        f"{card.download_bytes / 1e9:.1f} GB" if card.download_bytes >= 1e8 else f"{card.download_bytes / 1e6:.0f} MB"
    )


def test_the_guide_has_the_same_table():
    rows = [line.split("|")[1:-1] for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = {cells[0].strip().strip("`"): [cell.strip() for cell in cells[1:]] for cells in rows if len(cells) == 6}
    assert told == {
        card.name: [
            card.repository or "-",
            f"{card.parameters / 1e9:.2g} B" if card.parameters else "-",
            size_of(card) if card.download_bytes else "-",
            card.licence,
            card.languages,
        ]
        for card in map(load_card, card_names())
    }


def test_an_unknown_model_is_answered_with_those_of_its_kind():
    with pytest.raises(UsageError) as caught:
        load_card("nope", ModelKind.RECOGNITION)
    assert "glm-ocr" in caught.value.remedy
    assert "pp-doclayout-v3" not in caught.value.remedy
