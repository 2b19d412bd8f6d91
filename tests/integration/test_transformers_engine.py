"""Recognition by models in this process: tiny random checkpoints through the real engine, on the CPU."""

import asyncio
import itertools
import shutil
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_recognition import MODELS, SIZES, generator, requests_of

from pagemill import model_cache
from pagemill.config.model_cards import load_card
from pagemill.config.modes import TorchDevice
from pagemill.config.recognition import LocalModelSettings, RecognitionSettings
from pagemill.document.labels import Task
from pagemill.errors import EngineError, UnsupportedInputError, UsageError
from pagemill.inference.exchange import RequestRefusedError
from pagemill.recognition.local.model import load_shared
from pagemill.runtime.region_reading import load_reader
from pagemill.runtime.threads import ComputeThreads
from pagemill_bench.testing.drawn_pages import draw_page

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")
pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    import tiny_torch_checkpoints

    base = tmp_path_factory.mktemp("checkpoints")
    return {name: tiny_torch_checkpoints.build(name, base / name) for name in MODELS}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def own_inputs(name, folder, image):
    """The inputs that the model's own documentation makes of an image and the prompt of its card."""
    from PIL import Image

    picture, prompt = Image.fromarray(image), load_card(name).prompts["text"]
    if name == "got-ocr2":
        processor = transformers.GotOcr2Processor.from_pretrained(folder)
        return processor(picture, format=True, return_tensors="pt")
    if name == "deepseek-ocr-2":
        processor = transformers.AutoProcessor.from_pretrained(folder)
        return processor(images=picture, text=f"<image>\n{prompt}", return_tensors="pt")
    messages = [{"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": prompt}]}]
    if name == "paddleocr-vl":
        processor = transformers.AutoProcessor.from_pretrained(folder)
        return processor.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
    # The processor of GLM-OCR cannot be made without torchvision, so its parts are put together here.
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    images = transformers.AutoImageProcessor.from_pretrained(folder)(picture, return_tensors="pt")
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    places = int(images["image_grid_thw"].prod()) // 4
    text = text.replace("<|image|>", "<|image|>" * places)
    inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    kinds = (inputs["input_ids"] == tokenizer.convert_tokens_to_ids("<|image|>")).long()
    return {
        **images,
        "input_ids": inputs["input_ids"],
        "attention_mask": inputs["attention_mask"],
        "mm_token_type_ids": kinds,
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_answers_what_each_alone_and_transformers_itself_answer(folders, name):
    model = generator(name, folders[name])
    requests = requests_of(name)
    together = model.answer(requests)
    assert together == [model.answer([request])[0] for request in requests]
    own = transformers.AutoModelForImageTextToText.from_pretrained(folders[name], dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[name])
    penalty = load_card(name).sampling.repetition_penalty or 1.0
    for request, answer in zip(requests, together, strict=True):
        inputs = own_inputs(name, folders[name], request.image)
        with torch.inference_mode():
            output = own.generate(**inputs, max_new_tokens=60, do_sample=False, repetition_penalty=penalty)
        said = output[0, inputs["input_ids"].shape[1] :]
        assert answer.text == tokenizer.decode(said, skip_special_tokens=True)
        assert (answer.finish_reason, answer.completion_tokens) == ("stop", len(said))
    assert len({answer.text for answer in together}) > 1  # they depend on the image


def test_an_answer_that_reaches_its_limit_says_so(folders):
    (answer,) = generator("glm-ocr", folders["glm-ocr"]).answer(requests_of("glm-ocr", SIZES[:1], max_tokens=3))
    assert (answer.finish_reason, answer.completion_tokens, len(answer.text.split())) == ("length", 3, 3)


def test_requests_of_different_sampling_may_share_a_batch(folders):
    model = generator("glm-ocr", folders["glm-ocr"])
    greedy, sampled = (
        requests_of("glm-ocr"),
        requests_of("glm-ocr", temperature=2.0, extra={"seed": 1}, top_p=0.95, top_k=40),
    )
    mixed = model.answer([greedy[0], sampled[0], greedy[1], sampled[1]])
    assert mixed[::2] == model.answer(greedy[:2])
    assert mixed[1::2] == [model.answer([each])[0] for each in sampled[:2]]  # a seed gives the same answer in any batch
    assert mixed[1] != mixed[0]
    assert mixed[1::2] != model.answer(
        requests_of("glm-ocr", temperature=2.0, extra={"seed": 2}, top_p=0.95, top_k=40)[:2]
    )


def test_the_guard_of_the_card_keeps_an_answer_from_repeating_itself(folders):
    guard = {"ngram_size": 2, "window_size": 100, "whitelist_token_ids": []}
    model = generator("paddleocr-vl", folders["paddleocr-vl"])
    output = model._model.model.get_output_embeddings().weight
    before = output.detach().clone()
    try:
        with torch.no_grad():
            words = model._model.processor.tokenizer.convert_tokens_to_ids(
                [f"\u0120{word}" for word in ("baran", "daran", "karan")]
            )
            output.zero_()
            output[words] = torch.randn(3, output.shape[1], generator=torch.Generator().manual_seed(0))  # it loops
        free = model.answer(requests_of("paddleocr-vl", SIZES[:2]))
        held = model.answer(requests_of("paddleocr-vl", SIZES[:2], extra={"vllm_xargs": guard}))
    finally:
        with torch.no_grad():
            output.copy_(before)

    def repeated(answer):
        pairs = list(itertools.pairwise(answer.text.split()))
        return len(pairs) - len(set(pairs))

    assert all(repeated(answer) > 10 for answer in free)
    assert [repeated(answer) for answer in held] == [0, 0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=30, max_size=30), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(1, 20),
    st.sets(st.integers(0, 3), max_size=1),
    st.integers(0, 10),
)
def test_the_logits_processor_equals_a_plain_reference(rows, size, window, allowed, prompt):
    from pagemill.recognition.local.logits import NoRepeatNGram

    processor = NoRepeatNGram(prompt, ngram_size=size, window_size=window, whitelist_token_ids=allowed)
    sequences = torch.tensor(rows)
    for end in range(prompt, 30):
        scores = processor(sequences[:, :end], torch.zeros(len(rows), 4))
        for row, tokens in enumerate(rows):
            said = tokens[prompt:end]
            starts = range(max(0, len(said) - window), len(said) - size + 1)
            prefix = said[len(said) - size + 1 :] if size > 1 else []
            banned = {said[at + size - 1] for at in starts if said[at : at + size - 1] == prefix} - allowed
            assert set(scores[row].isinf().nonzero().flatten().tolist()) == banned


def test_scores_that_are_no_numbers_are_an_error(folders):
    model = generator("glm-ocr", folders["glm-ocr"])
    weight = model._model.model.get_output_embeddings().weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.fill_(torch.nan)
        with pytest.raises(EngineError, match="returns NaN") as caught:
            model.answer(requests_of("glm-ocr", SIZES[:1]))
    finally:
        with torch.no_grad():
            weight.copy_(before)
    assert "--recognition-dtype" in caught.value.remedy


def test_tokens_that_a_checkpoint_bans_are_no_fault(folders, tmp_path):
    folder = shutil.copytree(folders["glm-ocr"], tmp_path / "banned")
    path = folder / "generation_config.json"
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | {"suppress_tokens": [5]}))
    (answer,) = generator("glm-ocr", folder).answer(requests_of("glm-ocr", SIZES[:1], max_tokens=3))
    assert answer.completion_tokens


@pytest.mark.parametrize("score", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_refused(score):
    from pagemill.recognition.local.logits import FirstIsFinite

    with pytest.raises(EngineError, match="returns NaN"):
        FirstIsFinite()(None, torch.tensor([[0.0, 1.0], [0.0, score]]))
    with pytest.raises(EngineError, match="returns NaN"):
        FirstIsFinite()(None, torch.full((1, 2), -torch.inf))


@pytest.mark.parametrize("layers", [0, 1, 30])
def test_a_batch_that_nobody_waits_for_ends_before_the_next_layer(folders, layers):
    from pagemill.recognition.local.generation import Generator

    card = load_card("glm-ocr")
    model = load_shared(card, LocalModelSettings(weights=str(folders["glm-ocr"])))
    looks = itertools.count()
    with pytest.raises(EngineError, match="nobody waits"):
        Generator(model, card, unwanted=lambda: next(looks) >= layers).answer(requests_of("glm-ocr", SIZES[:2]))
    assert next(looks) == layers + 1
    assert not model.computing.locked()
    assert Generator(model, card).answer(requests_of("glm-ocr", SIZES[:1], max_tokens=3))[0].completion_tokens


def test_a_batch_that_waits_for_another_pipeline_ends_too(folders):
    from pagemill.recognition.local.generation import Generator

    card = load_card("glm-ocr")
    model = load_shared(card, LocalModelSettings(weights=str(folders["glm-ocr"])))
    with model.computing, pytest.raises(EngineError, match="nobody waits"):
        Generator(model, card, unwanted=lambda: True).answer(requests_of("glm-ocr", SIZES[:1]))


def test_a_model_is_loaded_once_until_it_is_released(folders, monkeypatch):
    import pagemill
    from pagemill.recognition.local import model

    monkeypatch.setattr(model_cache, "_models", {})
    loads = []
    load = model._load
    monkeypatch.setattr(model, "_load", lambda *args, **more: loads.append(args) or load(*args, **more))
    first, second = (generator("glm-ocr", folders["glm-ocr"]) for _ in range(2))
    assert first._model is second._model
    generator("glm-ocr", folders["glm-ocr"], dtype="bfloat16")
    assert [str(args[2]) for args in loads] == ["torch.float32", "torch.bfloat16"]
    pagemill.release_models()
    assert generator("glm-ocr", folders["glm-ocr"])._model is not first._model
    assert len(loads) == 3


def test_memory_that_runs_out_on_one_request_refuses_it(folders, monkeypatch):
    model = generator("glm-ocr", folders["glm-ocr"])

    def generate(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(model._model.model, "generate", generate)
    with pytest.raises(torch.OutOfMemoryError):
        model.answer(requests_of("glm-ocr", SIZES[:2]))
    with pytest.raises(RequestRefusedError) as caught:
        model.answer(requests_of("glm-ocr", SIZES[:1]))
    assert caught.value.status == 413


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: cut(folder / "model.safetensors"), "cannot load"),
        (lambda folder: cut(folder / "tokenizer.json"), "cannot load the processor"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "bert"}'), "the kind 'bert'"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "deepseek_vl_v2"}'), "deepseek_vl_v2"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot read"),
        (lambda folder: drop_a_tensor(folder / "model.safetensors"), "lacks weights"),
    ],
)
def test_a_checkpoint_that_is_not_one_is_named_with_a_remedy(folders, tmp_path, harm, said):
    shutil.copytree(folders["glm-ocr"], tmp_path / "harmed")
    harm(tmp_path / "harmed")
    with pytest.raises(UnsupportedInputError, match=said) as caught:
        generator("glm-ocr", tmp_path / "harmed")
    assert caught.value.remedy


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_a_tensor(path):
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    del tensors[sorted(tensors)[0]]
    save_file(tensors, path, metadata={"format": "pt"})


def test_code_in_a_checkpoint_is_not_run_unless_its_model_is_named(folders, tmp_path):
    folder = shutil.copytree(folders["glm-ocr"], tmp_path / "remote")
    config = msgspec.json.decode((folder / "config.json").read_bytes())
    config |= {"model_type": "of_their_own", "auto_map": {"AutoConfig": "theirs.Config"}}
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    ran = tmp_path / "ran"
    (folder / "theirs.py").write_text(f"open({str(ran)!r}, 'w').close()\nraise RuntimeError('theirs')\n")
    with pytest.raises(UnsupportedInputError, match="of_their_own") as caught:
        generator("glm-ocr", folder)
    assert "--trust-remote-code" in caught.value.remedy
    assert not ran.exists()
    with pytest.raises(UnsupportedInputError, match="theirs"):
        generator("glm-ocr", folder, trust_remote_code="glm-ocr")
    assert ran.exists()


def test_a_device_that_is_not_there_is_named(folders):
    if torch.cuda.is_available():
        pytest.skip("it is there")
    with pytest.raises(UsageError, match="no cuda device") as caught:
        generator("glm-ocr", folders["glm-ocr"], device=TorchDevice.CUDA)
    assert "--recognition-device" in caught.value.remedy


async def test_the_run_reads_regions_in_batches_and_closing_ends_a_batch(folders, monkeypatch):
    recognition = RecognitionSettings(
        engine="transformers", model="glm-ocr", local=LocalModelSettings(weights=str(folders["glm-ocr"]), batch=3)
    )
    threads = ComputeThreads(2, name="test")
    reader = await load_reader(recognition, threads)
    await reader.check()
    assert reader.in_flight == 6
    pages = [draw_page(seed, size) for seed, size in enumerate(SIZES)]
    prepared = [reader.prepare(page, Task.TEXT) for page in pages]
    readings = await asyncio.gather(*(reader.read(each) for each in prepared))
    alone = generator("glm-ocr", folders["glm-ocr"]).answer(requests_of("glm-ocr", max_tokens=8192))
    assert [reading.content for reading in readings] == [answer.text.strip() for answer in alone]
    assert {reading.engine for reading in readings} == {"transformers:glm-ocr"}
    await reader.aclose()
    await threads.close()


def test_a_document_is_parsed_with_a_model_in_this_process(folders, tmp_path):
    from PIL import Image

    import pagemill

    pages = [Image.fromarray(draw_page(seed, (600, 800))) for seed in (1, 2)]
    pages[0].save(tmp_path / "pages.tiff", save_all=True, append_images=pages[1:])
    recognition = RecognitionSettings(
        engine="transformers", model="glm-ocr", local=LocalModelSettings(weights=str(folders["glm-ocr"]))
    )
    document = pagemill.parse(tmp_path / "pages.tiff", recognition=recognition)
    read = [region for page in document.pages for region in page.regions if region.content]
    assert len(document.pages) == 2
    assert read
    assert {region.engine for region in read} == {"transformers:glm-ocr"}
    by_page = pagemill.parse(
        tmp_path / "pages.tiff", recognition=replace(recognition, local=replace(recognition.local, batch=1))
    )
    assert by_page.markdown == document.markdown
    assert np.all([page.status == "done" for page in document.pages])
