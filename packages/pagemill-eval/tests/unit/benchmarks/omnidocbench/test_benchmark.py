import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import CorruptInputError
from pagemill_eval.benchmark import Prediction, Rules, SampleScore, Status
from pagemill_eval.benchmarks.omnidocbench import benchmark as module
from pagemill_eval.benchmarks.omnidocbench.benchmark import OmniDocBenchV15, prediction_names
from pagemill_eval.benchmarks.omnidocbench.truth import true_elements
from pagemill_eval.cdm.drawing import unavailable

TABLE = "<table><tr><td>mill</td><td>sheets</td></tr></table>"


def page(name: str, *detections: dict[str, Any], relations: list[tuple[int, int]] | None = None) -> dict[str, Any]:
    return {
        "page_info": {"image_path": name, "page_attribute": {"language": "english", "layout": None}, "page_no": 1},
        "layout_dets": [{"anno_id": number, "poly": [0] * 8, **each} for number, each in enumerate(detections)],
        "extra": {
            "relation": [
                {"relation_type": "truncated", "source_anno_id": source, "target_anno_id": target}
                for source, target in relations or []
            ]
        },
    }


def text(content: str, order: int | None, category: str = "text_block") -> dict[str, Any]:
    return {"category_type": category, "order": order, "text": content}


def score(tmp_path: Path, one: dict[str, Any], markdown: str | None, rules: Rules = Rules.OFFICIAL) -> SampleScore:
    file = tmp_path / "OmniDocBench.json"
    file.write_text(json.dumps([one]))
    benchmark = OmniDocBenchV15()
    (sample,) = benchmark.load(tmp_path)
    return benchmark.score(sample, Prediction(text=markdown), rules)


def test_a_perfect_page(tmp_path: Path) -> None:
    one = page(
        "a.jpg",
        text("Paper mills", 1, "title"),
        text("They make paper of rags.", 2),
        {"category_type": "equation_isolated", "order": 3, "latex": "$$a = b$$"},
        {"category_type": "table", "order": 4, "html": TABLE},
        text("12", None, "page_number"),
        {"category_type": "figure", "order": 5},
    )
    metrics = score(tmp_path, one, f"# Paper mills\n\nThey make paper of rags.\n\n$$a=b$$\n\n{TABLE}").metrics
    assert metrics["text_edit_distance"] == 0.0
    assert metrics["formula_edit_distance"] == 0.0
    assert metrics["reading_order_edit_distance"] == 0.0
    assert metrics["teds"] == metrics["teds_s"] == metrics["overall"] == 1.0
    assert metrics["character_error_rate"] == pytest.approx(2 / 35)  # "# " is there, too


def test_a_page_is_one_ratio_of_its_texts(tmp_path: Path) -> None:
    one = page("a.jpg", text("abcdefgh", 1), text("xy", 2))
    assert score(tmp_path, one, "abcdefgh\n\nxz").metrics["text_edit_distance"] == pytest.approx(1 / 10)


def test_order(tmp_path: Path) -> None:
    one = page("a.jpg", text("first paragraph", 1), text("second one", 2), text("the last", 3))
    metrics = score(tmp_path, one, "second one\n\nfirst paragraph\n\nthe last").metrics
    assert metrics["text_edit_distance"] == 0.0
    assert metrics["reading_order_edit_distance"] == pytest.approx(2 / 3)


def test_blocks_cut_in_two_are_one_and_chains_repeat(tmp_path: Path) -> None:
    parts = [text("a" * 8, 1), text("b" * 8, 2), text("c" * 8, 3)]
    two = score(tmp_path, page("a.jpg", *parts[:2], relations=[(0, 1)]), "a" * 8 + "b" * 8)
    assert two.metrics["text_edit_distance"] == 0.0
    chain = score(tmp_path, page("a.jpg", *parts, relations=[(0, 1), (1, 2)]), "a" * 8 + "b" * 8 + "c" * 8)
    assert chain.metrics["text_edit_distance"] == pytest.approx(8 / 32)


def test_a_formula_read_as_text_counts_as_text(tmp_path: Path) -> None:
    one = page("a.jpg", {"category_type": "equation_isolated", "order": 1, "latex": "\\alpha = 12345"})
    metrics = score(tmp_path, one, "α = 12345").metrics
    assert metrics["text_edit_distance"] == 0.0
    assert metrics["formula_edit_distance"] is None
    assert metrics["reading_order_edit_distance"] is None


def test_a_formula_of_symbols_alone_read_as_text_is_not_empty(tmp_path: Path) -> None:
    one = page("a.jpg", text("abcdefgh", 1), {"category_type": "equation_isolated", "order": 2, "latex": "\\pm =*"})
    assert score(tmp_path, one, "abcdefgh\n\nxy").metrics["text_edit_distance"] == pytest.approx(3 / 11)


def test_tables_without_truth_do_not_count(tmp_path: Path) -> None:
    one = page("a.jpg", text("rags", 1), {"category_type": "table", "order": 2, "html": ""})
    assert score(tmp_path, one, f"rags\n\n{TABLE}").metrics["teds"] is None


def test_of_elements_without_order_formulas_are_last(tmp_path: Path) -> None:
    file = tmp_path / "pages.json"
    formula = {"category_type": "equation_isolated", "order": None, "latex": "a=b"}
    file.write_text(json.dumps([page("a.jpg", formula, text("Running title", None, "header"))]))
    elements, _ = true_elements(OmniDocBenchV15().load(file)[0].truth)
    assert [each.category for each in elements] == ["header", "equation_isolated"]


def test_cells_of_tables_too_many_are_text(tmp_path: Path) -> None:
    one = page("a.jpg", text("rags", 1), text("water", 2), {"category_type": "table", "order": 3, "html": TABLE})
    boxed = "<table><tr><td>rags</td><td>water</td></tr></table>"
    metrics = score(tmp_path, one, f"{boxed}\n\n{TABLE}").metrics
    assert (metrics["text_edit_distance"], metrics["teds"]) == (0.0, 1.0)


def test_latex_tables_score_nothing(tmp_path: Path) -> None:
    one = page("a.jpg", {"category_type": "table", "order": 1, "html": TABLE})
    assert score(tmp_path, one, "\\begin{tabular}{ll}mill&sheets\\end{tabular}").metrics["teds"] == 0.0
    assert score(tmp_path, one, "nothing").metrics["teds"] == 0.0


def test_official_rules_skip_what_is_missing_and_ours_count_it(tmp_path: Path) -> None:
    one = page("a.jpg", text("abc", 1), {"category_type": "table", "order": 2, "html": TABLE})
    official = score(tmp_path, one, None)
    assert official.status is Status.MISSING
    assert set(official.metrics.values()) == {None}
    ours = score(tmp_path, one, None, Rules.PAGEMILL).metrics
    assert (ours["text_edit_distance"], ours["teds"], ours["overall"]) == (1.0, 0.0, 0.0)


def test_decomposed_hangul_is_right_by_our_rules(tmp_path: Path) -> None:
    one = page("a.jpg", text("물레시 공고", 1))
    apart = unicodedata.normalize("NFD", "물레시 공고")
    assert (score(tmp_path, one, apart).metrics["text_edit_distance"] or 0) > 0.5
    assert score(tmp_path, one, apart, Rules.PAGEMILL).metrics["text_edit_distance"] == 0.0


def test_figures(tmp_path: Path) -> None:
    tables = {"category_type": "table", "order": 2, "html": TABLE}
    pages = [page("a.jpg", text("abcd", 1), tables, tables), page("b.jpg", text("abcdef", 1)), page("c.jpg", tables)]
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    benchmark = OmniDocBenchV15()
    samples = benchmark.load(tmp_path / "pages.json")
    texts = [f"abcx\n\n{TABLE}", "abcdef", TABLE]
    scores = [benchmark.score(each, Prediction(text=text)) for each, text in zip(samples, texts, strict=True)]
    result = benchmark.result(scores)
    values = {name: figure.value for name, figure in result.figures.items()}
    assert values["text_edit_distance"] == pytest.approx(1 / 8)
    assert values["text_edit_distance_whole"] == pytest.approx(1 / 10)
    assert values["teds"] == pytest.approx(3 / 4)
    assert values["teds_samples"] == pytest.approx(2 / 3)
    assert values["overall_without_cdm"] == pytest.approx((87.5 + 75) / 2)
    assert values["overall"] is None
    assert list(result.groups) == ["language"]


def test_names_of_predictions() -> None:
    assert prediction_names("a.pdf_3.jpg") == ("a.pdf_3.md", "a_3.mmd", "a_3.md", "a.pdf_3.jpg.md")
    assert prediction_names("a.png") == ("a.md", "a.mmd", "a.png.md")
    assert prediction_names("x/a.png")[3:] == ("a.md", "a.mmd", "a.png.md")  # the official scorer drops the folder


def test_a_runaway_page_is_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARACTERS", 5)
    found = score(tmp_path, page("a.jpg", text("abcdef", 1)), "abcdef")
    assert found.metrics["text_edit_distance"] == 1.0
    assert "over 5 characters" in found.error


def test_images_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptInputError):
        score(tmp_path, page("../../a.jpg", text("a", 1)), "a")


def test_the_image_is_found(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").touch()
    (tmp_path / "OmniDocBench.json").write_text(json.dumps([page("a.jpg", text("a", 1))]))
    (sample,) = OmniDocBenchV15().load(tmp_path)
    assert sample.input is not None


def formula(latex: str, order: int) -> dict[str, Any]:
    return {"category_type": "equation_isolated", "order": order, "latex": latex}


@pytest.mark.skipif(bool(unavailable()), reason="no LaTeX")
def test_cdm_and_overall(tmp_path: Path) -> None:
    pages = [
        page("a.jpg", text("abcd", 1), {"category_type": "table", "order": 2, "html": TABLE}, formula("a=b+c", 3)),
        page("b.jpg", formula("x^{2}+y^{2}", 1), formula("\\nosuch=1", 2)),
    ]
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    benchmark = OmniDocBenchV15()
    samples = benchmark.load(tmp_path / "pages.json")
    texts = [f"abcd\n\n{TABLE}\n\n$$a=b+d$$", "$$x^2+y^2$$\n\n$$\\nosuch=1$$"]
    scores = [benchmark.score(each, Prediction(text=text)) for each, text in zip(samples, texts, strict=True)]
    assert [score.metrics["cdm"] for score in scores] == [0.8, 0.5]
    assert scores[0].metrics["overall"] == pytest.approx(2.8 / 3)
    figures = benchmark.aggregate(scores)
    assert figures["cdm_samples"].value == pytest.approx((0.8 + 1 + 0) / 3)
    assert figures["overall"].value == pytest.approx((100 + 100 + 65) / 3)
    notes = [pair.note for pair in scores[1].pairs]
    assert notes == ["", "the truth is not drawn: \\nosuch is not known"]


def test_without_latex_overall_is_unavailable_and_a_page_has_its_other_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "unavailable", lambda: "unavailable: there is no pdflatex")
    found = score(tmp_path, page("a.jpg", text("abcd", 1), formula("a=b", 2)), "abcd\n\n$$a=b$$")
    assert (found.metrics["cdm"], found.metrics["overall"]) == (None, 1.0)
    figures = OmniDocBenchV15().aggregate([found])
    assert [figures[name].value for name in ("overall", "cdm", "cdm_samples")] == [None] * 3
    assert {figures[name].note for name in ("overall", "cdm", "cdm_samples")} == {"unavailable: there is no pdflatex"}
