from pathlib import Path

import pytest

from pagemill.config.serving import ServingOptions
from pagemill.errors import MissingInputError, UsageError
from pagemill.serving import replicas
from pagemill.serving.replicas import prepare


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PAGEMILL_VLLM", str(program))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "PAGEMILL_MODELS"):
        monkeypatch.delenv(name, raising=False)


def devices(**options: object) -> list[str | None]:
    serving = prepare(ServingOptions(profile="l4", **options))
    return [spec.environment.get("CUDA_VISIBLE_DEVICES") for spec in serving.specs]


def test_one_server_takes_what_it_finds():
    assert devices() == [None]


def test_several_have_one_accelerator_each(monkeypatch: pytest.MonkeyPatch):
    assert devices(replicas=2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,6")
    assert devices(replicas=2) == ["3", "5"]


@pytest.mark.parametrize(("visible", "found"), [("0", 4), ("", 4), (None, 1)])
def test_more_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch, visible: str | None, found: int):
    monkeypatch.setattr(replicas, "gpus", lambda: [None] * found)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(UsageError, match="2 replicas need 2 accelerators"):
        devices(replicas=2)


def test_ports_follow_one_another():
    specs = prepare(ServingOptions(profile="l4", replicas=2, port=9000)).specs
    assert [spec.port for spec in specs] == [9000, 9001]
    specs = prepare(ServingOptions(profile="l4", replicas=2)).specs
    assert [(spec.port, spec.preferred_port) for spec in specs] == [(None, 8000), (None, 8001)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 0},
        {"port": 0},
        {"port": 65535, "replicas": 2},
        {"extra": ("--port", "1")},
        {"extra": ("--host=::",)},
        {"options": ("turbo",)},
        {"host": "nosuch.invalid"},
        {"model": "got-ocr2"},  # which vLLM does not have
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]):
    with pytest.raises(UsageError):
        prepare(ServingOptions(profile="l4", **wrong))


def test_a_folder_is_served_in_place_of_the_repository(tmp_path: Path):
    (tmp_path / "config.json").write_text(
        '{"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 64, "max_position_embeddings": 512}'
    )
    serving = prepare(ServingOptions(profile="l4", weights=tmp_path))
    assert serving.specs[0].command(1)[2] == str(tmp_path)
    assert serving.specs[0].max_model_len == 512


def test_the_local_mirror_comes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mirror = tmp_path / "models"
    (mirror / "glm-ocr").mkdir(parents=True)
    (mirror / "glm-ocr" / "config.json").write_text("{}")
    (mirror / "glm-ocr" / "model.safetensors").touch()
    monkeypatch.setenv("PAGEMILL_MODELS", str(mirror))
    assert prepare(ServingOptions(profile="l4")).specs[0].model == str(mirror / "glm-ocr")


def test_a_mirror_that_is_not_there_is_reported_and_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAGEMILL_MODELS", str(tmp_path / "unmounted"))
    with pytest.raises(MissingInputError, match=r"PAGEMILL_MODELS names .*unmounted, which is not a folder"):
        prepare(ServingOptions(profile="l4"))


def test_offline_without_the_model_is_reported_before_anything_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicas, "find_model", lambda card: None)
    assert prepare(ServingOptions(profile="l4")).specs[0].model == "zai-org/GLM-OCR"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingInputError) as caught:
        prepare(ServingOptions(profile="l4"))
    assert "pagemill models download glm-ocr" in str(caught.value.remedy)


def test_what_this_machine_lacks_is_noted_where_servers_are_only_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAGEMILL_VLLM", str(tmp_path / "none"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(replicas, "find_model", lambda card: None)
    serving = prepare(ServingOptions(profile="h100", replicas=2, host="nosuch.invalid"), dry=True)
    assert [type(error).__name__ for error in serving.lacking] == [
        *("UsageError", "MissingDependencyError", "MissingInputError", "UsageError")
    ]
    assert all(error.remedy for error in serving.lacking)
    assert [spec.environment["CUDA_VISIBLE_DEVICES"] for spec in serving.specs] == ["0", "1"]
    assert serving.specs[0].command(8000)[:3] == ["vllm", "serve", "zai-org/GLM-OCR"]
    assert not (tmp_path / "state").exists()


def test_what_makes_no_sense_anywhere_is_refused_there_too():
    for wrong in ({"options": ("turbo",)}, {"extra": ("--port", "1")}, {"replicas": 0}):
        with pytest.raises(UsageError):
            prepare(ServingOptions(profile="l4", **wrong), dry=True)


def test_the_users_name_and_length_decide_what_can_be_used_again():
    spec = prepare(ServingOptions(profile="l4", extra=("--served-model-name=mine", "--max-model-len", "2048"))).specs[0]
    assert (spec.served_name, spec.max_model_len) == ("mine", 2048)


def test_old_logs_are_forgotten(tmp_path: Path):
    folder = tmp_path / "state" / "pagemill" / "servers"
    folder.mkdir(parents=True)
    for number in range(40):
        (folder / f"old-{number}.log").touch()
    (folder / "gone.log").symlink_to("nothing")  # as one that another server deletes at this moment
    prepare(ServingOptions(profile="l4"))
    assert len([*folder.iterdir()]) == 20
