"""The files of deploy/ are valid scripts, manifests that fit their schemas, and commands that exist."""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement
from referencing import Registry, Resource
from typer.main import get_command

from vlrl.cli.app import app
from vlrl.config import load_config

ROOT = Path(__file__).parents[2]
DEPLOY, SCHEMAS = ROOT / "deploy", Path(__file__).parent / "schemas"
PAGE = ROOT / "docs" / "clusters.md"
SCRIPTS = sorted(DEPLOY.glob("*.sh"))
TASK = yaml.safe_load((DEPLOY / "skypilot.yaml").read_text())
JOB = yaml.safe_load((DEPLOY / "rayjob.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def check_with(program: str, *arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of the development environment."""
    path = shutil.which(program, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert path, f"{program} is missing: make dev"
    return subprocess.run([path, *map(str, arguments)], input=text, capture_output=True, text=True)


BASH = [pytest.param(script.read_text(), id=script.name) for script in SCRIPTS]
BASH += [pytest.param(f"#!/bin/bash\n{TASK[name]}", id=f"skypilot-{name}") for name in ("setup", "run")]


@pytest.mark.parametrize("text", BASH)
def test_bash_and_shellcheck_find_no_fault(text: str) -> None:
    parsed = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert parsed.returncode == 0, parsed.stderr
    # 1091: what is sourced is made at installation. 2086: VLRL_ARGUMENTS is meant to be split into words.
    checked = check_with("shellcheck", "--exclude=SC1091,SC2086", "-", text=text)
    assert checked.returncode == 0, checked.stdout


def test_shellcheck_sees_a_fault() -> None:
    assert check_with("shellcheck", "-", text="#!/bin/bash\ncd /x\nrm -r *\n").returncode == 1


def test_hadolint_finds_no_fault() -> None:
    checked = check_with("hadolint", DEPLOY / "Dockerfile")
    assert checked.returncode == 0, checked.stdout
    worse = check_with("hadolint", "-", text=DOCKERFILE.replace("FROM ${BASE}", "FROM debian:latest"))
    assert "DL3007" in worse.stdout


def test_the_image_has_the_tested_set_a_compiler_and_no_root() -> None:
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line]
    runs = " ; ".join(rest for word, rest in steps if word == "RUN")
    installed = set(re.findall(r"-r (\S+)", runs))
    assert installed == {"/opt/vlrl/requirements/cuda.lock", "/opt/vlrl/requirements/cluster.lock"}
    assert {"gcc", "libc6-dev", "python3-dev", "wget"} <= set(runs.split())
    assert [rest for word, rest in steps if word == "USER"] == ["1001"]
    for source in (part for word, rest in steps if word == "COPY" for part in rest.split()[:-1]):
        assert (ROOT / source).exists(), source


def test_cluster_lock_completes_cuda_lock_for_ray_s_dashboard() -> None:
    def names(lock: str) -> set[str]:
        text = (ROOT / "requirements" / f"{lock}.lock").read_text()
        return set(re.findall(r"^([\w.-]+)==", text, flags=re.MULTILINE))

    needed = [Requirement(each) for each in requires("ray") or ()]
    extra = {each.name for each in needed if each.marker and each.marker.evaluate({"extra": "default"})}
    missing = {name.lower().replace("_", "-") for name in extra} - names("cuda") - names("cluster")
    assert not missing, "run tools/lock.py cluster"
    assert "opencensus" in names("cluster")
    assert not names("cluster") & names("cuda")


def errors(schema: str, document: Any) -> list[str]:
    """Where a document does not fit a schema, and how."""
    loaded = {file.name: json.loads(file.read_text()) for file in SCHEMAS.glob("*.json")}
    draft = "https://json-schema.org/draft/2020-12/schema"
    resources = [(n, Resource.from_contents({"$schema": draft, **each})) for n, each in loaded.items()]
    validator = Draft202012Validator(loaded[schema], registry=Registry().with_resources(resources))
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(document)]


def changed(document: Any, path: str, value: Any) -> Any:
    """A copy of a document with another value at a dotted path."""
    tree = node = copy.deepcopy(document)
    *parents, leaf = path.split(".")
    for parent in parents:
        node = node[int(parent) if isinstance(node, list) else parent]
    node[leaf] = value
    return tree


def test_the_rayjob_fits_its_schema() -> None:
    assert errors("rayjob.json", JOB) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("apiVersion", "ray.io/v1alpha1"),
        ("spec.entryPoint", "x"),
        ("spec.backoffLimit", "3"),
        ("spec.rayClusterSpec.headGroupSpec.rayStartParams.num-gpus", 0),
        ("spec.rayClusterSpec.workerGroupSpecs.0.replica", 2),
        ("spec.rayClusterSpec.workerGroupSpecs.0.template.spec.containers.0.imagePullpolicy", "Always"),
        ("spec.rayClusterSpec.headGroupSpec.template.spec.volumes.1.emptyDir.medium", 64),
    ],
)
def test_a_wrong_field_of_a_rayjob_is_seen(path: str, value: Any) -> None:
    assert errors("rayjob.json", changed(JOB, path, value))


def test_the_rayjob_agrees_with_itself_and_with_the_lock() -> None:
    cluster = JOB["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    (head,) = groups[0]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in head["env"]}
    assert int(environment["NUM_NODES"]) == 1 + sum(group["replicas"] for group in groups[1:])
    assert f"ray=={cluster['rayVersion']}\n" in (ROOT / "requirements" / "cuda.lock").read_text()
    for group in groups:
        spec = group["template"]["spec"]
        (container,) = spec["containers"]
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted == {"shared": "/shared", "shm": "/dev/shm"}
        assert {volume["name"] for volume in spec["volumes"]} == mounted.keys()
        (shm,) = (volume for volume in spec["volumes"] if volume["name"] == "shm")
        sizes = (shm["emptyDir"]["sizeLimit"], container["resources"]["limits"]["memory"])
        gib = [int(size.removesuffix("Gi")) for size in sizes]
        store_gib = int(group["rayStartParams"]["object-store-memory"]) / 2**30
        assert store_gib < gib[0] < gib[1], "objects fit into shared memory, and that into the container"


def test_the_task_fits_skypilot_s_schema() -> None:
    assert errors("skypilot_task.json", TASK) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("num_nodes", "2"),
        ("nodes", 2),
        ("resources.accelerator", "H100:8"),
        ("envs.A B", "x"),
        ("run", ["x"]),
    ],
)
def test_a_wrong_field_of_a_task_is_seen(path: str, value: Any) -> None:
    assert errors("skypilot_task.json", changed(TASK, path, value))


LAUNCHERS = ("deploy/run.py", "deploy/slurm.sh")
CONSOLE = re.compile(r"^(?:#  )?   ?(?: \+)? (\S.*)$", re.MULTILINE)
"""Indented lines of a page, and those of a comment at the head of a file."""


def vlrl_arguments(line: str) -> list[str]:
    """What a command line gives to vlrl, itself or through a launcher; nothing if it does not call it."""
    if not re.search(r"\bvlrl |deploy/(run.py|slurm.sh) ", line) or "[KEY=VALUE]" in line:
        return []
    words = shlex.split(line, comments=True)
    for number, word in reversed([*enumerate(words)]):  # an image may have the name too, before the command
        if word.endswith(LAUNCHERS):
            return [*words[number + 1 :], "ray.address=auto"]
        if Path(word).name == "vlrl" and words[number + 1 :] and words[number - 1] != "-t":
            return words[number + 1 :]
    return []


def command_lines() -> list[Any]:
    """Every command in deploy/ and on its page that runs vlrl."""
    found = [
        pytest.param(JOB["spec"]["entrypoint"], id="rayjob"),
        pytest.param(f"deploy/run.py {TASK['envs']['VLRL_ARGUMENTS']}", id="skypilot"),
    ]
    for file in (*SCRIPTS, DEPLOY / "Dockerfile", PAGE):
        lines = [line for line in CONSOLE.findall(file.read_text()) if vlrl_arguments(line)]
        found += [pytest.param(line, id=f"{file.name}-{number}") for number, line in enumerate(lines)]
    return found


def parse(arguments: list[str]) -> None:
    """Raise what vlrl would for a command line that it refuses before it does anything."""
    command: Any = get_command(app)
    context = command.context_class(command)
    while hasattr(command, "get_command"):
        name, command, arguments = command.resolve_command(context, list(arguments))
    context = command.make_context(name, arguments)
    if "overrides" in context.params:
        config = str(context.params["config"]).replace("/opt/vlrl", str(ROOT))
        load_config(ROOT / config, context.params["overrides"] or [])


@pytest.mark.parametrize("line", command_lines())
def test_commands_and_options_exist(line: str) -> None:
    parse(vlrl_arguments(line))


def test_the_page_and_the_scripts_have_commands() -> None:
    ids = {parameter.id.partition("-")[0] for parameter in command_lines()}
    assert {"rayjob", "skypilot", "slurm.sh", "Dockerfile", "clusters.md"} <= ids


@pytest.mark.parametrize(
    "line",
    [
        "vlrl trian configs/quickstart.yaml",
        "vlrl doctor --run-folder /shared",
        "sbatch deploy/slurm.sh train configs/quickstart.yaml trainer.ranks=2",
        "srun vlrl doctor --run_dir /shared",
    ],
)
def test_a_command_that_vlrl_would_refuse_is_seen(line: str) -> None:
    arguments = vlrl_arguments(line)
    assert arguments
    with pytest.raises(Exception) as caught:
        parse(arguments)
    names = {each.__name__ for each in type(caught.value).__mro__}
    assert names & {"ConfigError", "UsageError"}, caught.value
