"""Run vlrl on a Ray cluster of several nodes, the first time and after every restart.

    RAY_ADDRESS=IP:PORT NUM_NODES=2 python deploy/run.py train|sft CONFIG [KEY=VALUE]...

Waits for NUM_NODES nodes, NODES_TIMEOUT_S (600) at most, and prints them. Then this process becomes
`vlrl train CONFIG [KEY=VALUE]... ray.address=auto`, with --resume if the run has a checkpoint, so a launcher
repeats the same command until the run is finished.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

import ray

from vlrl.config import load_config
from vlrl.errors import ConfigError
from vlrl.run.checkpoint import checkpoints

COMMANDS = ("train", "sft")
NEEDED = {"RAY_ADDRESS", "NUM_NODES"}


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in COMMANDS or not os.environ.keys() >= NEEDED:
        raise SystemExit(__doc__)
    try:
        command = vlrl_command(arguments)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    wait_for_nodes(int(os.environ["NUM_NODES"]), float(os.environ.get("NODES_TIMEOUT_S", "600")))
    print("+", *command, flush=True)
    os.execvp(command[0], command)


def vlrl_command(arguments: Sequence[str]) -> list[str]:
    """The command line for arguments of this file.

    Raises:
        ConfigError: if vlrl would refuse the config.
    """
    arguments = [*arguments, "ray.address=auto"]  # Ray takes it from RAY_ADDRESS
    config, *overrides = [each for each in arguments[1:] if not each.startswith("-")]
    resume = ["--resume"] if checkpoints(load_config(config, overrides).run_dir) else []
    return ["vlrl", *(each for each in arguments if each != "--resume"), *resume]


def wait_for_nodes(num_nodes: int, timeout_s: float) -> None:
    """Return when the cluster at RAY_ADDRESS has num_nodes nodes.

    Raises:
        SystemExit: after timeout_s, naming the nodes that are there.
    """
    until, found = time.monotonic() + timeout_s, list[str]()
    while len(found) < num_nodes:
        if time.monotonic() > until:
            raise SystemExit(
                f"error: {len(found)} of {num_nodes} Ray nodes came to {os.environ['RAY_ADDRESS']} within "
                f"NODES_TIMEOUT_S={timeout_s:g} s ({', '.join(found) or 'none'}); the output of the missing "
                "ones says why, or a firewall keeps their connections out"
            )
        time.sleep(1)
        found = alive_nodes()
    print(f"{num_nodes} Ray nodes:", *found, sep="\n  ", flush=True)


def alive_nodes() -> list[str]:
    """One line for each node: address, host and resources; none while the head does not answer."""
    host, _, port = os.environ["RAY_ADDRESS"].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()  # quiet, where Ray would log and wait
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    except OSError:  # Ray's ConnectionError is one
        return []
    try:
        return [described(node) for node in ray.nodes() if node["Alive"]]
    finally:
        ray.shutdown()


def described(node: dict[str, Any]) -> str:
    resources = node["Resources"]
    cpus, gpus = resources.get("CPU", 0), resources.get("GPU", 0)
    return f"{node['NodeManagerAddress']} ({node['NodeManagerHostname']}): {cpus:g} CPUs, {gpus:g} GPUs"


if __name__ == "__main__":
    main()
