import numpy as np
import pytest

from pagemill.imaging.decode import decode_image
from pagemill.imaging.encode import PREVIEW_SIDE, encode_jpeg, encode_preview


def test_jpeg_keeps_colours_of_thin_lines():
    page = np.full((40, 40, 3), 255, np.uint8)
    page[:, 20] = (255, 0, 0)
    back = decode_image(encode_jpeg(page, quality=95)).pixels
    assert back[20, 20, 0] > 200
    assert back[20, 20, 1] < 60


def test_subsampled_jpegs_are_smaller():
    page = np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)
    assert len(encode_jpeg(page, subsampling="420")) < len(encode_jpeg(page))


@pytest.mark.parametrize(
    "part",
    [np.s_[5:15, 3:30], np.s_[5:15:2, 3:30], np.s_[::-1], np.s_[:, ::-1], np.s_[:, ::2], np.s_[..., ::-1]],
    ids=["slice", "every-other-row", "upside-down", "mirrored", "every-other-column", "bgr"],
)
def test_views_of_a_page_are_encoded_like_copies(part):
    page = np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)
    assert encode_jpeg(page[part]) == encode_jpeg(page[part].copy())
    assert decode_image(encode_preview(page[part])).pixels.shape == page[part].shape


def test_previews_are_small():
    preview = decode_image(encode_preview(np.full((3000, 2000, 3), 255, np.uint8)))
    assert preview.pixels.shape == (PREVIEW_SIDE, 667, 3)


def test_no_pixels_is_an_error():
    with pytest.raises(ValueError):
        encode_jpeg(np.zeros((0, 5, 3), np.uint8))
