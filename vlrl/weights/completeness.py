"""Whether an engine has loaded a version whole: vLLM itself only warns of weights that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from vlrl.errors import EngineError

MAX_NAMED = 5
"""Most parameters that an error names."""


def require_whole_parts(model: Any, sent: Iterable[str]) -> None:
    """Refuse a version that has some of the matrices which vLLM keeps as one, and not the others.

    Such a one would be loaded in part, and the rest of it would be memory that nothing was written to. A
    layer that reads another layer's keys and values has a matrix for its queries alone (Gemma 4).

    Args:
        model: vLLM's; its `packed_modules_mapping` has the parts of such matrices.
        sent: published names.

    Raises:
        EngineError: naming what is missing.
    """
    packed: Mapping[str, Sequence[str]] = getattr(model, "packed_modules_mapping", {})
    mapper: Any = getattr(model, "hf_to_vllm_mapper", None)
    renames = mapper and mapper.get_rename_mapper()  # a part keeps its name
    names, own = set(sent), {name for name, _ in model.named_parameters()}

    def is_whole(name: str) -> bool:
        return not own.isdisjoint([name] if renames is None else renames.apply_list([name]))

    missing = {
        other
        for parts in packed.values()
        for name in names
        for other in _siblings(name, parts)
        if other not in names and not is_whole(name)
    }
    if missing:
        raise EngineError(
            f"{_listed(missing)}: not sent by the trainer, and the engine keeps them in one matrix with what "
            "was sent; report this with the model's name"
        )


@contextmanager
def all_loaded(model: Any) -> Iterator[None]:
    """Hold vLLM to it that a reload within the block loads every parameter of its model.

    Raises:
        EngineError: naming those that keep the weights of an earlier version.
    """
    expected = {name for name, _ in model.named_parameters()}
    load, loaded = model.load_weights, set[str]()

    def noted(weights: Iterable[tuple[str, Any]]) -> set[str]:
        found = load(weights)
        if found is None:
            raise EngineError(
                f"vLLM's {type(model).__name__} does not say which weights it has loaded, so stale ones "
                "would not be noticed; report this with the model's name"
            )
        loaded.update(found)
        return set(found)

    model.load_weights = noted
    try:
        yield
    finally:
        del model.load_weights
    if stale := expected - loaded:
        raise EngineError(
            f"{_listed(stale)}: not loaded by the engine, so the next tokens would come from weights of two "
            "versions; the trainer did not send them, or vLLM knows them by other names: report this with "
            "the model's name"
        )


def _siblings(name: str, parts: Sequence[str]) -> list[str]:
    """Names of the other parts of the matrix that a parameter is a part of; none if it is not a part."""
    prefix, _, leaf = name.rpartition(".")
    parent, _, module = prefix.rpartition(".")
    if module not in parts:
        return []
    return [f"{parent}.{part}.{leaf}" for part in parts]


def _listed(names: Iterable[str]) -> str:
    some = sorted(names)
    more = f" and {len(some) - MAX_NAMED} more" if len(some) > MAX_NAMED else ""
    return ", ".join(some[:MAX_NAMED]) + more
