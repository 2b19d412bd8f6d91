"""The engines on CUDA against the same engines on the CPU, with random weights. Skipped where there is no CUDA GPU.

Run them with ``python -m pytest tests/gpu``. They need the extras ``gpu`` and ``embed``; nvJPEG needs torchvision.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no CUDA GPU", allow_module_level=True)

from tiny_recognition import MODELS, SIZES, generator, requests_of  # noqa: E402

from pagemill.checkpoints.devices import choose_device, choose_dtype, free_memory  # noqa: E402
from pagemill.config.modes import TorchDevice, TorchDtype  # noqa: E402
from pagemill.embedding.base import EmbeddingInput, EngineSettings, Role  # noqa: E402
from pagemill.errors import PagemillError  # noqa: E402
from pagemill.inference.exchange import RequestRefusedError  # noqa: E402
from pagemill.layout.pp_doclayout import inference  # noqa: E402
from pagemill.layout.pp_doclayout.settings import Interpolation, Precision  # noqa: E402
from pagemill.layout.pp_doclayout_engine import create  # noqa: E402
from pagemill.layout.settings import LayoutSettings  # noqa: E402
from pagemill.profiling.gpu_use import sampled_gpus  # noqa: E402
from pagemill_bench.testing.drawn_pages import draw_page  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    from pagemill_bench.testing.random_layout_model import save_random_model

    return save_random_model(tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    import tiny_torch_checkpoints

    base = tmp_path_factory.mktemp("checkpoints")
    return {name: tiny_torch_checkpoints.build(name, base / name) for name in MODELS}


def layout_engine(weights, folder, **options):
    config = folder / "layout.toml"
    config.write_text(
        "\n".join(f"{name} = {json.dumps(value)}" for name, value in {"model": str(weights), **options}.items())
    )
    return create(LayoutSettings(model_path=config))


def predictor(weights, device, precision=Precision.FLOAT32):
    return inference.load_predictor(inference.ModelChoice(weights, device, precision, False, 4))


def test_the_device_and_its_type_are_chosen():
    device = choose_device(TorchDevice.AUTO, "--device")
    assert device.type == "cuda"
    capable = torch.cuda.get_device_capability() >= (8, 0)
    assert choose_dtype(TorchDtype.AUTO, device) is (torch.bfloat16 if capable else torch.float32)
    assert 0 < free_memory(device) <= torch.cuda.get_device_properties(device).total_memory


def test_layout_in_float32_equals_the_cpu(weights):
    pages = [draw_page(seed, (600, 800)) for seed in range(3)]
    here, there = (predictor(weights, device) for device in (TorchDevice.CPU, TorchDevice.CUDA))
    expected = [here.predict([page], Interpolation.BICUBIC, 0.3)[0] for page in pages]
    for page, own in zip(there.predict(pages, Interpolation.BICUBIC, 0.3), expected, strict=True):
        # The best score of each class: queries of nearly equal rank change places, and convolutions compute in TF32.
        np.testing.assert_allclose(page.scores.max(axis=0), own.scores.max(axis=0), atol=0.05)


def test_layout_in_mixed_precision_agrees_with_float32(weights):
    pages = [draw_page(seed, (600, 800)) for seed in range(3)]
    model = predictor(weights, TorchDevice.CUDA, Precision.MIXED)
    mixed = model.predict(pages, Interpolation.BICUBIC, 0.3)
    wide = predictor(weights, TorchDevice.CUDA).predict(pages, Interpolation.BICUBIC, 0.3)
    for few, many in zip(mixed, wide, strict=True):
        assert abs(len(few.scores) - len(many.scores)) <= 0.1 * max(10, len(many.scores))
        assert np.isfinite(few.boxes).all()


def test_threads_share_the_gpu(weights, tmp_path):
    engine = layout_engine(weights, tmp_path, precision="float32", compile=False, max_batch=2)
    pages = [draw_page(seed, (600, 800)) for seed in range(6)]
    expected = [engine.detect([page])[0] for page in pages]
    with ThreadPoolExecutor(6) as pool:
        found = [answer[0] for answer in pool.map(engine.detect, [[page] for page in pages])]
    for alone, beside in zip(expected, found, strict=True):
        assert [region.label for region in alone] == [region.label for region in beside]
        np.testing.assert_allclose([r.box for r in alone], [r.box for r in beside], atol=0.1)


def test_jpegs_decoded_by_nvjpeg_agree_with_the_cpu(weights, tmp_path):
    pytest.importorskip("torchvision")
    engine = layout_engine(weights, tmp_path, precision="float32", compile=False, max_batch=8)
    assert engine.decodes_jpegs
    pages = [draw_page(seed, (1240, 1754)) for seed in range(3)]
    jpegs = [cv2.imencode(".jpg", page[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes() for page in pages]
    answers = engine.detect_jpegs(jpegs)
    assert None not in answers
    with ThreadPoolExecutor(2) as decoders:
        *found, broken, half = engine.detect_encoded([*jpegs, b"broken", jpegs[0][: len(jpegs[0]) // 2]], decoders)
    assert isinstance(broken, PagemillError)
    assert isinstance(half, PagemillError)
    here = engine.detect(pages)
    for near, far in zip(here, found, strict=True):
        assert near
        assert abs(len(near) - len(far)) <= 0.2 * max(10, len(near))


@pytest.mark.parametrize("name", MODELS)
def test_recognition_in_float32_equals_the_cpu(checkpoints, name):
    there = generator(name, checkpoints[name], device=TorchDevice.CUDA, dtype=TorchDtype.FLOAT32)
    here = generator(name, checkpoints[name], device=TorchDevice.CPU)
    answers = there.answer(requests_of(name))
    assert answers == here.answer(requests_of(name))
    assert any(answer.text for answer in answers)


@pytest.mark.parametrize("name", MODELS)
def test_recognition_in_the_gpus_own_type(checkpoints, name):
    model = generator(name, checkpoints[name])
    assert model._model.device.type == "cuda"
    assert model.max_batch > 1
    assert all(answer.finish_reason for answer in model.answer(requests_of(name)))


def test_memory_that_runs_out_on_one_request_refuses_it(checkpoints):
    model = generator("glm-ocr", checkpoints["glm-ocr"])
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (8 << 20)) / total)
    try:
        with pytest.raises(torch.OutOfMemoryError):  # which halves the batch
            model.answer(requests_of("glm-ocr", [(2000, 2000)] * 4))
        with pytest.raises(RequestRefusedError) as caught:
            model.answer(requests_of("glm-ocr", [(2000, 2000)]))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert caught.value.status == 413
    assert model.answer(requests_of("glm-ocr", SIZES[:1]))[0].completion_tokens


def test_embedding_equals_the_cpu(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from pagemill.embedding.sentence_transformers_engine import create as create_embedding

    words = ["[PAD]", "[UNK]", "the", "mill", "wheel", "turns", "paper"]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=32, **sizes)).save_pretrained(tmp_path / "bert")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(
        tmp_path / "bert"
    )
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    whole = sentence_transformers.SentenceTransformer(
        modules=[Transformer(str(tmp_path / "bert"), max_seq_length=12), Pooling(16)], device="cpu"
    )
    whole.save(str(tmp_path / "whole"))
    inputs = [EmbeddingInput(role=Role.PASSAGE, text=text) for text in ("the mill turns", "paper", "wheel paper")]
    vectors = [
        create_embedding(EngineSettings(folder=tmp_path, model=str(tmp_path / "whole"), device=device)).embed(inputs)
        for device in ("cuda", "cpu")
    ]
    np.testing.assert_allclose(*vectors, atol=1e-3)


def test_the_gpus_use_is_sampled():
    with sampled_gpus() as gpus:
        assert gpus is not None
        gpus.begin()
        matrix = torch.randn(4096, 4096, device="cuda")
        for _ in range(300):
            matrix = matrix @ matrix / 4096
        torch.cuda.synchronize()
        gpus.sample()
        (use, *_) = gpus.use()
    assert use.name
    assert use.memory_gib > 0.05
