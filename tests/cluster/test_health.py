"""Nodes are read, and one that leaves is reported, as is one that comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from vlrl.tracking.metrics import NODE_GAUGES

PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
cluster = Cluster()
hosts = [cluster.add_node(num_cpus=1, object_store_memory=300_000_000) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

from vlrl.cluster.node_monitor import NodeMonitor
from vlrl.tracking.events import Events

class Console:
    def note(self, text):
        print(text, file=sys.stderr)

def wait_for(is_there):
    until = time.monotonic() + 90
    while time.monotonic() < until:
        taken = monitor.take_metrics()
        if taken and is_there(taken):
            return taken
        time.sleep(0.2)
    raise TimeoutError(taken)

folder = Path(sys.argv[1])
held = ray.put(b"0" * 60_000_000)
name = f"nodes/{os.uname().nodename}-{hosts[1].node_id[:6]}/"
found = {"own": f"nodes/{os.uname().nodename}-{hosts[0].node_id[:6]}/", "other": name}
ids, events = [host.node_id for host in hosts], Events(folder, Console())
monitor = NodeMonitor(ids, folder / "run", events, every_s=0.5)
store = found["own"] + "object_store_used"
found["healthy"] = wait_for(lambda seen: name + "cpu_load" in seen and seen[store] > 0)
cluster.remove_node(hosts[1])
found["lost"] = wait_for(lambda seen: seen[name + "alive"] == 0)
cluster.add_node(num_cpus=1)
found["back"] = wait_for(lambda seen: seen[name + "alive"] == 1)
monitor.close()
found["threads"] = [thread.name for thread in threading.enumerate()]
found["events"] = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]

from vlrl.cluster.health import NodeHealth
alone = NodeHealth([hosts[0].node_id], folder)
alone.read()
begin = time.thread_time()
for _ in range(20):
    alone.read()
found["cpu_s"] = (time.thread_time() - begin) / 20
found["readers"] = len(alone._readers)
print(json.dumps(found))
ray.shutdown()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = str(tmp_path_factory.mktemp("health"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("node", ["own", "other"])
def test_each_node_has_every_gauge(found: dict[str, Any], node: str) -> None:
    prefix = found[node]
    gauges = {
        name.removeprefix(prefix): value
        for name, value in found["healthy"].items()
        if name.startswith(prefix) and "/gpu" not in name
    }
    assert gauges.keys() == {name for name in NODE_GAUGES if not name.startswith("gpu")}
    assert all(value >= 0 for value in gauges.values())
    assert all(value <= 1 for name, value in gauges.items() if not name.endswith("_gib"))
    assert 0 < gauges["memory_used"] < 1
    assert (gauges["object_store_used"] > 0.19) == (node == "own")  # 60 of 300 MB are held there


@pytest.mark.slow(together=True)
def test_a_node_that_leaves_and_comes_back_is_told(found: dict[str, Any]) -> None:
    name = found["other"].removeprefix("nodes/").rstrip("/")
    told = [(event["event"], event["text"]) for event in found["events"] if name in event["text"]]
    assert told == [
        ("node_lost", f"node {name} has left the cluster"),
        ("node_back", f"node {name} is back in the cluster"),
    ]
    assert "node monitor" not in found["threads"]


@pytest.mark.slow(together=True)
def test_one_node_costs_no_process_and_next_to_no_time(found: dict[str, Any]) -> None:
    assert found["readers"] == 0
    assert found["cpu_s"] < 0.05  # of 30 s between two readings
