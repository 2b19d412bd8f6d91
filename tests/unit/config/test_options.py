"""Options are declared once: what a declaration says, and how settings are built from values."""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import pagemill
from pagemill.app.embed import EmbedOptions
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.config import options
from pagemill.config.options import Settings, build, option, options_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.serving import ServingOptions
from pagemill.embedding.vectors import StoredType
from pagemill.errors import UsageError
from pagemill.keywords import ParseKeywords
from pagemill.sources.options import PageRanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Settings):
    RESULTS: ClassVar = False

    size: float | None = option(above=0, help="A size.")
    names: tuple[str, ...] = option("--name", default=(), help="Names.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Settings):
    count: int = option("-c", "--count", results=True, default=1, minimum=1, maximum=9, help="A count.")
    inner: Inner = Inner()
    undeclared: int = 5
    folder: Path | None = option(key="place", results=False, secret=True, help="A folder.")


def test_a_declaration_takes_key_flags_and_type_from_its_field():
    count, size, names, folder = options_of(Outer)
    assert (count.key, count.flags, count.kind, count.default, count.many) == (
        "count",
        ("-c", "--count"),
        int,
        1,
        False,
    )
    assert (size.key, size.flags, size.kind, size.default) == ("size", ("--size",), float, None)
    assert (names.key, names.flags, names.kind, names.many) == ("names", ("--name",), str, True)
    assert (folder.key, folder.flags, folder.kind) == ("place", ("--place",), Path)


def test_settings_are_built_from_values_by_key():
    built = build(Outer, {"count": 2, "names": ["a"], "place": "x", "size": None, "of another class": 1})
    assert built == Outer(count=2, inner=Inner(names=("a",)), folder=Path("x"))
    assert build(Outer, {"inner": Inner(size=2.0)}).inner == Inner(size=2.0)
    assert build(Outer, {}) == Outer()
    assert "x" not in repr(Outer(folder=Path("x")))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"count": 0}, "count is 0"),
        ({"count": 10}, "count is 10"),
        ({"count": "2"}, "count is '2'"),
        ({"size": 0.0}, "size is 0.0"),
        ({"size": float("nan")}, "size is nan"),
        ({"names": "a"}, "names is 'a'"),
        ({"names": 5}, "names is 5"),
        ({"names": [5]}, "names is 5"),
        ({"count": 1.5}, r"count is 1\.5"),
        ({"count": 1.0}, r"count is 1\.0"),
        ({"count": True}, "count is True"),
        ({"size": "1"}, "size is '1'"),
        ({"size": float("inf")}, "size is inf"),
    ],
)
def test_values_are_checked(values: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said) as caught:
        build(Outer, values)
    assert caught.value.remedy
    with pytest.raises(UsageError, match=said):
        Outer(inner=Inner(**values)) if {"size", "names"} & values.keys() else Outer(**values)


@pytest.mark.parametrize(
    ("settings", "values", "said"),
    [
        (ParseOptions, {"max_attempts": 1.5}, r"max_attempts is 1\.5"),
        (ParseOptions, {"max_attempts": True}, "max_attempts is True"),
        (ParseOptions, {"recursive": "no"}, "recursive is 'no'"),
        (ParseOptions, {"crops": 0}, "crops is 0"),
        (ParseOptions, {"image_column": 3}, "image_column is 3"),
        (ParseOptions, {"download": 3}, "download is 3"),
        (ParseOptions, {"pages": 3}, "pages is 3"),
        (ParseOptions, {"languages": 3}, "languages is 3"),
        (ParseOptions, {"text_layer": 3}, "text_layer is 3"),
        (ParseOptions, {"servers": [3]}, "servers is 3"),
        (ParseOptions, {"describe": [3]}, r"describe is \[3\]"),
        (ParseOptions, {"recognition": "vlm"}, "recognition is 'vlm'"),
        (ServingOptions, {"replicas": 1.5}, r"replicas is 1\.5"),
        (ServingOptions, {"replicas": True}, "replicas is True"),
    ],
)
def test_values_of_another_type_are_refused(settings: type, values: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said) as caught:
        build(settings, values)
    assert caught.value.remedy


def test_a_secret_of_another_type_is_not_shown():
    with pytest.raises(UsageError, match="place is not valid"):
        build(Outer, {"place": 5})


def test_values_that_say_the_same_are_taken():
    built = build(ParseOptions, {"recursive": True, "page_timeout_s": 5, "download": "x", "model": Path("card.toml")})
    assert (built.source.recursive, built.settings.page_timeout_s, built.source.download) == (True, 5, Path("x"))
    assert built.settings.recognition.model == "card.toml"
    assert ParseOptions(max_attempts=None).max_attempts == 2


def test_every_option_says_whether_it_changes_results():
    root = Path(pagemill.__file__).parent
    for path in root.rglob("*.py"):
        if "(Settings)" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(("pagemill", *path.relative_to(root).with_suffix("").parts)))
    classes = [each for each in Settings.__subclasses__() if each.__module__.startswith("pagemill.")]
    assert len(classes) > 20
    for settings in classes:
        assert all(isinstance(each.results, bool) for each in options_of(settings)), settings

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Silent(Settings):
        size: int = option(default=1, help="A size.")

    with pytest.raises(TypeError, match="size does not declare whether it changes results"):
        Silent()


def test_values_of_parsing():
    options = build(ParseOptions, {"pages": "2-", "languages": ["KO", "en"], "text_layer": "never"})
    assert options.source.pages == PageRanges(((2, sys.maxsize),))
    assert (options.settings.languages, options.settings.text_layer.value) == (("ko", "en"), "never")
    recognition = RecognitionSettings(engine="vlm", servers=("http://a",))
    options = build(ParseOptions, {"recognition": recognition})
    assert (options.settings.recognition, options.settings.text_layer.value) == (recognition, "never")
    assert build(ParseOptions, {"recognition_engine": "vlm", "servers": ["http://a"]}) == options
    for wrong in ({"text_layer": "sometimes"}, {"languages": "ko"}, {"languages": []}, {"languages": ["auto", "en"]}):
        with pytest.raises(UsageError):
            build(ParseOptions, wrong)
    with pytest.raises(UsageError, match="languages apply to"):
        build(ParseOptions, {"recognition": recognition, "languages": ["ko"]})


def test_escalation_asks_a_region_engine_beside_line_recognition():
    escalating = RecognitionSettings(escalate="vlm", escalate_from=0.0, servers=("http://127.0.0.1:1",))
    assert not escalating.reads_regions
    assert escalating.asked is not None
    assert (escalating.asked.engine, escalating.asked.reading, escalating.asked.escalate) == ("vlm", "regions", None)
    assert RecognitionSettings().asked is None
    assert build(ParseOptions, {"recognition": escalating, "languages": ["ko"]}).settings.text_layer == "auto"
    for wrong in ({"engine": "vlm", "escalate": "vlm"}, {"escalate": "lines"}, {"escalate_from": 0.0}):
        with pytest.raises(UsageError):
            RecognitionSettings(**wrong)


@pytest.mark.parametrize("settings", [ParseOptions, DirectoryOptions, ServingOptions])
def test_keys_and_flags_are_unique_and_help_is_a_sentence(settings: type):
    options = list(options_of(settings))
    assert len({each.key for each in options}) == len(options)
    assert len({flag for each in options for flag in each.flags}) == sum(len(each.flags) for each in options)
    for each in options:
        assert each.help[0].isupper()
        assert each.help.endswith((".", "]"))


def test_help_in_python_lists_every_keyword():
    import inspect

    import pagemill

    assert list(inspect.signature(pagemill.parse).parameters)[1:] == list(ParseKeywords.__annotations__)
    assert "max_attempts: Attempts at a page" in (pagemill.parse.__doc__ or "")
    with pytest.raises(TypeError, match="unexpected keyword argument 'page'"):
        pagemill.parse(b"", page="1")  # type: ignore[call-arg]


def test_a_default_given_by_name_is_the_member_of_its_enumeration():
    assert build(EmbedOptions, {"dtype": "float32"}).dtype is StoredType.FLOAT32


def test_annotations_are_evaluated_once(monkeypatch: pytest.MonkeyPatch):
    build(ParseOptions, {})
    monkeypatch.setattr(options, "get_type_hints", None)
    assert build(ParseOptions, {"pages": "1"}).source.pages == PageRanges.parse("1")
