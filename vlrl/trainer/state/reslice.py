"""A checkpoint of another number of ranks: every parameter's slices are cut again out of the ranks' files.

ZeRO-3 gives each of R ranks ceil(n / R) consecutive elements of a parameter of n, zeros past its end. A
rank's slices lie one after the other in flat groups, in float32: the master weights, and each of the
optimizer's moments. Which parameters are in a group depends on R, their order does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from vlrl.errors import EngineError

MASTER = "master"
"""The kind of values that are the float32 weights; the others are the optimizer's, by its own names."""


@dataclass(frozen=True, slots=True)
class FlatSlice:
    """Where the slices of a parameter lie: at the same elements of the same flat group of every rank."""

    group: int
    offset: int
    length: int
    num_elements: int
    """Of the whole parameter; `length` of them on each rank, fewer on the last."""


class SavedRanks:
    """What all ranks of a checkpoint wrote; of a file only what is asked for is read."""

    def __init__(self, folder: Path) -> None:
        """Open the files.

        Raises:
            EngineError: if there are none.
        """
        self._folder = folder
        self.num_ranks = count_ranks(folder)
        if self.num_ranks == 0:
            raise EngineError(f"no trainer state under {folder}")
        self._optimizers = [
            self._open(rank, "optim_states")["optimizer_state_dict"] for rank in range(self.num_ranks)
        ]
        shapes = self.model_states(0)["param_shapes"]
        named = [(name, prod(shape)) for group in shapes for name, shape in group.items()]
        self.places = places_of(named, self.num_ranks, [flat.numel() for flat in self.flat_groups(0, MASTER)])

    def model_states(self, rank: int) -> dict[str, Any]:
        """Buffers, counters and random states of a rank."""
        return self._open(rank, "model_states")

    def optimizer(self, rank: int) -> dict[str, Any]:
        """The state of a rank's ZeRO-3 optimizer as DeepSpeed wrote it."""
        found: dict[str, Any] = self._optimizers[rank]
        return found

    def kinds(self, group: int) -> list[str]:
        """The optimizer's values of every element of a flat group, besides the master weights.

        Raises:
            EngineError: if the optimizer keeps values that are not one float an element.
        """
        state = self._optimizers[0]["optimizer_state_dict"]["state"][group]
        size = self.flat_groups(0, MASTER)[group].numel()
        vectors = {name: value for name, value in state.items() if torch.is_tensor(value) and value.dim()}
        for name, value in vectors.items():
            if value.numel() != size or not value.is_floating_point():
                raise EngineError(
                    f"the optimizer's {name} under {self._folder} is not one number per weight, so it cannot "
                    f"be cut for other than {self.num_ranks} ranks; set trainer.num_ranks={self.num_ranks}"
                )
        return list(vectors)

    def flat_groups(self, rank: int, kind: str) -> list[Any]:
        """The flat groups of a rank, for one kind of values; None where the optimizer has none of it."""
        saved = self._optimizers[rank]
        if kind == MASTER:
            return list(saved["fp32_flat_groups"])
        states = saved["optimizer_state_dict"]["state"]
        return [states[number].get(kind) for number in sorted(states)]

    def group_of(self, group: Sequence[tuple[str, int]]) -> int:
        """The saved flat group in which the first parameter of another one lies."""
        return self._place(group[0][0]).group

    def copy_into(self, target: torch.Tensor, name: str, kind: str, start: int) -> None:
        """Copy elements [start, start + len(target)) of a parameter; of those past its end none.

        Raises:
            EngineError: if the checkpoint has no such parameter.
        """
        place = self._place(name)
        stop, done = min(start + target.numel(), place.num_elements), 0
        while start + done < stop:
            rank, inside = divmod(start + done, place.length)
            count = min(place.length - inside, stop - start - done)
            flat, begin = self.flat_groups(rank, kind)[place.group], place.offset + inside
            target[done : done + count].copy_(flat[begin : begin + count])
            done += count

    def _place(self, name: str) -> FlatSlice:
        place = self.places.get(name)
        if place is None:
            raise EngineError(
                f"{name} is trained, and there is no state of it under {self._folder}: the checkpoint is of "
                "another model, or of other lora.targets"
            )
        return place

    def _open(self, rank: int, kind: str) -> dict[str, Any]:
        (file,) = self._folder.glob(f"*zero_pp_rank_{rank}_mp_rank_00_{kind}.pt")
        found: dict[str, Any] = torch.load(file, map_location="cpu", mmap=True, weights_only=False)
        return found


def count_ranks(folder: Path) -> int:
    """How many ranks wrote a state into a folder."""
    return len(list(folder.glob("zero_pp_rank_*_mp_rank_00_model_states.pt")))


def places_of(
    parameters: Iterable[tuple[str, int]], num_ranks: int, group_sizes: Sequence[int]
) -> dict[str, FlatSlice]:
    """Where each parameter's slices lie.

    Args:
        parameters: name and number of elements, in the order in which they were cut.
        num_ranks: that they were cut for.
        group_sizes: elements of each flat group of one rank.

    Raises:
        EngineError: if the groups are not made of these parameters.
    """
    places, group, offset = {}, 0, 0
    for name, num_elements in parameters:
        length = -(-num_elements // num_ranks)
        if group < len(group_sizes) and offset == group_sizes[group]:
            group, offset = group + 1, 0
        if group == len(group_sizes) or offset + length > group_sizes[group]:
            raise EngineError(f"the checkpoint's state of {name} does not lie where DeepSpeed puts it")
        places[name] = FlatSlice(group, offset, length, num_elements)
        offset += length
    return places


def load_from_other_ranks(engine: Any, folder: Path, rank: int, num_ranks: int) -> Mapping[str, Any]:
    """Give a ZeRO-3 engine its part of a checkpoint that another number of ranks wrote.

    Frozen parameters stay as they were loaded from model.path.

    Args:
        engine: DeepSpeed's, of this rank.
        folder: with the ranks' files.
        rank: this one.
        num_ranks: there are now.

    Returns:
        What the rank of that number, or one before it, had saved besides.
    """
    saved = SavedRanks(folder)
    optimizer = engine.optimizer
    optimizer.checkpoint_event_prologue()
    model_states = saved.model_states(rank % saved.num_ranks)
    engine.load_module_state_dict({"module": model_states["module"]})
    mine = cut_state(saved, groups_of(engine), rank)
    optimizer.load_state_dict([mine if each == rank else None for each in range(num_ranks)])
    for counter in ("global_steps", "global_samples", "skipped_steps"):
        setattr(engine, counter, model_states[counter])
    optimizer.checkpoint_event_epilogue()
    return model_states


def groups_of(engine: Any) -> list[list[tuple[str, int]]]:
    """Name and elements of this rank's slice of each trained parameter, by flat group."""
    names = {id(parameter): name for name, parameter in engine.module.named_parameters()}
    return [[(names[id(p)], p.partition_numel()) for p in group] for group in engine.optimizer.fp16_groups]


def cut_state(saved: SavedRanks, groups: Sequence[Sequence[tuple[str, int]]], rank: int) -> dict[str, Any]:
    """The optimizer's state as DeepSpeed would have written it on a rank of these groups.

    Args:
        saved: by another number of ranks.
        groups: name and elements of a slice of each parameter, by flat group.
        rank: whose slices.
    """

    def cut(group: Sequence[tuple[str, int]], kind: str) -> torch.Tensor:
        flat, offset = torch.zeros(sum(length for _, length in group)), 0
        for name, length in group:
            saved.copy_into(flat[offset : offset + length], name, kind, rank * length)
            offset += length
        return flat

    first = saved.optimizer(0)
    inner = first["optimizer_state_dict"]

    def state(group: Sequence[tuple[str, int]], before: int) -> dict[str, Any]:
        found = inner["state"][before].items()
        scalars = {name: value for name, value in found if not torch.is_tensor(value) or not value.dim()}
        return scalars | {kind: cut(group, kind) for kind in saved.kinds(before)}

    # A flat group holds parameters of one of the optimizer's groups, which have options of their own.
    before = [saved.group_of(group) for group in groups]
    options = [
        {**each, "params": [number for number, old in enumerate(before) if old in each["params"]]}
        for each in inner["param_groups"]
    ]
    return {
        **first,
        "fp32_flat_groups": [cut(group, MASTER) for group in groups],
        "optimizer_state_dict": {
            "state": {number: state(group, before[number]) for number, group in enumerate(groups)},
            "param_groups": options,
        },
    }
