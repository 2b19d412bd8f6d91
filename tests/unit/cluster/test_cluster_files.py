"""The cluster files of ``examples/cluster`` hold against the schemas of those who read them."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import validate

from pagemill.cli.parse import command

FILES = Path(__file__).parents[3] / "examples" / "cluster"


def read(name):
    return yaml.safe_load((FILES / name).read_text(encoding="utf-8"))


def test_ray_cluster():
    ray = find_spec("ray")
    if ray is None:
        pytest.skip("Ray is not installed")
    schema = Path(ray.submodule_search_locations[0]) / "autoscaler" / "ray-schema.json"
    cluster = read("ray-cluster.yaml")
    # Of providers without an autoscaler, which the schema leaves out: the machines are all there are.
    assert cluster.pop("min_workers") == cluster["max_workers"] == len(cluster["provider"]["worker_ips"])
    validate(cluster, json.loads(schema.read_text(encoding="utf-8")))


def test_rayjob():
    job = read("rayjob.yaml")
    validate(job, json.loads((Path(__file__).parent / "rayjob_schema.json").read_text(encoding="utf-8")))
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]} <= volumes


def commands():
    ray = (FILES / "ray-cluster.yaml").read_text(encoding="utf-8")
    return [*re.findall(r"'(pagemill parse [^']*)'", ray), read("rayjob.yaml")["spec"]["entrypoint"]]


@pytest.mark.parametrize("line", commands())
def test_their_commands_have_options_that_exist(line):
    program, name, *arguments = shlex.split(line)
    assert (program, name) == ("pagemill", "parse")
    context = CliRunner().invoke(command, [*arguments, "--help"])
    assert context.exit_code == 0
    known = {flag for option in command.params for flag in option.opts}
    assert {word for word in arguments if word.startswith("-")} <= known
