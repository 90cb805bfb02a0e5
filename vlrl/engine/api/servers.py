"""A model's servers from start to end: one in this process's place, or replicas until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import queue
import signal
from collections.abc import Callable, Sequence

from vlrl.cluster import cluster, nodes
from vlrl.engine.api.arguments import server_arguments, server_environment
from vlrl.engine.api.options import TOKEN_VARIABLE, ModelServerOptions
from vlrl.engine.api.replicas import ServerCommand, serve_replicas, stop_replicas

GENERATION_VARIABLE = "VLRL_SERVE_GENERATION"
"""Differs at each update, so that Ray Serve replaces replicas whose command line is the same."""
EXTRA_S = 10.0
"""A replica is given this much longer than a server's own time limit."""


def served(
    options: ModelServerOptions, extra: Sequence[str], *, on_gpu: bool
) -> tuple[list[str], dict[str, str]]:
    """(the command line of a server, its variables beside those of this process); see `server_arguments`."""
    return server_arguments(options, on_gpu=on_gpu, extra=extra), server_environment(options, on_gpu=on_gpu)


def keep_replicas(
    options: Callable[[], ModelServerOptions],
    extra: Sequence[str],
    *,
    num_replicas: int,
    place: tuple[str, int],
    address: str | None,
    on_ready: Callable[[], None],
) -> None:
    """Serve with replicas: until Ctrl-C on a Ray of this process, or for good on a cluster.

    Args:
        options: of the servers, as they are when it is called: at the start, and at each SIGHUP.
        extra: options of vLLM's own.
        num_replicas: servers.
        place: address and port.
        address: of a running cluster; None starts Ray on this machine.
        on_ready: called when all answer, at the start and after each update.

    Raises:
        ConfigError: if Ray Serve is not installed, or there is no such model.
        EngineError: if the cluster cannot be reached.
    """
    came: queue.SimpleQueue[int] = queue.SimpleQueue()
    config = options().read_config()
    on_cluster = config.model_copy(update={"ray": config.ray.model_copy(update={"address": address})})
    with cluster(on_cluster):
        on_gpu = any(node.num_gpus for node in nodes())  # this machine may be the only one without
        while True:
            command = replica_command(options(), extra, on_gpu=on_gpu)
            serve_replicas(command, num_replicas=num_replicas, host=place[0], port=place[1])
            on_ready()
            if address is not None:
                return
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, frame: came.put(number))
            if came.get() != signal.SIGHUP:
                stop_replicas()
                return


def replica_command(options: ModelServerOptions, extra: Sequence[str], *, on_gpu: bool) -> ServerCommand:
    """How each replica starts its server, and the GPUs that it takes: those that the server is split over."""
    arguments, environment = served(options, extra, on_gpu=on_gpu)
    generator = options.read_config().generator
    environment |= {
        TOKEN_VARIABLE: os.environ.get(TOKEN_VARIABLE, ""),
        GENERATION_VARIABLE: os.urandom(8).hex(),
    }
    return ServerCommand(
        arguments=arguments,
        environment=environment,
        timeout_s=options.timeout_s + EXTRA_S,
        num_gpus=_tensor_parallel_size(extra, generator.tensor_parallel_size) if on_gpu else 0,
        max_requests=generator.max_num_seqs,
        max_body_bytes=options.max_body_mib * 2**20,
    )


def _tensor_parallel_size(extra: Sequence[str], default: int) -> int:
    """VLLM's own option goes before the run's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    names = ("--tensor-parallel-size", "--tensor_parallel_size", "-tp")
    parser.add_argument(*names, type=int, default=default, dest="size")
    return int(parser.parse_known_args(list(extra))[0].size)
