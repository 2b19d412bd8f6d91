import json
from pathlib import Path

import pytest

from pagemill_eval.benchmark import Prediction
from pagemill_eval.benchmarks.omnidocbench import benchmark as module
from pagemill_eval.benchmarks.omnidocbench.mdp_bench import MdpBench


def test_languages_and_captures(tmp_path: Path) -> None:
    names = ("ko_book_1.jpg", "ko_book_1_phone.jpg", "de_book_1.jpg")
    pages = [
        {
            "page_info": {"image_path": name},
            "layout_dets": [{"category_type": "text_block", "anno_id": 1, "order": 1, "text": "abcdefgh"}],
        }
        for name in names
    ]
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    benchmark = MdpBench()
    samples = benchmark.load(tmp_path)
    assert samples[0].prediction_names == ("ko_book_1.md",)
    texts = ("abcdefgh", "abcdefxx", "abcdefgx")
    scores = [benchmark.score(each, Prediction(text=text)) for each, text in zip(samples, texts, strict=True)]
    figures = {name: figure.value for name, figure in benchmark.result(scores).figures.items()}
    assert figures == {
        "overall": pytest.approx(87.5),
        "overall_digital": pytest.approx(93.8),
        "overall_photo": 75.0,
        "overall_latin": 87.5,
        "overall_non_latin": 87.5,
        "overall_de": 87.5,
        "overall_ko": 87.5,
    }


def test_the_published_folder(tmp_path: Path) -> None:
    page = {"page_info": {"image_path": "ko_book_1.jpg"}, "layout_dets": []}
    (tmp_path / "MDPBench_public.json").write_text(json.dumps([page]))
    (tmp_path / "MDPBench_img_public").mkdir()
    (tmp_path / "MDPBench_img_public" / "ko_book_1.jpg").touch()
    (sample,) = MdpBench().load(tmp_path)
    assert sample.input is not None


def test_a_negative_teds_is_cut_with_the_page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "reference_teds", lambda *_, **__: -0.5)
    table = "<table><tr><td>a</td></tr></table>"
    detections = [
        {"category_type": "text_block", "anno_id": 1, "order": 1, "text": "abcdefgh"},
        {"category_type": "table", "anno_id": 2, "order": 2, "html": table},
    ]
    page = {"page_info": {"image_path": "ko_book_1.jpg"}, "layout_dets": detections}
    (tmp_path / "pages.json").write_text(json.dumps([page]))
    (sample,) = MdpBench().load(tmp_path)
    assert MdpBench().score(sample, Prediction(text=f"abcdefgh\n\n{table}")).metrics["overall"] == 0.25
    assert MdpBench().score(sample, Prediction(text=f"xxxxxxxx\n\n{table}")).metrics["overall"] == 0.0
