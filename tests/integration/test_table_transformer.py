"""Table Transformer: a tiny random checkpoint through the real engine, on the CPU."""

import json
import shutil

import numpy as np
import pytest

from pagemill.config.settings import TableEngineSettings
from pagemill.errors import MissingDependencyError, UnsupportedInputError
from pagemill.tables.structure_model import CheckedModel
from pagemill.tables.table_transformer import DETECTION, STRUCTURE, TableDetector, create
from pagemill_bench.testing.drawn_pages import draw_page

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.20")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTS = (
    *("table", "table column", "table row", "table column header", "table projected row header"),
    "table spanning cell",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import tiny_torch_checkpoints

    base = tmp_path_factory.mktemp("tables")
    tiny_torch_checkpoints.table_transformer(base / STRUCTURE, PARTS)
    tiny_torch_checkpoints.table_transformer(base / DETECTION, ("table", "table rotated"))
    return base


@pytest.fixture(scope="module")
def images():
    return [draw_page(seed, size) for seed, size in enumerate([(300, 200), (400, 300), (300, 200)])]


def test_a_batch_equals_one_by_one_equals_transformers_itself(folder, images):
    from PIL import Image

    detector = TableDetector(folder / STRUCTURE)
    together = detector.detect(images, 0.1)
    own = transformers.TableTransformerForObjectDetection.from_pretrained(folder / STRUCTURE).eval()
    processor = transformers.DetrImageProcessorPil.from_pretrained(folder / STRUCTURE)
    assert all(together)
    for image, found in zip(images, together, strict=True):
        (alone,) = detector.detect([image], 0.1)
        inputs = processor(images=Image.fromarray(image), return_tensors="pt")
        with torch.inference_mode():
            outputs = own(**inputs)
        (theirs,) = processor.post_process_object_detection(outputs, threshold=0.1, target_sizes=[image.shape[:2]])
        order = theirs["scores"].argsort(descending=True, stable=True)
        scores = [each.score for each in found]
        assert [each.label for each in alone] == [PARTS[label] for label in theirs["labels"][order].tolist()]
        assert np.allclose([each.score for each in alone], theirs["scores"][order], atol=1e-6)
        assert np.allclose(scores, [each.score for each in alone], atol=1e-4)
        assert np.allclose([each.box for each in found], [each.box for each in alone], atol=0.05)
    assert together[0] != together[2]


def test_the_engine_gives_grids_and_tables_whatever_the_model_sees(folder, images):
    engine = create(TableEngineSettings(name="table-transformer", model=str(folder)))
    for image in images:
        CheckedModel(engine).predict(image)  # raises where the cells do not tile a grid
        for x1, y1, x2, y2 in engine.find(image):
            assert 0 <= x1 < x2 <= image.shape[1]
            assert 0 <= y1 < y2 <= image.shape[0]
    again = create(TableEngineSettings(name="table-transformer", model=str(folder)))
    assert again._structure is engine._structure  # loaded once a process


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"model_type": "bert"}, UnsupportedInputError, "the kind 'bert'"),
        ({"backbone_config": None, "use_timm_backbone": True, "backbone": "resnet18"}, MissingDependencyError, "timm"),
        ({"num_queries": 31}, UnsupportedInputError, "cannot load the table model"),
    ],
)
def test_another_or_incomplete_model_is_named(folder, tmp_path, change, error, said):
    shutil.copytree(folder / STRUCTURE, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(error, match=said) as caught:
        create(TableEngineSettings(name="table-transformer", model=str(tmp_path / "model")))
    assert caught.value.remedy


def test_a_document_is_parsed_with_it(folder, images, tmp_path):
    from PIL import Image

    import pagemill

    Image.fromarray(draw_page(1, (600, 800))).save(tmp_path / "page.png")
    document = pagemill.parse(tmp_path / "page.png", table_engine="table-transformer", table_model=str(folder))
    assert [page.status for page in document.pages] == ["done"]
    assert not [error for page in document.pages for error in page.errors if error.component == "table"]
