"""Two Ray nodes are looked at before a run loads a model on them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vlrl.cluster.node_checks import unanswered

PROGRAM = """
import json, os, sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
cluster = Cluster()
os.environ["PATH"] = sys.argv[2] + os.pathsep + os.environ["PATH"]  # where an nvidia-smi shows a GPU
hosts = [cluster.add_node(num_cpus=8, num_gpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

from vlrl import cluster as adapter
from vlrl.cluster import node_checks
from vlrl.errors import ConfigError, ResourceError

first, second = (host.node_id for host in hosts)
model = Path(sys.argv[1])
(model / "config.json").write_text("{}")
adapter.check_nodes({first: "127.0.0.1", second: "127.0.0.2"}, str(model))
adapter.check_nodes({first: "127.0.0.1", second: "127.0.0.2"}, "Qwen/A-Hub-Name")
found = {}

# What the driver has the other node lacks: both are this machine, so the file goes while it is asked for.
begin = node_checks.begin
def begin_without(actors, method, *arguments):
    if method == "host_without":
        (model / "config.json").unlink()
    return begin(actors, method, *arguments)
node_checks.begin = begin_without
try:
    adapter.check_nodes({first: "127.0.0.1", second: "127.0.0.2"}, str(model))
except ConfigError as error:
    found["model"] = str(error)
node_checks.begin = begin

try:  # nobody has this address (RFC 5737), so packets to it are dropped or refused, as by a firewall
    adapter.check_nodes({first: "127.0.0.1", second: "192.0.2.7"}, str(model))
except ResourceError as error:
    found["network"] = str(error)

sys.path.insert(0, sys.argv[3])
from builders import make_config
from vlrl.placement.layout import lay_out
reservation = adapter.Reservation(lay_out(make_config(), adapter.nodes()), 60.0)
try:
    adapter.check_nodes(reservation.addresses, "Qwen/A-Hub-Name", reservation.gpus)
except ResourceError as error:
    found["gpu"] = str(error)
found["nodes"] = list(reservation.addresses.items())
reservation.close()
adapter.check_nodes(reservation.addresses, "Qwen/A-Hub-Name", {first: ["0"], second: ["1"]})
adapter.check_nodes(reservation.addresses, "Qwen/A-Hub-Name", {first: ["GPU-1"], second: ["GPU-2"]})
adapter.check_nodes(reservation.addresses, "Qwen/A-Hub-Name", {first: ["7"], second: ["7"]})  # not listed
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("model")
    programs = tmp_path_factory.mktemp("bin")
    gpus = [f"{n}, GPU-8b17e0c4-000{n}, 512 MiB, 81559 MiB, 0 %" for n in range(2)]
    (programs / "nvidia-smi").write_text("#!/bin/sh\n" + "".join(f"echo '{gpu}'\n" for gpu in gpus))
    (programs / "nvidia-smi").chmod(0o755)
    helpers = Path(__file__).parent.parent / "helpers"
    command = [sys.executable, "-c", PROGRAM, str(folder), str(programs), str(helpers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values | {"folder": str(folder)}


@pytest.mark.slow(together=True)
def test_a_node_without_the_model_is_named(found: dict[str, Any]) -> None:
    host = socket.gethostname()
    assert found["model"].startswith(
        f"model.path={found['folder']}: there is no such model on node 127.0.0.1 (host {host}), "
        f"127.0.0.2 (host {host}); put it on a file system that all nodes mount"
    )


@pytest.mark.slow(together=True)
def test_nodes_that_cannot_reach_each_other_are_named(found: dict[str, Any]) -> None:
    text = found["network"]
    assert text.startswith("node 127.0.0.1 cannot connect to 192.0.2.7 (")
    assert "node 192.0.2.7 cannot connect" not in text  # the way back is open
    assert "every TCP port must be open between the nodes: look for a firewall" in text


@pytest.mark.slow(together=True)
def test_a_gpu_that_two_nodes_count_is_named_with_both(found: dict[str, Any]) -> None:
    (first, address), (second, _) = found["nodes"]
    assert found["gpu"].startswith(
        f"GPU-8b17e0c4-0000 is counted by two Ray nodes, {address} (ID {first[:8]}) and {address} "
        f"(ID {second[:8]}), so two ranks or engines would share it"
    )


def test_a_port_where_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = server.getsockname()[:2]
        assert unanswered(peer) is None
    assert unanswered(peer) == f"127.0.0.1 (port {peer[1]}: Connection refused)"


def test_a_firewall_that_drops_packets_is_told_by_its_silence() -> None:
    """A full queue of connections drops them as well."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        peer = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(peer)
        said = unanswered(peer, timeout_s=1.0)
        for each in waiting:
            each.close()
    assert said == f"127.0.0.1 (no answer from port {peer[1]} within 1 s)"
