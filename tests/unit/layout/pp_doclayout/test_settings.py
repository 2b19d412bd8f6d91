"""The settings file of PP-DocLayout."""

import pytest

from pagemill.config.modes import TorchDevice
from pagemill.document.labels import Label
from pagemill.errors import MissingInputError, UsageError
from pagemill.layout.pp_doclayout.settings import Interpolation, Merge, PPDocLayoutSettings, read_settings


def test_the_defaults_are_those_of_the_glm_ocr_pipeline():
    filters = PPDocLayoutSettings().filters
    assert (filters.threshold, filters.same_class_iou, filters.other_class_iou, filters.contained) == (
        0.3,
        0.6,
        0.98,
        0.8,
    )
    assert filters.merge is Merge.LARGE
    assert filters.merges == {Label.REFERENCE: Merge.SMALL}
    assert filters.never_contained == {Label.IMAGE, Label.SEAL, Label.CHART}
    assert (filters.oversized_landscape, filters.oversized_portrait) == (0.82, 0.93)
    assert (filters.unclip, filters.unclips) == ((1.0, 1.0), {})


def test_a_file_sets_what_it_names(tmp_path):
    path = tmp_path / "layout.toml"
    path.write_text(
        """
        device = "cpu"
        interpolation = "bilinear"
        max_batch = 4
        [filters]
        threshold = 0.4
        unclip = [1.1, 1.2]
        [filters.thresholds]
        table = 0.25
        [filters.merges]
        text = "union"
        """
    )
    chosen = read_settings(path)
    assert (chosen.device, chosen.interpolation, chosen.max_batch) == (TorchDevice.CPU, Interpolation.BILINEAR, 4)
    assert (chosen.filters.threshold, chosen.filters.thresholds) == (0.4, {Label.TABLE: 0.25})
    assert chosen.filters.merges == {Label.TEXT: Merge.UNION}
    assert chosen.filters.unclip == (1.1, 1.2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("device = 'tpu'", "tpu"),
        ("devise = 'cpu'", "devise"),
        ("[filters]\nthreshold = 1.5", "threshold"),
        ("[filters.thresholds]\nparagraf = 0.5", "paragraf"),
        ("[filters]\nunclip = [0, 1]", "unclip"),
        ("device = ", "not valid"),
        ("max_batch = 0", "max_batch"),
    ],
)
def test_a_mistake_is_named(tmp_path, content, said):
    path = tmp_path / "layout.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=said):
        read_settings(path)


def test_a_missing_or_binary_file_is_told(tmp_path):
    with pytest.raises(MissingInputError):
        read_settings(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not valid"):
        read_settings(tmp_path / "binary.toml")
