"""Encoded pages to the model's input: which decoder takes which page, and what a broken one does."""

import contextlib
import io
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import cv2
import numpy as np
import pytest
from PIL import Image

from pagemill.document.labels import Label
from pagemill.errors import CorruptInputError, EngineError, PagemillError, UnsupportedInputError
from pagemill.imaging.decode import decode_image
from pagemill.layout.pp_doclayout.encoded import JpegDecoder, ModelInput, find_jpeg_decoder, load_inputs
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_on_device, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation, PPDocLayoutSettings
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine
from pagemill_bench.testing.drawn_pages import draw_page


def encode(pixels: np.ndarray, kind: str, *, orientation: int = 1) -> bytes:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(buffer, kind, quality=95, exif=exif)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return draw_page(1, (1700, 2300))


@pytest.fixture
def decoders():
    with ThreadPoolExecutor(2) as pool:
        yield pool


class Doubles:
    """A decoder on a device that gives inputs of one value, or refuses."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.asked: list[bytes] = []

    def inputs(self, pages, interpolation):
        self.asked += pages
        return None if self.refuses else [np.full((INPUT_SIDE, INPUT_SIDE, 3), 7, np.uint8) for _ in pages]


def load(pages, decoders, jpeg_decoder=None, interpolation=Interpolation.BICUBIC):
    return load_inputs(pages, interpolation, decoders, jpeg_decoder)


@pytest.mark.parametrize("interpolation", Interpolation)
def test_a_png_is_decoded_in_full_and_a_large_jpeg_at_half_its_size(drawn, decoders, interpolation):
    png, jpeg = load([encode(drawn, "PNG"), encode(drawn, "JPEG")], decoders, interpolation=interpolation)
    (expected,) = resize_pages([drawn], interpolation)
    assert png.size == jpeg.size == (1700, 2300)
    np.testing.assert_array_equal(png.pixels, expected)
    half = cv2.resize(drawn, (850, 1150), interpolation=cv2.INTER_AREA)
    (smoothed,) = resize_pages([half], interpolation)
    assert np.abs(jpeg.pixels.astype(int) - smoothed).mean() < 3


def test_a_page_below_twice_the_input_is_decoded_in_full(decoders):
    data = encode(draw_page(2, (1599, 2000)), "JPEG")
    (page,) = load([data], decoders)
    np.testing.assert_array_equal(page.pixels, resize_pages([decode_image(data).pixels], Interpolation.BICUBIC)[0])


@pytest.mark.parametrize("orientation", [2, 3, 5, 8])
def test_pages_are_brought_upright(drawn, decoders, orientation):
    data = encode(drawn, "JPEG", orientation=orientation)
    upright = decode_image(data).pixels
    (page,) = load([data], decoders)
    assert page.size == (upright.shape[1], upright.shape[0])
    (expected,) = resize_pages([upright], Interpolation.BILINEAR)
    assert np.corrcoef(page.pixels.ravel(), expected.ravel())[0, 1] > 0.9


def test_broken_bytes_fail_their_page_alone(drawn, decoders):
    whole = encode(drawn, "JPEG")
    found = load([b"", whole[: len(whole) // 2], whole, b"no image"], decoders)
    assert [type(page) for page in found] == [CorruptInputError, CorruptInputError, ModelInput, UnsupportedInputError]


def test_the_device_gets_plain_jpegs_and_the_cpu_all_else(drawn, decoders):
    whole = encode(drawn, "JPEG")
    cmyk = io.BytesIO()
    Image.fromarray(drawn).convert("CMYK").save(cmyk, "JPEG")
    others = [encode(drawn, "PNG"), encode(drawn, "JPEG", orientation=6), cmyk.getvalue(), whole[:-2], b"no image"]
    device = Doubles()
    found = load([whole, *others, whole], decoders, device)
    assert device.asked == [whole, whole]
    assert [isinstance(page, PagemillError) for page in found] == [False] * 5 + [True, False]
    assert all((found[i].pixels == 7).all() and found[i].size == (1700, 2300) for i in (0, 6))
    assert all((page.pixels != 7).any() for page in found[1:5])


def test_what_the_device_refuses_is_judged_on_the_cpu(drawn, decoders):
    whole = encode(drawn, "JPEG")
    broken = whole[:40_000] + whole[-2:]
    device = Doubles(refuses=True)
    sound, failed = load([whole, broken], decoders, device)
    assert device.asked == [whole, broken]
    assert sound.size == (1700, 2300)
    assert isinstance(failed, CorruptInputError)


class Answers:
    """A model that sees text in the upper half of a page, and gives no numbers for one of one colour."""

    labels = tuple(Label)
    max_batch = 4
    jpeg_decoder = None

    def predict(self, pages, interpolation, mask_threshold):
        scores = np.zeros((300, len(Label)), dtype=np.float32)
        scores[0, self.labels.index(Label.TEXT)] = 0.9
        boxes = np.tile(np.array([0.0, 0.0, 1.0, 0.5], dtype=np.float32), (300, 1))
        order = np.zeros(300, dtype=np.float32)
        return [
            RawPage(scores if page.min() < page.max() else np.full_like(scores, np.nan), boxes, order) for page in pages
        ]


def test_regions_lie_on_the_page_as_it_is_stored_and_errors_in_their_place(drawn, decoders):
    engine = PPDocLayoutEngine(Answers(), PPDocLayoutSettings())
    blank = encode(np.full((50, 50, 3), 255, np.uint8), "PNG")
    first, broken, blind, last = engine.detect_encoded(
        [encode(drawn, "JPEG"), b"broken", blank, encode(drawn, "PNG")], decoders
    )
    assert [region.box for region in first] == [region.box for region in last] == [(0, 0, 1700, 1150)]
    assert isinstance(broken, UnsupportedInputError)
    assert isinstance(blind, EngineError)
    assert engine.detect_encoded([], decoders) == []
    assert isinstance(engine.detect_encoded([b"broken"], decoders)[0], UnsupportedInputError)


class Device(Answers):
    """A model on a device that decodes all JPEGs but those of one content, and refuses a batch that holds one."""

    def __init__(self, refused: bytes) -> None:
        self.jpeg_decoder, self.refused = self, refused
        self.calls: list[int] = []

    def pages(self, pages, interpolation):
        self.calls.append(len(pages))
        if self.refused in pages:
            return None
        decoded = [decode_image(page).pixels for page in pages]
        return [(resize_pages([pixels], interpolation)[0], pixels) for pixels in decoded]


def test_jpegs_that_the_device_refuses_are_left_to_the_cpu_one_by_one(drawn):
    sound, refused = encode(drawn, "JPEG"), encode(drawn[:900], "JPEG")
    device = Device(refused)
    engine = PPDocLayoutEngine(device, PPDocLayoutSettings())
    assert engine.decodes_jpegs
    first, none, last = engine.detect_jpegs([sound, refused, sound])
    assert none is None
    assert device.calls == [3, 1, 1, 1]
    for found in (first, last):
        np.testing.assert_array_equal(found.pixels, decode_image(sound).pixels)
        assert [region.box for region in found.regions] == [(0, 0, 1700, 1150)]
    assert not PPDocLayoutEngine(Answers(), PPDocLayoutSettings()).decodes_jpegs


@pytest.mark.parametrize("interpolation", Interpolation)
@pytest.mark.parametrize("size", [(1700, 2300), (300, 900)])
def test_resizing_on_the_device_takes_the_same_samples(interpolation, size):
    torch = pytest.importorskip("torch")
    page = draw_page(3, size)
    resized = resize_on_device(torch.from_numpy(page).permute(2, 0, 1), interpolation).numpy()
    (expected,) = resize_pages([page], interpolation)
    assert np.abs(resized.astype(int) - expected).max() <= 2


def test_there_is_no_jpeg_decoder_without_cuda():
    torch = pytest.importorskip("torch")
    assert find_jpeg_decoder(torch.device("cpu")) is None


def test_the_decoder_gives_inputs_and_pixels(drawn, monkeypatch):
    """With the CPU in the place of the GPU, its stream and its decoder."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision.io")
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Mock())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    decoder = JpegDecoder(torch.device("cpu"))

    def decode(encoded):
        try:
            pages = [decode_image(page.numpy().tobytes()).pixels for page in encoded]
        except PagemillError as error:  # torchvision raises this
            raise RuntimeError from error
        return [torch.from_numpy(pixels).permute(2, 0, 1) for pixels in pages]

    monkeypatch.setattr(decoder, "_decode", decode)
    data = encode(drawn, "JPEG")
    ((resized, pixels),) = decoder.pages([data], Interpolation.BICUBIC)
    (alone,) = decoder.inputs([data], Interpolation.BICUBIC)
    assert torch.equal(resized, alone)
    assert (pixels.shape, pixels.dtype) == ((2300, 1700, 3), np.uint8)
    np.testing.assert_array_equal(pixels, decode_image(data).pixels)
    assert pixels.flags.c_contiguous
    assert decoder.pages([data, b"broken"], Interpolation.BICUBIC) is None


def test_nvjpeg_gives_the_same_pixels(drawn):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or (decoder := find_jpeg_decoder(torch.device("cuda"))) is None:
        pytest.skip("needs CUDA and torchvision")
    data = encode(drawn, "JPEG")
    ((_, pixels),) = decoder.pages([data], Interpolation.BICUBIC)
    assert np.abs(pixels.astype(int) - decode_image(data).pixels).mean() < 1


def test_nvjpeg_gives_the_same_inputs(drawn, decoders):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or (decoder := find_jpeg_decoder(torch.device("cuda"))) is None:
        pytest.skip("needs CUDA and torchvision")
    data = encode(drawn, "JPEG")
    grey = io.BytesIO()
    Image.fromarray(drawn[..., 0]).save(grey, "JPEG", quality=95)
    broken = data[:40_000] + b"\xff\xd9"
    for each in (data, grey.getvalue()):
        (page,) = load([each], decoders, decoder)
        (expected,) = resize_pages([decode_image(each).pixels], Interpolation.BICUBIC)
        assert page.pixels.device.type == "cuda"
        assert np.abs(page.pixels.cpu().numpy().astype(int) - expected).mean() < 3
    sound, _ = load([data, broken], decoders, decoder)
    assert isinstance(sound, ModelInput)
