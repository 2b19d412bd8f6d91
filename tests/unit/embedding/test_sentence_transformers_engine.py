"""A model of that library, tiny and random, from a folder."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pagemill.embedding.base import EmbeddingInput, EngineSettings, Modality, Role
from pagemill.errors import MissingDependencyError, MissingInputError, UsageError
from pagemill.installation import install_extra

NAME = "pagemill.embedding.sentence_transformers_engine"


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    with pytest.raises(MissingDependencyError) as error:
        __import__(NAME)
    assert install_extra("embed") in error.value.remedy


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "mill", "wheel", "turns", "paper", "query", ":", "passage"]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder / "bert")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=12)
    whole = SentenceTransformer(
        modules=[transformer, Pooling(16)], prompts={"query": "query: ", "passage": "passage: "}, device="cpu"
    )
    whole.save(str(folder / "whole"))
    return folder / "whole"


def make(model: Path | str | None, **options: object):
    from pagemill.embedding.sentence_transformers_engine import create

    return create(
        EngineSettings(folder=Path("nowhere"), model=None if model is None else str(model), device="cpu", **options)
    )


def test_texts_with_the_models_prompts(model):
    from sentence_transformers import SentenceTransformer

    engine = make(model)
    assert engine.modalities == frozenset({Modality.TEXT})
    texts = ["the mill turns", "paper"]
    vectors = engine.embed(
        [
            EmbeddingInput(role=Role.PASSAGE, text=texts[0]),
            EmbeddingInput(role=Role.QUERY, text=texts[1]),
            EmbeddingInput(role=Role.PASSAGE, text=texts[1]),
        ]
    )
    library = SentenceTransformer(str(model), device="cpu")
    expected = library.encode(["passage: the mill turns", "query: paper", "passage: paper"])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert engine.identity.dimension == 16
    assert engine.identity.instructions == {"query": "query: ", "passage": "passage: ", "image": "passage: "}


def test_long_texts_are_counted(model):
    engine = make(model)
    engine.embed([EmbeddingInput(role=Role.PASSAGE, text="mill " * 50), EmbeddingInput(role=Role.PASSAGE, text="mill")])
    assert engine.cut_texts == 1


def test_the_same_files_elsewhere_are_the_same_model(model, tmp_path):
    import shutil

    here = make(model).identity
    there = make(shutil.copytree(model, tmp_path / "copy")).identity
    assert here.differences(there) == []
    (tmp_path / "copy" / "modules.json").write_text((tmp_path / "copy" / "modules.json").read_text() + " ")
    assert here.differences(make(tmp_path / "copy").identity)


def test_models_that_differ_inside_of_a_large_file_are_others(tmp_path):
    pytest.importorskip("sentence_transformers")
    from pagemill.embedding.sentence_transformers_engine import _digest

    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(20 * 2**20))
    before = _digest(tmp_path)
    assert _digest(tmp_path) == before
    with path.open("r+b") as stream:
        stream.seek(9 * 2**20)
        stream.write(b"\1" * 2**20)  # as another layer would
    assert _digest(tmp_path) != before


def test_a_folder_that_is_no_model(tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "nothing.at.all"}]')
    with pytest.raises(MissingInputError, match="cannot be loaded"):
        make(tmp_path)


def test_what_it_does_not_take(model, tmp_path):
    with pytest.raises(UsageError, match="runs a model here"):
        make(None)
    with pytest.raises(UsageError):
        make(model, servers=("http://x",))
