"""The Ray adapter: start or join a cluster, place the engines' actors, translate their failures."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import ray
import ray._private.utils as private
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vlrl.config import Config
from vlrl.errors import EngineDied, EngineError, ResourceError, VlrlError
from vlrl.process.interrupts import SIGNALS, say
from vlrl.process.shared_memory import require_shared_memory

QUIET_ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

# Engine and trainer take turns on the same cores: an idle one must sleep, not spin at a barrier.
CPU_ENVIRONMENT: Mapping[str, str] = {"KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": "PASSIVE"}


GONE = (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError)
"""What calls of a dead actor raise: the second one until Ray knows why nothing answers. As all actors are on
the driver's node, no network can be the cause."""
UNPICKLABLE = re.compile(r"Original exception details:.*^([\w.]+: .*)\Z", re.DOTALL | re.MULTILINE)
"""Finds the exception in Ray's text about one that cannot be pickled: the last line of its traceback."""


@contextmanager
def cluster(config: Config) -> Iterator[None]:
    """Ray for the length of a block; a local one is shut down at the end with all its processes.

    Raises:
        ResourceError: if there is too little shared memory for a local object store.
        EngineError: if a named cluster cannot be reached.
    """
    if ray.is_initialized():
        yield
        return
    # No usage report over the network, and no word about the token that guards the local cluster.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    options = _local_options(config) if config.ray.address is None else {"address": config.ray.address}
    try:
        with _signals_kept():
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
    except Exception as error:  # of any class: what takes it too long, Ray calls a plain Exception
        raise EngineError(
            f"Ray did not start (ray.address={config.ray.address}): {error}; "
            "see /tmp/ray/session_latest/logs, or give ray.address=null for a local cluster; a local one has "
            "30 s to start, so if it timed out, try again when the machine is less busy"
        ) from error
    try:
        require_resources(config)
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


def spawn(cls: type, *args: Any, num_cpus: float, num_gpus: float, env: Mapping[str, str]) -> Any:
    """Start an actor of `cls`; its constructor runs in the background."""
    on_gpu = num_gpus if gpu_available() else 0
    env_vars = {**QUIET_ENVIRONMENT, **({} if on_gpu else CPU_ENVIRONMENT), **env}
    remote = ray.remote(num_cpus=num_cpus, num_gpus=on_gpu, max_restarts=0)(cls)
    # All on the driver's node: they meet at 127.0.0.1 and in its shared memory.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return remote.options(runtime_env={"env_vars": env_vars}, scheduling_strategy=here).remote(*args)


def require_resources(config: Config) -> None:
    """Raise ResourceError if the actors' reservations exceed what Ray has: they would wait forever."""
    ranks, trainer, generator = config.trainer.num_ranks, config.trainer, config.generator
    replicas = generator.num_replicas
    needs = {"CPU": ranks * trainer.cpus_per_rank + replicas * generator.cpus}
    if gpu_available():
        needs["GPU"] = ranks * trainer.gpus_per_rank + replicas * engine_gpus(config)
    for resource, needed in needs.items():
        found = ray.cluster_resources().get(resource, 0)
        if found < needed:
            kind = resource.lower()
            raise ResourceError(
                f"the run reserves {needed:g} {resource}s, Ray has {found:g}; lower trainer.num_ranks, "
                f"trainer.{kind}s_per_rank, generator.num_replicas or generator.{kind}s"
            )


def engine_gpus(config: Config) -> float:
    """GPUs the engine reserves: whole ones if it is split over several."""
    parallel = config.generator.tensor_parallel_size
    return config.generator.gpus if parallel == 1 else parallel


def call(actors: Sequence[Any], method: str, *per_actor: Sequence[Any]) -> list[Any]:
    """Call a method on every actor at once and wait.

    Args:
        actors: handles.
        method: its name.
        per_actor: for each argument one value per actor.

    Raises:
        VlrlError: what the actor raised, or EngineError if it died.
    """
    return fetch_all(begin(actors, method, *per_actor))


def begin(actors: Sequence[Any], method: str, *per_actor: Sequence[Any]) -> list[Any]:
    """`call` without waiting: references of what the actors will return."""
    return [getattr(a, method).remote(*(values[i] for values in per_actor)) for i, a in enumerate(actors)]


def fetch_all(refs: Sequence[Any], *, timeout_s: float | None = None, late: str = "") -> list[Any]:
    """The values of object references, or the first failure, whose siblings may wait forever.

    Raises:
        EngineError: saying `late`, if one takes longer than timeout_s after the one before.
    """
    waiting, found = list(refs), {}
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1, timeout=timeout_s)
        if not ready:
            raise EngineError(late)
        found[ready[0]] = fetch(ready[0])
    return [found[ref] for ref in refs]


def fetch(ref: Any, *, timeout_s: float | None = None, late: str = "") -> Any:
    """The value of an object reference, with Ray's wrapping taken off vlrl's own errors.

    Raises:
        EngineError: saying `late`, if it is not there after timeout_s.
    """
    try:
        return ray.get(ref, timeout=timeout_s)
    except ray.exceptions.GetTimeoutError as error:
        raise EngineError(late) from error
    except ray.exceptions.RayError as error:
        raise translate(error) from error


def put(value: Any) -> Any:
    """Put a value into the cluster's shared memory; it stays as long as its reference does."""
    return ray.put(value)


def fetch_many(refs: Sequence[Any]) -> list[Any]:
    """The values of several references that are all there; arrays are views of shared memory."""
    return list(ray.get(list(refs)))


async def fetch_async(ref: Any) -> Any:
    """`fetch` inside an event loop."""
    try:
        return await ref
    except ray.exceptions.RayError as error:
        raise translate(error) from error


async def stream(method: Any, *args: Any) -> AsyncIterator[Any]:
    """What an actor's async generator yields, each value as soon as it is there."""
    try:
        async for ref in method.options(num_returns="streaming").remote(*args):
            yield await ref
    except ray.exceptions.RayError as error:
        raise translate(error) from error


def translate(error: Exception) -> VlrlError:
    """A Ray failure as an error of ours; vlrl's own errors keep their class and text."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, VlrlError):
        return cause
    if isinstance(error, GONE):
        return EngineDied(f"an engine process died: {error}; its log is under /tmp/ray/session_latest/logs")
    if cause is None:
        return EngineError(str(error))
    if original := UNPICKLABLE.search(str(cause)):
        return EngineError(original[1])
    # str(error) is the actor's whole traceback, which --debug shows
    return EngineError(f"{type(cause).__name__}: {cause}")


def stop(actors: Sequence[Any]) -> None:
    """Kill actors; a dead one is no error."""
    for actor in actors:
        ray.kill(actor)


def dead(actors: Sequence[Any], *, timeout_s: float) -> list[int]:
    """Indices of actors whose processes are gone, the first found; who does not answer in time is busy."""
    asked = {actor.__ray_ready__.remote(): index for index, actor in enumerate(actors)}
    waiting, until = list(asked), time.monotonic() + timeout_s
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1, timeout=max(0.0, until - time.monotonic()))
        if not ready:
            break
        try:
            ray.get(ready[0])
        except GONE:
            return [asked[ready[0]]]
        except ray.exceptions.RayError:  # its constructor failed: it has said so to whoever called it
            continue
    return []


def gpu_available() -> bool:
    """Whether the cluster has a GPU."""
    return bool(ray.cluster_resources().get("GPU"))


def num_threads(config: Config, *, num_processes: int) -> int:
    """Threads for each of num_processes that compute at the same time on this machine."""
    return max(1, len(os.sched_getaffinity(0)) // num_processes)


def _local_options(config: Config) -> dict[str, Any]:
    store_bytes = int(config.ray.object_store_gib * 2**30)
    require_shared_memory(
        store_bytes, f"Ray's object store (ray.object_store_gib={config.ray.object_store_gib})"
    )
    generator, trainer = config.generator, config.trainer
    reserved = generator.num_replicas * generator.cpus + trainer.num_ranks * trainer.cpus_per_rank
    return {
        "include_dashboard": False,
        "object_store_memory": store_bytes,
        # Reservations, not limits: engine and trainer take turns, so more may be reserved than exist.
        "num_cpus": max(len(os.sched_getaffinity(0)), int(reserved + 1)),
        "configure_logging": False,
    }


def device_name() -> str:
    """What the engines run on, for the report."""
    if not gpu_available():
        return f"CPU, {len(os.sched_getaffinity(0))} cores"
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "GPU"
