import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pagemill.app.options import ParseOptions
from pagemill.app.run_plan import REFERENCE_CORPUS, RunOptions, completed, plan
from pagemill.cli import cli, exit_status, parse
from pagemill.cli.run import command
from pagemill.config.hardware import load_profile, profile_names, profile_text
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.config.options import build, secrets_of
from pagemill.errors import ExitCode, MissingDependencyError, MissingInputError, UsageError
from pagemill.serving.command import VARIABLE


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch, tmp_path):
    """Neither models nor vLLM."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in (MODELS_VARIABLE, VARIABLE, "HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def vllm(tmp_path) -> str:
    program = tmp_path / "vllm-env" / "bin" / "vllm"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(tmp_path / "vllm-env")


def planned(*arguments: str) -> list[list[str]]:
    """The commands of a dry run: servers and steps."""
    ended = CliRunner().invoke(command, ["--dry-run", *arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return [words for line in ended.stdout.splitlines() if (words := shlex.split(line, comments=True))]


def refuse(*arguments: str) -> None:
    CliRunner().invoke(command, ["--dry-run", *arguments], catch_exceptions=False, standalone_mode=False)


def test_what_parse_takes_run_takes_and_passes_on(vllm):
    names = {option.name for option in parse.command.params} - {"output", "check"}
    assert names <= {option.name for option in command.params}
    given = (
        *("--pages", "2-3", "--text-layer", "auto", "--reading", "regions", "--skip-duplicates", "--max-attempts", "3"),
        *(
            "--layout-engine",
            "onnx",
            "--page-timeout",
            "20.5",
            "--no-report",
            "--threads",
            "4",
            "--no-footnotes",
            "--workers",
            "5",
        ),
    )
    given = (*given, "--verbose")
    _, words = planned("scans", "--vllm", vllm, "--profile", "l4", "--step", "ocr", *given, "--password", "secret")
    assert words[:5] == ["pagemill", "parse", "scans", "-o", "output"]
    planned_too = ["--recognition-engine", "vlm", "--server", words[words.index("--server") + 1]]
    assert sorted(words[5:]) == sorted(
        word for word in (*given, *planned_too) if word not in ("--layout-engine", "onnx")
    )
    assert "secret" not in words


def test_all_steps(vllm):
    lines = planned(
        *("scans", "-o", "out", "--vllm", vllm, "--profile", "l4", "--hf-repo", "me/pages", "--licence", "cc0-1.0"),
        *("--hf-token", "secret", "--private", "--no-crops"),
    )
    assert [Path(words[0]).name for words in lines] == ["vllm", "pagemill", "vllm", "pagemill", "pagemill"]
    assert [words[1] for words in lines[1::2]] == ["parse", "embed"]
    assert "--no-crops" in lines[1]
    assert lines[4] == [
        *("pagemill", "publish", "out", "--repo", "me/pages", "--private", "--licence", "cc0-1.0", "--no-crops")
    ]
    assert not [words for words in lines if "secret" in words]
    server, parse = lines[:2]
    assert parse[parse.index("--server") + 1].endswith(server[server.index("--port") + 1])


def test_the_servers_of_all_steps_have_the_port_that_was_asked_for(vllm):
    lines = planned("scans", "--vllm", vllm, "--profile", "l4", "--port", "8123")
    assert [words[words.index("--port") + 1] for words in lines[::2]] == ["8123", "8123"]
    assert [words[words.index("--server") + 1] for words in lines[1::2]] == ["http://127.0.0.1:8123"] * 2


def test_the_published_options_reach_their_places(vllm):
    lines = planned(
        *("scans", "--output-dir", "out", "--vllm", vllm, "--profile", "l4", "--step", "ocr", "--resume"),
        *("--ocr-dtype", "bf16", "--gpu-mem-util", "0.6", "--batch-size", "16", "--workers", "64"),
    )
    server, parse = map(shlex.join, lines)
    assert "--gpu-memory-utilization 0.6" in server
    assert "--quantization fp8" not in server
    assert "--layout-batch 16" in parse
    assert "--workers 64" in parse
    assert "--resume" in parse.split()


@pytest.mark.parametrize("option", ["--resume", "--resume=required"])
def test_resuming_takes_no_input_for_its_value_and_reaches_parse_as_it_was_given(option):
    _, parse = planned("--step", "ocr", "--profile", "l4", option, "scans", "--layout-engine", "onnx")
    assert parse[2] == "scans"
    assert option in parse[3:]


def test_longer_answers_are_asked_for_and_the_server_has_room_for_them():
    server, parse, embedder, _ = planned(
        "scans", "--profile", "b200", "--max-tokens", "16384", "--layout-engine", "onnx"
    )
    assert parse[parse.index("--max-tokens") + 1] == "16384"
    assert [words[words.index("--max-model-len") + 1] for words in (server, embedder)] == ["22784", "8192"]


def test_the_image_column_is_that_of_the_pages_that_are_read_and_of_those_that_are_embedded(vllm):
    lines = planned("pages.parquet", "--vllm", vllm, "--profile", "l4", "--image-column", "scan")
    assert [words[words.index("--image-column") + 1] for words in lines[1::2]] == ["scan", "scan"]


@pytest.mark.parametrize("variant", ["2B", "2B-FP8", "8B-FP8"])
def test_an_embedding_model_may_be_named_by_its_repository(vllm, variant):
    repository = f"Qwen/Qwen3-VL-Embedding-{variant}"
    server, embed = planned(*("--step", "embed", "--vllm", vllm, "--profile", "l4", "--embedding-model", repository))
    assert embed[embed.index("--model") + 1] == f"qwen3-vl-embedding-{variant.lower()}"
    assert server[2] == repository
    assert "--quantization" not in server


def test_a_variant_of_a_known_model_is_refused_with_the_way_to_use_it(vllm):
    with pytest.raises(UsageError) as error:
        refuse("--step", "embed", "--vllm", vllm, "--embedding-model", "Qwen/Qwen3-VL-Embedding-2B-INT4")
    assert "the variant's files as its weights" in error.value.remedy


def test_a_layout_engine_that_is_not_installed_is_reported_before_anything_starts():
    with pytest.raises(UsageError, match="no layout engine 'nope'"):
        refuse("scans", "--server", "http://a:1", "--layout-engine", "nope")


def test_the_limits_of_servers_are_those_of_both(vllm):
    limits = ("--max-model-len", "4096", "--max-num-seqs", "7", "--max-num-batched-tokens", "4096")
    reading, _, embedding, _ = planned("scans", "--vllm", vllm, "--profile", "h100", *limits)
    for server in (reading, embedding):
        assert [server[server.index(flag) + 1] for flag in limits[::2]] == list(limits[1::2])
    # No text to embed is longer than the model card says, whatever pages need.
    embedding = planned("scans", "--vllm", vllm, "--profile", "h100", "--max-model-len", "32768")[2]
    assert embedding[embedding.index("--max-model-len") + 1] == "8192"


@pytest.mark.parametrize("profile", [name for name in profile_names() if name != "cpu"])
def test_the_default_runs_on_every_machine(vllm, profile):
    given = ("--vllm", vllm, "--profile", profile)
    lines = planned("scans", *given, *(["--memory", "32"] if profile == "mps" else []))
    assert [words[1] for words in lines if words[0] == "pagemill"] == ["parse", "embed"]


def test_where_the_large_embedding_model_does_not_fit_a_smaller_one_is_taken_and_named():
    ended = CliRunner().invoke(command, ["scans", "--dry-run", "--profile", "rtx4060"])
    assert "vllm serve Qwen/Qwen3-VL-Embedding-2B-FP8" in ended.stdout
    assert "embed output --engine vllm --model qwen3-vl-embedding-2b-fp8" in ended.stdout
    assert "qwen3-vl-embedding-2b does not fit on NVIDIA GeForce RTX 4060" in ended.stderr
    assert "qwen3-vl-embedding-2b-fp8 makes the vectors" in ended.stderr
    ended = CliRunner().invoke(command, ["scans", "--dry-run", "--profile", "rtx4060", "--memory", "7"])
    assert "embed output\n" in ended.stdout
    assert "the embedded engine ngram makes the vectors" in ended.stderr
    with pytest.raises(UsageError, match="does not fit"):  # what was asked for is not replaced
        refuse("scans", "--profile", "rtx4060", "--embedding-model", "qwen3-vl-embedding-2b")


@pytest.mark.parametrize("profile", ["b200", "l4", "rtx4060"])
@pytest.mark.parametrize("model", ["glm-ocr", "deepseek-ocr", "qwen3-vl-embedding-2b-fp8"])
def test_plan_run_and_serve_model_print_the_same_command(profile, model):
    given = ("--profile", profile)
    embeds = "embedding" in model
    step = ["--step", "embed", "--embedding-model", model] if embeds else ["scans", "--step", "ocr", "--model", model]
    run = CliRunner().invoke(command, ["--dry-run", *given, *step]).stdout.splitlines()[1]
    assert run.startswith("vllm serve")
    assert CliRunner().invoke(cli, ["serve-model", "--dry-run", *given, "--model", model]).stdout.splitlines() == [run]
    assert CliRunner().invoke(cli, ["plan", *given, "--model", model]).stdout.splitlines()[-1] == run


def test_a_model_in_the_process_of_the_step_needs_no_server():
    parse, embed = planned("scans", "--profile", "mps", "--recognition-engine", "transformers")
    assert parse == shlex.split(
        "pagemill parse scans -o output --recognition-engine transformers --layout-engine pp-doclayout-v3"
    )
    assert embed == ["pagemill", "embed", "output"]


def test_the_folder_of_the_embedding_model_is_named_by_its_own_option(tmp_path):
    with pytest.raises(UsageError) as caught:
        refuse("scans", "--profile", "l4", "--embedding-weights", str(tmp_path))
    assert "--embedding-weights" in caught.value.remedy
    with pytest.raises(UsageError) as caught:
        refuse("scans", "--profile", "l4", "--weights", str(tmp_path))
    assert "Give --weights" in caught.value.remedy


def test_an_input_that_looks_like_an_option_comes_after_the_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-scan.pdf").touch()
    parse, embed = planned("--server", "http://a:1", "-o", "-out", "--", "-scan.pdf", "other")
    assert parse[-3:] == ["--", "-scan.pdf", "other"]
    assert embed[2] == "./-out"
    reading = planned("--profile", "l4", "--step", "ocr", "--", "-scan.pdf")[1]
    assert reading[-4:] == ["--server", reading[-3], "--", "-scan.pdf"]


def test_planning_needs_no_package_that_talks_to_servers():
    code = "import sys; sys.modules['aiohttp'] = None\nfrom pagemill.cli import cli\n"
    commands = ("run scans --dry-run", "plan", "serve-model --dry-run")
    code += "".join(f"cli.main('{words} --profile l4'.split(), standalone_mode=False)\n" for words in commands)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout.count("vllm serve zai-org/GLM-OCR") == len(commands), ended.stderr


@pytest.mark.parametrize("option", [("--model", "qwen3-vl-embedding-2b"), ("--embedding-model", "glm-ocr")])
def test_a_model_of_another_kind_is_refused(vllm, option):
    with pytest.raises(UsageError, match="is a model for"):
        refuse("scans", "--vllm", vllm, "--profile", "l4", *option)


def test_without_vllm_the_ways_out_are_named():
    with pytest.raises(MissingDependencyError, match="vLLM") as error:
        CliRunner().invoke(command, ["scans"], catch_exceptions=False, standalone_mode=False)
    assert all(way in error.value.remedy for way in ("--vllm", "--server", "--recognition-engine lines"))


def test_a_dry_run_shows_the_commands_without_vllm_and_says_that_it_is_missing(tmp_path):
    ended = CliRunner().invoke(command, ["scans", "--dry-run", "--profile", "h100", "--replicas", "4"])
    assert ended.exit_code == 0
    lines = [shlex.split(line, comments=True) for line in ended.stdout.splitlines()]
    assert [words[1:3] for words in lines if words[1:2] == ["vllm"]] == [["vllm", "serve"]] * 8
    assert [words[1] for words in lines if words[:1] == ["pagemill"]] == ["parse", "embed"]
    assert ended.stderr.count("vLLM is not installed") == 1
    assert "pip install vllm" in ended.stderr
    assert "NVIDIA H100" in ended.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("model", ["deepseek-ocr", "deepseek-ai/DeepSeek-OCR-2"])
def test_a_model_that_reads_whole_pages_needs_no_layout_engine(model):
    arguments = ("scans", "--profile", "h100", "--step", "ocr", "--model", model)
    assert not [word for word in planned(*arguments)[1] if word.startswith("--layout")]


@pytest.mark.parametrize("option", [("--layout-engine", "onnx"), ("--layout-model", "x"), ("--batch-size", "8")])
def test_layout_options_are_left_out_for_such_a_model_and_that_is_reported(option):
    arguments = ["scans", "--profile", "h100", "--step", "ocr", "--model", "deepseek-ocr", "--dry-run", *option]
    ended = CliRunner().invoke(command, arguments)
    assert ended.exit_code == 0
    assert "--layout" not in ended.stdout
    assert f"reads whole pages and finds the regions itself: {option[0]} ignored." in ended.stderr


def test_a_dry_run_plans_for_the_other_machine_and_lists_what_this_one_lacks(monkeypatch):
    monkeypatch.setattr("pagemill.app.run_plan.find_spec", lambda name: None)
    monkeypatch.setattr("pagemill.app.run_plan.gpus", list)
    publish = ("--hf-repo", "me/x", "--licence", "mit")
    ended = CliRunner().invoke(command, ["scans", "--dry-run", "--profile", "b200", *publish])
    assert ended.exit_code == 0
    wanted = ("vllm serve zai", "pagemill parse")
    server, parse = (line for line in ended.stdout.splitlines() if line.startswith(wanted))
    assert "--quantization fp8" in server
    assert "--layout-engine pp-doclayout-v3 --layout-batch 16" in parse
    for lacking in (
        "torch and transformers are",
        "weights of pp-doclayout-v3",
        "no NVIDIA B200",
        "glm-ocr is",
        "no token",
    ):
        assert lacking in ended.stderr


@pytest.mark.parametrize("lacking", ["torch", "weights"])
def test_a_real_run_without_the_layout_model_is_refused_with_the_remedies(vllm, monkeypatch, lacking):
    monkeypatch.setattr("pagemill.app.run_plan.find_spec", lambda name: None if lacking == "torch" else name)
    monkeypatch.setattr("pagemill.app.run_plan.find_model", lambda card: None if lacking == "weights" else Path())
    arguments = ["scans", "--vllm", vllm, "--profile", "l4"]
    with pytest.raises((MissingDependencyError, MissingInputError), match=lacking) as caught:
        CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    remedy = {"torch": "gpu", "weights": "pagemill models download pp-doclayout-v3"}[lacking]
    assert remedy in caught.value.remedy
    assert "--layout-engine onnx" in caught.value.remedy


def test_without_input_the_reference_corpus_is_taken_after_saying_so(tmp_path):
    arguments = ["--dry-run", "--profile", "l4", "-o", str(tmp_path / "out"), "--embedding-model", "ngram"]
    ended = CliRunner().invoke(command, arguments)
    assert f"parsing the reference corpus, {REFERENCE_CORPUS}" in ended.stderr
    parse, embed = (shlex.split(line) for line in ended.stdout.splitlines() if line.startswith("pagemill"))
    assert parse[2] == REFERENCE_CORPUS
    assert embed[embed.index("--queries") + 1] == "auto"
    assert "licence" not in ended.output


def test_without_input_the_run_of_others_is_not_added_to(tmp_path, monkeypatch):
    (tmp_path / ".pagemill").mkdir()
    (tmp_path / ".pagemill" / "run.sqlite").touch()
    places = [f"{REFERENCE_CORPUS}/a.parquet"]
    monkeypatch.setattr("pagemill.app.run_plan.places_of", lambda _: places)
    assert completed(RunOptions(out=tmp_path))[0].inputs == (REFERENCE_CORPUS,)
    places.append("/scans/mine.pdf")
    with pytest.raises(UsageError, match="contains pages of /scans/mine"):
        completed(RunOptions(out=tmp_path))


def test_the_licence_of_an_upload_is_that_of_the_card_and_asked_for_by_nothing_else(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: cc-by-sa-4.0\n---\n")
    arguments = (str(tmp_path), "--profile", "l4", "--recognition-engine", "lines", "--embedding-model", "ngram")
    assert planned(*arguments, "--hf-repo", "me/x")[-1][-2:] == ["--licence", "cc-by-sa-4.0"]
    assert planned(*arguments, "--hf-repo", "me/x", "--licence", "mit")[-1][-2:] == ["--licence", "mit"]
    (tmp_path / "B").mkdir()
    (tmp_path / "B" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    (tmp_path / "B" / "page.png").touch()
    (tmp_path / "page.png").touch()
    assert planned(*arguments, "--hf-repo", "me/x")[-1][-2:] == ["--licence", "cc-by-sa-4.0"]
    with pytest.raises(UsageError, match="different licences"):
        refuse(*arguments, "--recursive", "--hf-repo", "me/x")
    (tmp_path / "README.md").unlink()
    assert planned(*arguments)
    with pytest.raises(UsageError, match="no dataset card"):
        refuse(*arguments, "--hf-repo", "me/x")


def test_the_embedded_engines_get_the_languages():
    parse, _ = planned("scans", "-o", "out", "--recognition-engine", "lines", "--lang", "ko,en")
    assert parse[parse.index("--lang") + 1] == "ko,en"


def test_without_vllm_and_with_a_server_the_embedded_engine_embeds():
    parse, embed = planned("scans", "--server", "http://a:1,http://b:2")
    assert [word for word in parse if word.startswith("http")] == ["http://a:1", "http://b:2"]
    assert embed == ["pagemill", "embed", "output"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "is a shell variable unset"),
        (("x", "--fresh", "--resume"), "--fresh starts over"),
        (("--step", "upload"), "--hf-repo"),
        (("--step", "upload", "--hf-repo", "me/x"), "--licence"),
        (("samples", "--hf-repo", "me/x"), "no dataset card"),
        (("--step", "upload", "--hf-repo", "me", "--licence", "cc0-1.0"), "USER/NAME"),
        (("--step", "upload", "--hf-repo", "me/x", "--licence", "CC BY"), "cc-by-4.0"),
        (("x", "-o", ""), "is a shell variable unset"),
        (("--step", "embed", "--fresh"), "--fresh requires the step ocr"),
        (("--step", "embed", "--retry-failed"), "--retry-failed requires the step ocr"),
        (
            ("x", "--embedding-model", "ngram", "--embedding-server", "http://a"),
            "--embedding-server requires an embedding model",
        ),
        (("x", "--recognition-engine", "lines", "--workers", "3"), "--workers requires"),
        (("x", "--recognition-engine", "lines", "--model", "glm-ocr"), "--model requires"),
        (("x", "--", "--enforce-eager"), "serve-model -- --enforce-eager"),
        (("x", "--recognition-engine", "transformers", "--ocr-dtype", "bf16"), "use --recognition-dtype"),
        (("x", "--lang", "ko"), "languages apply to line recognition"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(arguments, said, capsys):
    assert exit_status(lambda: command.main(["--dry-run", *arguments], standalone_mode=False)) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_secrets_reach_the_steps_in_their_environment_alone():
    parse = build(ParseOptions, {"recognition_engine": "vlm", "servers": ["http://a:1"], "password": "sesame"})
    options = RunOptions(inputs=("x",), parse=parse, layout_engine="onnx", embedding_model="ngram", hf_token="token")
    ocr, embed = plan(options)
    assert secrets_of(options) == {"HF_TOKEN": "token", "PAGEMILL_PASSWORD": "sesame"}
    assert not {"token", "sesame"} & {*ocr.arguments, *embed.arguments}


def test_a_measured_profile_decides_the_server_and_the_requests_in_flight(vllm, tmp_path):
    mine = tmp_path / "mine.toml"
    measured = {"max_num_seqs": 777, "workers": 48, "max_model_len": 8192, "measured": True}
    mine.write_text(profile_text(msgspec.structs.replace(load_profile("l4"), **measured)))
    given = ("scans", "--vllm", vllm, "--profile", str(mine))
    reading, parsing, embedding, _ = map(" ".join, planned(*given))
    assert "--max-num-seqs 777" in reading
    assert "--max-model-len 8192" in reading
    assert "--workers 48" in parsing
    assert "--max-num-seqs 777" in embedding
    assert "--workers 5" in " ".join(planned(*given, "--workers", "5")[1])
    assert "--workers" not in planned("scans", "--vllm", vllm, "--profile", "l4")[1]


def test_on_a_cluster_the_servers_are_started_there(monkeypatch):
    """This machine needs no vLLM then, and the step that parses gets the cluster, too."""
    monkeypatch.setenv("PATH", "")
    given = ("scans", "--ray", "10.0.0.5:6379", "--replicas", "auto", "--embedding-model", "ngram")
    commands = planned(*given, "--layout-engine", "onnx")
    assert [words[:2] for words in commands] == [["pagemill", "parse"], ["pagemill", "embed"]]
    assert commands[0][commands[0].index("--ray") + 1] == "10.0.0.5:6379"
    ended = CliRunner().invoke(command, ["--dry-run", *given, "--layout-engine", "onnx"])
    assert "glm-ocr on the cluster at 10.0.0.5:6379: one for each accelerator" in ended.stderr


def test_the_documentation_prints_the_commands_of_a_mac():
    page = (Path(__file__).parents[3] / "docs" / "run.md").read_text(encoding="utf-8")
    for words in planned("scans/", "-r", "-o", "output", "--profile", "mps", "--recognition-engine", "transformers"):
        assert f"\n{shlex.join(words)}\n" in page
