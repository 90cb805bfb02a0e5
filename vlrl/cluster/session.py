"""Ray for the length of a run: a local one is started, a named cluster joined."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import ray
import ray._private.utils as private
from ray._private.accelerators import NvidiaGPUAcceleratorManager

from vlrl.cluster.shipping import runtime_env
from vlrl.config import Config
from vlrl.errors import EngineError, VlrlError
from vlrl.process.interrupts import SIGNALS, say
from vlrl.process.shared_memory import require_shared_memory


@contextmanager
def cluster(config: Config) -> Iterator[None]:
    """Ray for the length of a block; a local one is shut down at the end with all its processes.

    Raises:
        ResourceError: if there is too little shared memory for a local object store.
        ConfigError: if plug-ins' folders are more than Ray carries to a named cluster's nodes.
        EngineError: if a named cluster cannot be reached.
    """
    if ray.is_initialized():
        yield
        return
    # No usage report over the network, and no word about the token that guards the local cluster.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Workers started ahead would wait in vain: each process of a run has an environment of its own.
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        with _options(config) as options, _signals_kept():
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
    except VlrlError:
        raise
    except Exception as error:  # of any class: what takes it too long, Ray calls a plain Exception
        raise EngineError(
            f"Ray did not start (ray.address={config.ray.address}): {error}; "
            "see the newest folder under /tmp/ray, or give ray.address=null for a local cluster; a local one "
            "has 30 s to start, so if it timed out, try again when the machine is less busy"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """While Ray starts, signals are only noted; afterwards the handlers before are back.

    An exception in the middle of its core's construction leaves one that crashes at the end. Ray would put a
    handler of its own on SIGTERM, that exits; its core puts another, which prints the stack, calls the one
    before and has the process aborted 3 s later.

    Raises:
        KeyboardInterrupt: after Ray's start, if a signal came meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []

    def note(number: int, frame: FrameType | None) -> None:
        signal.alarm(0)
        came.append(number)
        say("stopping as soon as Ray has started")

    handlers = {number: signal.signal(number, note) for number in SIGNALS}
    own, private.set_sigterm_handler = private.set_sigterm_handler, lambda handler: None
    try:
        yield
    finally:
        private.set_sigterm_handler = own
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        ray.shutdown()
        raise KeyboardInterrupt


@contextmanager
def _options(config: Config) -> Iterator[dict[str, Any]]:
    """What Ray is started or joined with; only a cluster that was there before is sent code."""
    if config.ray.address is None:
        yield _local_options(config)
        return
    with runtime_env(config) as sent:
        yield {"address": config.ray.address, "runtime_env": sent}


def _local_options(config: Config) -> dict[str, Any]:
    store_bytes = int(config.ray.object_store_gib * 2**30)
    require_shared_memory(
        store_bytes, f"Ray's object store (ray.object_store_gib={config.ray.object_store_gib})"
    )
    generator, trainer, most = config.generator, config.trainer, max(1, _num_gpus_here())
    reserved = (generator.num_replicas or most) * generator.cpus
    reserved += (trainer.num_ranks or most) * trainer.cpus_per_rank
    reserved += (config.rollout.num_workers or 0) * config.rollout.cpus_per_worker
    return {
        "address": "local",  # else Ray joins a cluster that it finds on this machine or in RAY_ADDRESS
        "include_dashboard": False,
        "object_store_memory": store_bytes,
        # Reservations, not limits: engine and trainer take turns, so more may be reserved than exist.
        "num_cpus": max(len(os.sched_getaffinity(0)), int(reserved + 1)),
        "configure_logging": False,
    }


def _num_gpus_here() -> int:
    """GPUs of this machine, as Ray counts them when it starts."""
    return int(NvidiaGPUAcceleratorManager.get_current_node_num_accelerators())


def gpu_available() -> bool:
    """Whether the cluster has a GPU."""
    return bool(ray.cluster_resources().get("GPU"))


def device_name() -> str:
    """What the engines run on, for the report."""
    if not gpu_available():
        return f"CPU, {len(os.sched_getaffinity(0))} cores"
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "GPU"
