"""Older selves: frozen policies whose adapters are copies of another's, taken again every so many steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vlrl.config.learning.policies import PolicyConfig
from vlrl.errors import EngineError
from vlrl.model.lora import policy_of, slice_of
from vlrl.trainer.regularizers.reference import written_slice

FOLDER = "copies"


class AdapterCopies:
    """The frozen adapters of this rank, each beside the one that it copies: nothing is gathered."""

    def __init__(self, engine: Any, policies: Mapping[str, PolicyConfig]) -> None:
        """Pair the weights of a DeepSpeed engine; a copy begins as what it copies, in both halves."""
        self._engine, self._policies = engine, policies
        self._pairs: dict[str, tuple[Any, Any]] = {}
        if not any(policy.copies is not None for policy in policies.values()):
            return
        named = dict(engine.module.named_parameters())
        for name, parameter in named.items():
            copied = policies[policy_of(name)].copies if ".lora_" in name else None
            if copied is not None:
                source = name.replace(f".{policy_of(name)}.", f".{copied}.")
                self._pairs[name] = (named[source], parameter)
        self._take(list(self._pairs))

    def follow(self, step: int) -> None:
        """Take the copies that are due before this step, which is counted from 0; every rank must call it."""
        due = [
            name
            for name in self._pairs
            if (every := self._policies[policy_of(name)].every) is not None and step % every == 0
        ]
        self._take(due)

    def _take(self, names: list[str]) -> None:
        if not names:
            return
        self._engine.empty_partition_cache()  # whole weights that it kept are of before
        for name in names:
            source, copy = self._pairs[name]
            mine = slice_of(source)
            with written_slice(copy) as target:
                target.copy_(mine)

    def save(self, folder: str, rank: int) -> None:
        """Write this rank's slices."""
        if not self._pairs:
            return
        path = Path(folder) / FOLDER / f"rank_{rank}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Cloned: a slice is a view of its group, which torch would write whole.
        torch.save({name: slice_of(copy).cpu().clone() for name, (_, copy) in self._pairs.items()}, path)

    def load(self, folder: str, rank: int) -> None:
        """Read what as many ranks or others wrote.

        Raises:
            EngineError: if the checkpoint has no copies, or those of other layers.
        """
        if not self._pairs:
            return
        files = sorted(
            (Path(folder) / FOLDER).glob("rank_*.pt"), key=lambda file: int(file.stem[len("rank_") :])
        )
        saved = [torch.load(file, map_location="cpu", mmap=True, weights_only=True) for file in files]
        self._engine.empty_partition_cache()
        for name, (_, copy) in self._pairs.items():
            if not saved or name not in saved[0]:
                raise EngineError(
                    f"{folder}/{FOLDER} has no {name}: the checkpoint is of other policies or lora.targets"
                )
            whole = torch.cat([of_rank[name] for of_rank in saved])[: copy.ds_numel]
            with written_slice(copy) as target:
                mine = torch.zeros(target.shape, dtype=whole.dtype)
                part = whole[rank * len(mine) : (rank + 1) * len(mine)]
                mine[: len(part)] = part
                target.copy_(mine)
