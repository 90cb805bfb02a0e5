"""Calls of Ray actors and objects, with Ray's failures translated into vlrl's."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import ray

from vlrl.errors import EngineDied, EngineError, VlrlError

GONE = (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError)
"""What calls of a dead actor raise: the second one until Ray knows why nothing answers."""
UNPICKLABLE = re.compile(r"Original exception details:.*^([\w.]+: .*)\Z", re.DOTALL | re.MULTILINE)
"""Finds the exception in Ray's text about one that cannot be pickled: the last line of its traceback."""


def logs_folder() -> str:
    """Where Ray's processes write their logs, on each machine of the cluster."""
    node = ray._private.worker._global_node  # without a public name
    return "the folder of Ray's logs" if node is None else str(node.get_logs_dir_path())


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
    return begin_with(actors, method, [[values[i] for values in per_actor] for i in range(len(actors))])


def begin_with(actors: Sequence[Any], method: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """`begin` with all arguments of each actor, of which there may be more for one than for another."""
    return [getattr(a, method).remote(*given) for a, given in zip(actors, arguments, strict=True)]


def split(method: Any, num_parts: int, *args: Any) -> list[Any]:
    """Call an actor's method that returns a list of num_parts values: a reference to each, unfetched."""
    refs = method.options(num_returns=num_parts).remote(*args)
    return [refs] if num_parts == 1 else list(refs)


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
    return list(ray.get(list(refs))) if refs else []  # Ray starts itself where it is asked for nothing


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
        return EngineDied(f"a process of the run died: {error}; its log is under {logs_folder()}")
    if cause is None:
        return EngineError(str(error))
    if original := UNPICKLABLE.search(str(cause)):
        return EngineError(original[1])
    # str(error) is the actor's whole traceback, which --debug shows
    return EngineError(f"{type(cause).__name__}: {cause}")


def stop(actors: Sequence[Any]) -> None:
    """Kill actors; a dead one is not an error."""
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
