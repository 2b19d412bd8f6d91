"""What a run's identity says of its records, and which layout model it names."""

from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pagemill.config.describing import DescribeSettings
from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.config.options import Option, build, options_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import LayoutChoice, ParseSettings, TableEngineSettings
from pagemill.errors import MissingInputError
from pagemill.layout.pp_doclayout.settings import PPDocLayoutSettings
from pagemill.runtime.identity import settings_identity, without_credentials
from pagemill.tables import table_transformer
from pagemill.tables.table_transformer import DETECTION, STRUCTURE


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"1")
    return folder


def model_of(path: Path | None) -> str:
    identity = settings_identity(ParseSettings(), LayoutChoice(engine="pp-doclayout-v3", model=path))
    return str(identity["layout_model"])


def settings_file(weights: Path, name: str, text: str) -> Path:
    path = weights.parent / name
    path.write_text(f"model = '{weights.name}'\n{text}")
    return path


def test_a_run_with_records_of_1_2_continues():
    """1.3 added a field that has a default: such records may stand beside newer ones."""
    assert settings_identity(ParseSettings(), LayoutChoice())["schema_version"] == "1.2"


def test_a_settings_file_counts_with_the_weights_that_it_names(weights: Path):
    path = settings_file(weights, "layout.toml", "")
    before = model_of(path)
    assert before == model_of(weights)
    (weights / "model.safetensors").write_bytes(b"2")
    assert model_of(path) != before


@pytest.mark.parametrize("text", ["[filters]\nthreshold = 0.4", "interpolation = 'bilinear'", "precision = 'float32'"])
def test_what_changes_regions_changes_the_identity(weights: Path, text: str):
    assert model_of(settings_file(weights, "other.toml", text)) != model_of(weights)


@pytest.mark.parametrize("text", ["# a remark", "max_batch = 3", "compile = false", "device = 'cpu'"])
def test_what_changes_speed_alone_does_not(weights: Path, text: str):
    assert model_of(settings_file(weights, "other.toml", text)) == model_of(weights)


def test_the_longest_answer_belongs_to_a_run():
    asked = RecognitionSettings(engine="vlm", servers=("http://a",), max_tokens=16_384)
    assert settings_identity(ParseSettings(recognition=asked), LayoutChoice())["max_tokens"] == 16_384


def test_a_file_beside_the_weights_says_nothing(weights: Path):
    before = model_of(weights)
    (weights / "README.md").write_text("about")
    assert model_of(weights) == before


def test_the_model_of_the_cache_counts(weights: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def find(model: str, *, download: bool) -> Path:
        asked.append((model, download))
        return weights

    monkeypatch.setattr("pagemill.layout.pp_doclayout_engine.find_weights", find)
    before = model_of(None)
    (weights / "model.safetensors").write_bytes(b"2")
    assert model_of(None) != before
    assert set(asked) == {(PPDocLayoutSettings().model, False)}


def test_weights_that_are_not_there(weights: Path):
    (weights / "model.safetensors").unlink()
    with pytest.raises(MissingInputError, match=r"model\.safetensors"):
        model_of(settings_file(weights, "layout.toml", ""))


def identity(**recognition):
    settings = RecognitionSettings(engine="vlm", **recognition)
    return settings_identity(ParseSettings(recognition=settings), LayoutChoice())


def test_reading_lines_says_nothing_of_models():
    assert "model" not in settings_identity(ParseSettings(), LayoutChoice())


def test_servers_and_patience_do_not_count_in_reading_regions():
    other = identity(servers=("http://a:1", "http://b:2"), workers=7, request_timeout_s=1.0, server_wait_s=2.0)
    assert other == identity(servers=("http://c:3",))


def test_the_model_counts_and_what_its_card_says_of_reading(tmp_path: Path):
    card = (files("pagemill.config") / "models" / "glm-ocr.toml").read_text(encoding="utf-8")
    path = tmp_path / "mine.toml"

    def with_card(text: str):
        path.write_text(text, encoding="utf-8")
        return identity(model=str(path))

    mine = with_card(card)
    assert mine["model"] == "mine.toml"
    assert mine["model_card"] == identity()["model_card"]
    assert identity(model="paddleocr-vl")["model_card"] != mine["model_card"]
    assert with_card(card.replace("max_model_len = 16384", "max_model_len = 8192")) == mine
    for before, after in (("Text Recognition:", "Read:"), ("temperature = 0.0", "temperature = 0.1"), ("8192", "4096")):
        assert before in card
        assert with_card(card.replace(before, after, 1)) != mine


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host:8000/v1?key=k", "https://host:8000/v1"),
        ("http://host/a@b", "http://host/a@b"),
        ("http://host:8000", "http://host:8000"),
    ],
)
def test_credentials_are_not_written_down(url: str, shown: str):
    assert without_credentials(url) == shown


def test_what_the_model_is_given_at_a_time_counts():
    pages, regions = identity(model="deepseek-ocr"), identity(model="deepseek-ocr", reading=ReadingMode.REGIONS)
    assert (pages["reading"], regions["reading"], identity()["reading"]) == ("pages", "regions", "regions")
    assert identity(model="deepseek-ocr", reading=ReadingMode.PAGES) == pages


@pytest.mark.parametrize(
    ("reading", "text_layer", "counts"),
    [
        (ReadingMode.PAGES, TextLayerMode.NEVER, False),
        (ReadingMode.PAGES, TextLayerMode.AUTO, True),
        (ReadingMode.REGIONS, TextLayerMode.NEVER, True),
    ],
)
def test_layout_counts_where_pages_are_laid_out(reading, text_layer, counts):
    recognition = RecognitionSettings(engine="vlm", model="deepseek-ocr", reading=reading)
    settings = ParseSettings(recognition=recognition, text_layer=text_layer)
    assert (settings_identity(settings, LayoutChoice())["layout_engine"] == "onnx") is counts
    missing = Path("missing.onnx")
    if counts:
        with pytest.raises(MissingInputError):
            settings_identity(settings, LayoutChoice(model=missing))
    else:
        assert settings_identity(settings, LayoutChoice(model=missing))["layout_model"] is None


OTHERS = {
    "languages": ["ko"],
    "recognition_engine": "transformers",
    "model": "paddleocr-vl",
    "escalate": "vlm",
    "describe": ["charts", "figures"],
    "describe_model": "qwen3-vl-2b",
    "layout_model": "FILE",
    "table_model": "FILE",
    "recognition_weights": "FILE",
}
"""Another value than the default, where not any will do."""
BESIDE = {
    "table_model": {"table_engine": "other"},
    "recognition_weights": {"recognition_engine": "transformers"},
    "recognition_dtype": {"recognition_engine": "transformers"},
    "escalate_from": {"escalate": "vlm"},
    "describe_model": {"describe": ["figures"]},
    "describe_served_model": {"describe": ["figures"]},
} | {key: {"recognition_engine": "vlm"} for key in ("model", "reading", "footnotes", "served_model", "max_tokens")}


def _other(declared: Option) -> Any:
    if declared.kind is bool:
        return not declared.default
    if issubclass(declared.kind, StrEnum):
        return list(declared.kind)[-1]
    return (declared.default or 0) + 1 if declared.kind in (int, float) else "other"


def test_every_option_that_changes_results_belongs_to_a_run(tmp_path: Path):
    (tmp_path / "model").write_bytes(b"1")

    def identity(values):
        return settings_identity(build(ParseSettings, values), build(LayoutChoice, values))

    deciding = [each for kind in (ParseSettings, LayoutChoice) for each in options_of(kind) if each.results]
    assert len(deciding) > 20
    for each in deciding:
        key, value = each.key, OTHERS.get(each.key, _other(each))
        value = str(tmp_path / "model") if value == "FILE" else value
        beside = BESIDE.get(key, {"layout_engine": "other"} if key == "layout_model" else {})
        before, after = identity(beside), identity(beside | {key: value})
        assert before.get(key) != after[key], key


def test_what_changes_speed_alone_belongs_to_no_run():
    before = {"describe_servers": ["http://a"], "describe": ["charts"]}
    after = {"describe_servers": ["http://b", "http://c"], "describe": ["charts"], "describe_limit": 3} | {
        "page_timeout_s": 3.0
    }
    first, second = (settings_identity(build(ParseSettings, each), LayoutChoice()) for each in (before, after))
    assert first == second


def test_runs_of_earlier_versions_are_resumed():
    """What they named, with what is missing standing for the default."""
    lines = settings_identity(ParseSettings(), LayoutChoice())
    earlier = {"languages": None, "text_layer": "auto", "photographs": None, "crops": True, "layout_engine": "onnx"}
    earlier |= {"layout_model": lines["layout_model"], "schema_version": "1.2"}
    assert {key: earlier.get(key) for key in earlier.keys() | lines.keys()} == earlier | lines | {"photographs": None}
    model = identity()
    earlier |= {"text_layer": "never", "recognition_engine": "vlm", "model": "glm-ocr", "reading": "regions"}
    earlier |= {"served_model": None, "max_tokens": None, "footnotes": True, "model_card": model["model_card"]}
    assert {key: value for key, value in earlier.items() if key != "photographs"} == model


def test_who_describes_belongs_to_a_run():
    def identity(**describing):
        chosen = DescribeSettings(kinds=("charts",), **describing)
        return settings_identity(ParseSettings(describing=chosen), LayoutChoice())

    with_generic, other = identity(), identity(model="glm-ocr", servers=("http://a",))
    assert (with_generic["describe"], with_generic["describe_model"]) == (["charts"], "glm-ocr")
    assert other["describe_model"] == "glm-ocr" and other["describe_card"] == with_generic["describe_card"]
    assert identity(servers=("http://a",))["describe_model"] == "generic"


def test_escalation_belongs_to_a_run_that_has_it_alone():
    plain = settings_identity(ParseSettings(), LayoutChoice())
    assert not any("escalate" in key for key in plain)
    escalating = RecognitionSettings(escalate="vlm", servers=("http://127.0.0.1:1",))
    with_model = settings_identity(ParseSettings(recognition=escalating), LayoutChoice())
    assert (with_model["recognition_engine"], with_model["escalate"], with_model["reading"]) == (
        "lines",
        "vlm",
        "regions",
    )
    assert with_model["escalate_from"] == 1.5  # also where it is the default, as the first runs that had it
    assert with_model["model_card"] and with_model["text_layer"] == "auto"


def test_both_checkpoints_of_the_table_engine_belong_to_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folders = {name: tmp_path / name for name in (STRUCTURE, DETECTION)}
    monkeypatch.setattr(table_transformer, "find_model", lambda card: found.get(card.name))

    def identity(model: str | None = None) -> str:
        choice = TableEngineSettings(name="table-transformer", model=model)
        return str(settings_identity(ParseSettings(table_choice=choice), LayoutChoice())["table_model"])

    for folder in folders.values():
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"1")
    found = {STRUCTURE: folders[STRUCTURE]}
    alone = identity()
    found = folders
    both = identity()
    assert both == identity(str(tmp_path))  # the same files
    (folders[DETECTION] / "model.safetensors").write_bytes(b"2")
    assert len({alone, both, identity()}) == 3
    (folders[STRUCTURE] / "model.safetensors").write_bytes(b"2")
    assert identity() not in {alone, both}
