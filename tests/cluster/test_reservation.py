"""A layout's bundles on two Ray nodes with logical GPUs: who sees which GPU, and what a full cluster says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, sys
from contextlib import ExitStack
import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, sys.argv[1])
from warm_worker import warm_workers

os.environ["RAY_USAGE_STATS_ENABLED"] = os.environ["RAY_prestart_worker_first_driver"] = "0"
warm = ExitStack()
warm.enter_context(warm_workers())
cluster = Cluster()
cluster.add_node(num_cpus=1, num_gpus=0)  # a head without a GPU, where the driver is
hosts = [cluster.add_node(num_cpus=8, num_gpus=4) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

from builders import make_config
from vlrl import cluster as adapter
from vlrl.errors import NodeLost, ResourceError
from vlrl.placement.layout import lay_out

class Process:
    def seen(self):
        names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME")
        return ray.get_runtime_context().get_node_id(), *(os.environ.get(name) for name in names)

config = make_config(generator={"tensor_parallel_size": 2})
layout = lay_out(config, adapter.nodes())
reservation = adapter.Reservation(layout, 60.0)
found = {}
for kind in ("ranks", "engines", "workers"):
    places = getattr(reservation, kind)
    actors = [adapter.spawn(Process, place=place, env={}) for place in places]
    found[kind] = adapter.call(actors, "seen")
    if kind == "ranks":
        found["meeting"] = adapter.meeting_point(places)[0]
        found["address"] = places[0].address
    if kind == "workers":  # whose successors take the place that they have left
        adapter.stop(actors[:1])
    replaced = adapter.call([adapter.spawn(Process, place=places[0], env={})], "seen")
    assert replaced == found[kind][:1]  # a successor of the first, which is still there
    adapter.stop(actors)
found["lines"] = layout.lines()
try:
    adapter.Reservation(layout, 1.0)
except ResourceError as error:
    found["full"] = str(error)
reservation.close()
second = adapter.Reservation(layout, 60.0)
found["logs"] = adapter.logs_folder()
lost = second.workers[-1]
cluster.remove_node(next(host for host in hosts if host.node_id == lost.node_id))
try:
    adapter.fetch_from(lost, adapter.spawn(Process, place=lost, env={}).seen.remote())
except NodeLost as error:
    found["lost"] = str(error), lost.address
second.close()
ray.shutdown()
cluster.shutdown()
warm.close()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    helpers = str(Path(__file__).parent.parent / "helpers")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, helpers], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def test_each_rank_sees_a_gpu_of_its_own(found: dict[str, Any]) -> None:
    seen = [(node, devices) for node, devices, _, _ in found["ranks"]]
    assert len(seen) == len(set(seen)) == 8
    assert sorted(devices for _, devices in seen) == sorted("01230123")
    assert len({node for node, _ in seen}) == 2


def test_a_replica_sees_the_two_gpus_of_its_ranks(found: dict[str, Any]) -> None:
    ranks = [(node, devices) for node, devices, _, _ in found["ranks"]]
    for number, (node, devices, _, _) in enumerate(found["engines"]):
        beside = ranks[2 * number : 2 * number + 2]
        assert [(node, device) for device in devices.split(",")] == beside


def test_workers_are_on_the_engines_nodes(found: dict[str, Any]) -> None:
    nodes = [node for node, *_ in found["engines"]]
    assert sorted(node for node, *_ in found["workers"]) == sorted(nodes)  # a replica has two GPUs
    assert {threads for _, _, threads, _ in found["workers"]} == {"4"}


def test_a_place_on_a_node_that_has_left_is_not_waited_for(found: dict[str, Any]) -> None:
    text, address = found["lost"]
    assert text == f"node {address} has left the cluster"


def test_the_folder_of_the_logs_is_that_of_this_session(found: dict[str, Any]) -> None:
    assert Path(found["logs"]).name == "logs" and "session_latest" not in found["logs"]


def test_cores_are_shared_by_those_of_one_node(found: dict[str, Any]) -> None:
    assert {threads for _, _, threads, _ in found["ranks"]} == {"2"}  # 8 cores, 4 ranks
    assert {threads for _, _, threads, _ in found["engines"]} == {"4"}


def test_processes_on_several_nodes_meet_at_the_address_of_the_first(found: dict[str, Any]) -> None:
    assert found["meeting"] == found["address"]
    assert all(interface for *_, interface in found["ranks"])


def test_a_full_cluster_says_who_waits_for_what(found: dict[str, Any]) -> None:
    assert "after ray.start_timeout_s=1 Ray has no room for" in found["full"]
    assert "1 GPU and 2 CPU on node" in found["full"]
