import json
from pathlib import Path

import pytest

from pagemill.config.model_cards import Architecture
from pagemill.errors import UsageError
from pagemill.serving.memory import architecture_of, read_weights

TEXT = {
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 1536,
    "max_position_embeddings": 131_072,
}
GLM = Architecture(layers=16, kv_heads=8, head_dim=128, hidden_size=1536, max_position=131_072)


def test_a_folder_gives_size_and_architecture(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"text_config": TEXT, "vision_config": {"hidden_size": 1024}}))
    (tmp_path / "a.safetensors").write_bytes(b"x" * 100)
    (tmp_path / "b.safetensors").write_bytes(b"x" * 50)
    (tmp_path / "tokenizer.json").write_bytes(b"x" * 10)
    found = read_weights(tmp_path)
    assert (found.stored_bytes, found.architecture) == (150, GLM)


@pytest.mark.parametrize("config", [TEXT, {"language_config": TEXT}, {"text_config": TEXT, "hidden_size": 9}])
def test_the_text_model_is_found_where_configurations_have_it(config: dict[str, object]):
    assert architecture_of(config, "x") == GLM


def test_what_is_left_out_follows_from_the_rest():
    short = {key: value for key, value in TEXT.items() if key not in {"head_dim", "num_key_value_heads"}}
    found = architecture_of(short, "x")
    assert (found.kv_heads, found.head_dim) == (16, 96)


def test_weights_in_fp8_are_known():
    assert architecture_of(TEXT | {"quantization_config": {"quant_method": "fp8"}}, "x").stored_bits == 8


@pytest.mark.parametrize("value", [None, "16", 0, -1, True, 2.5])
def test_a_number_that_is_none_is_refused_by_its_name(value: object):
    with pytest.raises(UsageError, match="num_hidden_layers"):
        architecture_of(TEXT | {"num_hidden_layers": value}, "x")


@pytest.mark.parametrize("text", [None, "", "[]", "{", '"x"'])
def test_a_folder_without_a_configuration_is_refused(tmp_path: Path, text: str | None):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError, match=r"not a checkpoint|not a model's config"):
        read_weights(tmp_path)
