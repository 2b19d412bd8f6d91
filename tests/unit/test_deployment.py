"""The files of ``examples/deploy/``: their schemas, and that they say what the server and its image do."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pagemill.config.options import options_of
from pagemill.rest.settings import LimitSettings, ServeSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples/deploy"


def manifests() -> dict[str, Any]:
    found = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    return {each["kind"]: each for each in found}


def commands() -> list[list[str]]:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    pod = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    return [compose["services"]["pagemill"]["command"], pod["containers"][0]["args"]]


def test_the_compose_file_follows_its_schema() -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    run = subprocess.run([*command, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_manifests_follow_the_schemas_of_kubernetes() -> None:
    validator = pytest.importorskip(
        "kubernetes_validate", reason="its schemas take 108 MB; pip install kubernetes-validate"
    )
    for manifest in manifests().values():
        validator.validate(manifest, "1.31", strict=True)


@pytest.mark.parametrize("command", commands(), ids=["compose", "kubernetes"])
def test_servers_are_started_with_options_that_exist(command: list[str]) -> None:
    known = {flag for each in options_of(ServeSettings) for flag in each.flags}
    assert command[0] == "serve"
    assert {word for word in command if word.startswith("--")} <= known


def test_the_manifests_name_each_other() -> None:
    found = manifests()
    pod = found["StatefulSet"]["spec"]["template"]
    assert found["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert (
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        == found["PersistentVolumeClaim"]["metadata"]["name"]
    )
    backend = found["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": "pagemill", "port": {"name": found["Service"]["spec"]["ports"][0]["name"]}}
    # The image's user, by number; and proxies take what the server takes.
    assert f"USER {pod['spec']['securityContext']['runAsUser']}:" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    most = LimitSettings().max_job_bytes
    assert most <= 2 * 2**30
    assert "client_max_body_size 2g;" in (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
