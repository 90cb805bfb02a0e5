"""Plug-ins, and vlrl itself, get to a node that has neither of them, and versions are compared there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.cluster.shipping import runtime_env
from vlrl.cluster.versions import require_equal
from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError

ROOT = Path(__file__).parent.parent.parent

REWARD = """
from pathlib import Path
WORDS = Path(__file__).with_name("words.txt")

def score(completion, answer, **context):
    return 0.25 if WORDS.read_text() == "words" else 0.0
"""

MODULE = """
def half(completion, answer, **context):
    return 0.5

def third(completion, answer, **context):
    return 0.75
"""

PROGRAM = """
import json, os, shutil, sys
from dataclasses import replace

helpers, elsewhere, project, newer = sys.argv[1:]
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["HF_HOME"] = "/of/the/nodes"
os.chdir(elsewhere)  # where Ray's processes are started
from ray.cluster_utils import Cluster
cluster = Cluster()
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
hosts = []
for path in (None, newer):
    os.environ.pop("PYTHONPATH", None)
    if path:
        os.environ["PYTHONPATH"] = path
    hosts.append(cluster.add_node(num_cpus=1))
os.chdir(project)
os.environ["HF_HOME"] = "/of/the/driver"
os.environ["HF_TOKEN"] = "secret"

sys.path[:0] = [helpers, project]
import vlrl
from builders import make_config
from vlrl import cluster as adapter
from vlrl.errors import ResourceError
import my_module

by_value = lambda completion, answer, **context: 1.0
config = make_config(
    rewards=["./my_reward.py:score", "my_module:half", my_module.third, by_value],
    ray={"address": cluster.address},
)
names = [reward.name for reward in config.rewards]

def scores(names):
    import os, sys, vlrl
    from vlrl.registry import resolve
    values = []
    for name in names:
        try:
            values.append(resolve("rewards", name)("", ""))
        except Exception as error:
            values.append(str(error))
    modules = sorted(name for name in sys.modules if name.startswith("vlrl_plugin"))
    return values, modules, vlrl.__file__, os.getcwd(), os.environ.get("HF_HOME"), "HF_TOKEN" in os.environ

class Actor:
    def scores(self, names):
        return scores(names)

first, second = (host.node_id for host in hosts)
found = {}
with adapter.cluster(config):
    adapter.check_versions({first: "127.0.0.1"})
    try:
        adapter.check_versions({first: "127.0.0.1", second: "127.0.0.2"})
    except ResourceError as error:
        found["versions"] = str(error)
    os.rename(project, project + "-moved")  # the nodes are this machine, and must not find it here
    shutil.rmtree(os.path.join(os.environ["XDG_CACHE_HOME"], "vlrl"))
    found["sent"] = adapter.run_on(second, scores, names)
    place = replace(adapter.driver_place(), strategy=NodeAffinitySchedulingStrategy(second, soft=False))
    found["actor"] = adapter.call([adapter.spawn(Actor, place=place, env={})], "scores", [names])[0]
    os.rename(project + "-moved", project)
    found["here"] = scores(names[:1])
with adapter.cluster(make_config(rewards=names[:1], ray={"address": cluster.address, "ship_code": False})):
    found["not_sent"] = adapter.run_on(second, scores, names[:1])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("ship")
    project, elsewhere, newer = root / "project", root / "elsewhere", root / "newer"
    for folder in (project, elsewhere, newer / "torch-99.1.dist-info"):
        folder.mkdir(parents=True)
    (project / "my_reward.py").write_text(REWARD)
    (project / "words.txt").write_text("words")
    (project / "my_module.py").write_text(MODULE)
    (newer / "torch-99.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 99.1\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(root / "cache"), "PYTHONPATH": str(ROOT)}
    folders = [str(ROOT / "tests" / "helpers"), str(elsewhere), str(project), str(newer)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *folders],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values | {"elsewhere": str(elsewhere)}


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("process", ["sent", "actor"])
def test_every_kind_of_plug_in_is_found_where_nothing_of_it_is(found: dict[str, Any], process: str) -> None:
    values, modules, package, folder, home, has_token = found[process]
    assert values == [0.25, 0.5, 0.75, 1.0]  # a file, with what lies beside it; modules; an object
    assert modules == found["here"][1]  # one name in all processes: what is pickled of it is found again
    assert "py_modules_files" in package  # this checkout, not what is installed there
    assert folder == found["elsewhere"]
    assert home == "/of/the/driver"
    assert not has_token


@pytest.mark.slow(together=True)
def test_where_all_nodes_have_the_folders_nothing_is_sent(found: dict[str, Any]) -> None:
    (value,), _, package, _, home, _ = found["not_sent"]
    assert value.startswith("plug-in file my_reward.py does not exist")
    assert "py_modules_files" not in package
    assert home == "/of/the/driver"


@pytest.mark.slow(together=True)
def test_a_node_with_another_version_is_named_with_both(found: dict[str, Any]) -> None:
    torch = version("torch").partition("+")[0]
    assert found["versions"].startswith(f"node 127.0.0.2 has torch 99.1, the driver {torch}. A run computes")


def test_a_driver_without_an_engine_has_the_nodes_compared_with_each_other() -> None:
    nodes = [("a", {"vllm": "none"}), ("b", {"vllm": "0.32.0"}), ("c", {"vllm": "0.31.0"})]
    words = "node a has vllm none, node b 0.32.0; node c has vllm 0.31.0, node b 0.32.0"
    with pytest.raises(ResourceError, match=words):
        require_equal({"vllm": "none"}, nodes)
    require_equal({"vllm": "none"}, [("a", {"vllm": "0.32.0"})])


def sent_files(config: Config) -> set[str]:
    with runtime_env(config) as asked:
        packages = [Path(module) for module in asked["py_modules"]]
        return {
            str(file.relative_to(package.parent))
            for package in packages
            if package.name != "vlrl"
            for file in package.rglob("*")
            if file.is_file()
        }


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("my_reward.py", "parts/part.py", "data/rows.jsonl", "data/image.png", ".git/objects"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for name in ("runs/run/model.safetensors", "venv/pyvenv.cfg", "venv/lib.py", "parts/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "parts" / "again").symlink_to(tmp_path)
    return tmp_path


def shipping_config(project: Path, **sections: Any) -> Config:
    data = {"train": {"name": "data/rows.jsonl"}}
    run = {"dir": str(project / "runs")}
    return make_config(rewards="./my_reward.py:score", data=data, run=run, **sections)


def test_data_runs_and_environments_stay_behind(project: Path) -> None:
    files = {name for name in sent_files(shipping_config(project)) if name.startswith("vlrl_shipped/folder")}
    assert files == {"vlrl_shipped/folder0/my_reward.py", "vlrl_shipped/folder0/parts/part.py"}


def test_what_ray_cannot_carry_is_refused_with_the_largest_files(project: Path) -> None:
    for name, size in (("small.bin", 100 * 2**20), ("large.bin", 450 * 2**20)):
        with (project / "parts" / name).open("wb") as file:
            file.truncate(size)  # a hole: no disk is used
    with pytest.raises(ConfigError, match=r"the largest seen are parts/large.bin \(450.0 MiB\), parts/small"):
        sent_files(shipping_config(project))


def test_what_a_submitted_job_asks_for_stays(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "/of/the/driver")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    job = {"runtime_env": {"py_modules": ["gcs://theirs.zip"], "env_vars": {"HF_HOME": "/of/the/job"}}}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(job))
    with runtime_env(shipping_config(project)) as asked:
        assert asked["py_modules"][-1] == "gcs://theirs.zip"
        assert asked["env_vars"] == {"HF_HOME": "/of/the/job", "HF_HUB_OFFLINE": "1"}
        assert os.environ["RAY_OVERRIDE_JOB_RUNTIME_ENV"] == "1"
    assert "RAY_OVERRIDE_JOB_RUNTIME_ENV" not in os.environ
