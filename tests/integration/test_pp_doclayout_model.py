"""PP-DocLayoutV3 of full size with random weights: loading, microbatches, threads, precision, compiling."""

import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from pagemill.config.modes import TorchDevice
from pagemill.errors import EngineError, UnsupportedInputError, UsageError
from pagemill.imaging.decode import decode_image, decode_reduced
from pagemill.layout.pp_doclayout import inference
from pagemill.layout.pp_doclayout.postprocess import PostProcessor
from pagemill.layout.pp_doclayout.preprocess import resize_pages
from pagemill.layout.pp_doclayout.settings import FilterSettings, Interpolation, Precision
from pagemill.layout.pp_doclayout_engine import create
from pagemill.layout.settings import LayoutSettings
from pagemill_bench.testing.drawn_pages import draw_page

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.3")
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    from pagemill_bench.testing.random_layout_model import save_random_model

    return save_random_model(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def settings(weights, tmp_path_factory):
    config = tmp_path_factory.mktemp("settings") / "layout.toml"
    config.write_text(f"model = '{weights}'\ndevice = 'cpu'\nmax_batch = 3\n")
    return LayoutSettings(model_path=config)


@pytest.fixture(scope="module")
def pages():
    return [draw_page(seed, (600, 800)) for seed in (1, 2)]


@pytest.fixture(scope="module")
def predictor(weights):
    return inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.AUTO, False, 3))


def test_regions_lie_on_their_page_in_reading_order(settings, pages):
    found = create(settings).detect(pages)
    assert len(found) == 2
    assert all(found)
    for regions in found:
        assert [region.order for region in regions] == sorted(region.order for region in regions)
        assert all(0 <= r.box[0] < r.box[2] <= 600 and 0 <= r.box[1] < r.box[3] <= 800 for r in regions)
        assert all(0.3 <= region.score <= 1 for region in regions)


def test_a_model_is_loaded_once_a_process(settings, monkeypatch):
    first = create(settings)
    monkeypatch.setattr(inference, "load_predictor", lambda choice: pytest.fail("loaded again"))
    first.close()
    assert create(settings).max_batch == 3


def test_threads_and_batches_get_the_same_answers(settings, pages):
    engine = create(settings)
    expected = [engine.detect([page])[0] for page in pages]
    with ThreadPoolExecutor(2) as pool:
        assert [answer[0] for answer in pool.map(engine.detect, [[page] for page in pages])] == expected
    together = engine.detect(pages)
    for alone, batched in zip(expected, together, strict=True):
        assert [region.label for region in batched] == [region.label for region in alone]
        np.testing.assert_allclose([r.box for r in batched], [r.box for r in alone], atol=0.1)


def test_encoded_pages_get_the_answers_of_decoded_ones(settings, pages):
    """Below the size from which JPEGs are reduced both paths have the same input."""
    engine = create(settings)
    kinds = (".png", ".jpg")
    encoded = [cv2.imencode(kind, page[..., ::-1])[1].tobytes() for kind, page in zip(kinds, pages, strict=True)]
    with ThreadPoolExecutor(2) as decoders:
        found = engine.detect_encoded([encoded[0], b"broken", encoded[1]], decoders)
    assert isinstance(found.pop(1), UnsupportedInputError)
    assert all(found)
    assert found == engine.detect([decode_image(data).pixels for data in encoded])


def test_a_jpeg_decoded_at_half_its_size_has_regions_on_the_whole_page(settings, predictor):
    data = cv2.imencode(".jpg", draw_page(0, (1800, 2400))[..., ::-1])[1].tobytes()
    half, size = decode_reduced(data, 800)
    assert half.shape[:2] == (1200, 900)
    with ThreadPoolExecutor(1) as decoders:
        (found,) = create(settings).detect_encoded([data], decoders)
    (answer,) = predictor.predict([half], Interpolation.BICUBIC, 0.3)
    assert found == PostProcessor(FilterSettings(), predictor.labels, "pp-doclayout-v3").regions(answer, size)
    assert max(region.box[2] for region in found) > 900


def test_no_more_pages_than_the_batch_takes(predictor, pages):
    with pytest.raises(ValueError, match="4 pages"):
        predictor.predict([pages[0]] * 4, Interpolation.BICUBIC, 0.3)


def test_bfloat16_outputs_are_widened_before_anything_is_computed_with_them(predictor, pages):
    """What broke the reference workload: bfloat16 arrays that NumPy refuses."""
    from types import SimpleNamespace

    from pagemill.layout.pp_doclayout.outputs import Reduced

    with torch.inference_mode():
        outputs = predictor.forward(torch.from_numpy(np.stack([np.full((800, 800, 3), 200, np.uint8)])))
        names = ("logits", "pred_boxes", "order_logits", "out_masks")
        narrow = SimpleNamespace(**{name: getattr(outputs, name).to(torch.bfloat16) for name in names})
        (page,) = Reduced(narrow, 1, 0.3).pages()
    assert (page.scores.dtype, page.boxes.dtype, page.order.dtype) == (np.float32,) * 3
    assert page.masks.shape == (300, 200, 25)


def test_post_processing_that_breaks_fails_the_call(settings, pages, monkeypatch):
    def broken(self, outputs, pages, mask_threshold):
        raise TypeError("Got unsupported ScalarType BFloat16")

    engine = create(settings)
    monkeypatch.setattr("pagemill.layout.pp_doclayout.inference.Reduced.__init__", broken)
    with pytest.raises(TypeError, match="BFloat16"):
        engine.detect(pages[:1])


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="this processor has no bfloat16 (AVX-512 or AMX): convolutions in it take minutes",
)
def test_mixed_precision_does_not_round_boxes_to_bfloat16(weights, predictor, pages):
    mixed = inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.MIXED, False, 1))
    batch = torch.from_numpy(resize_pages(pages[:1], Interpolation.BICUBIC))
    with torch.inference_mode():
        outputs, wide = mixed.forward(batch), predictor.forward(batch)
    assert outputs.logits.isfinite().all()
    assert {outputs.pred_boxes.dtype, outputs.out_masks.dtype, outputs.order_logits.dtype} == {torch.float32}
    assert (outputs.pred_boxes.bfloat16() != outputs.pred_boxes).float().mean() > 0.9
    best, best_wide = outputs.logits.amax(dim=1), wide.logits.amax(dim=1)
    assert torch.corrcoef(torch.cat([best, best_wide]))[0, 1] > 0.9


def test_a_model_that_is_not_finite_in_few_bits(weights, monkeypatch, caplog):
    """Asked for, it is refused; chosen by ourselves, float32 takes its place with a warning."""
    monkeypatch.setattr(inference.Predictor, "is_finite", lambda self: self.precision is Precision.FLOAT32)
    with pytest.raises(EngineError, match="mixed"):
        inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.MIXED, False, 1))
    real = inference._precision
    monkeypatch.setattr(inference, "_precision", lambda chosen, device: real(Precision.MIXED, device))
    with caplog.at_level(logging.WARNING):
        predictor = inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.AUTO, False, 1))
    assert predictor.precision is Precision.FLOAT32
    assert len(caplog.records) == 1


def test_bfloat16_on_the_cpu_is_refused(weights):
    with pytest.raises(UsageError, match="bfloat16"):
        inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.BFLOAT16, False, 1))


def test_compiling_that_fails_leaves_the_model_as_it_is_with_one_warning(weights, pages, monkeypatch, caplog):
    def no_compiler(model, **options):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", no_compiler)
    with caplog.at_level(logging.WARNING):
        predictor = inference.load_predictor(
            inference.ModelChoice(weights, TorchDevice.CPU, Precision.FLOAT32, True, 2)
        )
    assert [record.message for record in caplog.records] == [
        "PP-DocLayout runs without compiling, which failed: no C++ compiler"
    ]
    assert len(predictor.predict(pages[:1], Interpolation.BICUBIC, 0.3)) == 1


def test_compiled_batches_have_one_page_or_all(weights, pages, monkeypatch):
    shapes = []

    def recorded(model, **options):
        def call(pixel_values):
            shapes.append(len(pixel_values))
            return model(pixel_values=pixel_values)

        return call

    monkeypatch.setattr(torch, "compile", recorded)
    predictor = inference.load_predictor(inference.ModelChoice(weights, TorchDevice.CPU, Precision.FLOAT32, True, 3))
    assert shapes == [1, 3]
    padded = predictor.predict(pages[:2], Interpolation.BICUBIC, 0.3)
    assert shapes == [1, 3, 3]
    assert len(padded) == 2
    alone = predictor.predict(pages[1:2], Interpolation.BICUBIC, 0.3)[0]
    np.testing.assert_allclose(padded[1].scores, alone.scores, atol=1e-4)


def test_weights_that_lack_tensors_are_refused_not_guessed(weights, tmp_path):
    from safetensors.torch import load_file, save_file

    tensors = load_file(weights / "model.safetensors")
    lost = sorted(tensors)[-1]
    save_file({name: tensor for name, tensor in tensors.items() if name != lost}, tmp_path / "model.safetensors")
    shutil.copy(weights / "config.json", tmp_path)
    with pytest.raises(UnsupportedInputError, match="lack"):
        create(LayoutSettings(model_path=tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(UnsupportedInputError, match="cannot load"):
        create(LayoutSettings(model_path=tmp_path))


def test_a_device_that_is_not_there(weights, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    config = tmp_path / "layout.toml"
    config.write_text(f"model = '{weights}'\ndevice = 'cuda'")
    with pytest.raises(UsageError, match="cuda"):
        create(LayoutSettings(model_path=config))


def test_the_labels_are_those_of_the_configuration(weights, tmp_path):
    config = json.loads((weights / "config.json").read_text())
    config["id2label"]["0"] = "figure"
    (tmp_path / "config.json").write_text(json.dumps(config))
    shutil.copy(weights / "model.safetensors", tmp_path)
    choice = inference.ModelChoice(tmp_path, TorchDevice.CPU, Precision.AUTO, False, 1)
    assert inference.load_predictor(choice).labels[0] == "image"
