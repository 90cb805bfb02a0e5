"""Tokens that a loss is tried on: sequences of several lengths, whole, permuted, split and in slices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from vlrl.algorithm.off_policy import sequence_sums

LENGTHS = (3, 1, 5, 2, 4)
SumsFn = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a loss is called with.

    Attributes:
        trainer_logprobs: [M] nats.
        anchor_logprobs: [M] nats.
        sampler_logprobs: [M] nats, other than the anchor's: tokens are off-policy.
        advantages: [M], of both signs.
        sequence_ids: [M] int64.
    """

    trainer_logprobs: Tensor
    anchor_logprobs: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    sequence_ids: Tensor

    @classmethod
    def generated(cls, seed: int, spread: float, dtype: torch.dtype = torch.float64) -> Tokens:
        """Five sequences; log-ratios to the anchor have this deviation."""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
        noise = torch.randn(4, len(ids), generator=generator, dtype=torch.float64).to(dtype)
        anchor = -1 - noise[0].abs()
        return cls(anchor + spread * noise[1], anchor, anchor + 0.1 * noise[2], noise[3], ids)

    def __getitem__(self, index: Any) -> Tokens:
        """Some of the tokens."""
        return Tokens(*(values[index] for values in self.tensors))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, in order."""
        return (
            self.trainer_logprobs,
            self.anchor_logprobs,
            self.sampler_logprobs,
            self.advantages,
            self.sequence_ids,
        )

    def with_(self, **changed: Tensor) -> Tokens:
        """The same but for some."""
        return replace(self, **changed)

    def sums(self, values: Tensor) -> Tensor:
        """Every token's sum over its sequence."""
        return sequence_sums(values, self.sequence_ids)


def call(loss: Callable[..., Any], tokens: Tokens, sums: SumsFn | None = None) -> Any:
    """What a loss returns for these tokens."""
    return loss(
        tokens.trainer_logprobs,
        tokens.anchor_logprobs,
        tokens.advantages,
        sequence_sums=sums or tokens.sums,
        sampler_logprobs=tokens.sampler_logprobs,
    )


class Uneven(Exception):
    """A slice asked for a sum that the other one did not."""


def in_slices(loss: Callable[..., Any], tokens: Tokens, cut: int) -> list[Any]:
    """What two ranks get, each with its slice, sharing sums (`vlrl.model.sequence_parallel.shared_sums`).

    Raises:
        Uneven: if they do not ask for the same sums.
    """
    parts = [tokens[:cut], tokens[cut:]]
    changed = threading.Condition()
    given: list[list[Tensor]] = [[], []]
    """By slice: what it has asked the sums of."""
    ended = [False, False]
    returned: list[Any] = [None, None]
    errors: list[Exception | None] = [None, None]

    def sums_of(number: int) -> SumsFn:
        other = 1 - number

        def sums(values: Tensor) -> Tensor:
            with changed:
                given[number].append(values.detach())
                asked = len(given[number])
                changed.notify_all()
                changed.wait_for(lambda: len(given[other]) >= asked or ended[other])
                if len(given[other]) < asked:
                    raise Uneven
                total = sequence_sums(
                    torch.cat([of_slice[asked - 1] for of_slice in given]), tokens.sequence_ids
                )
            return total[:cut] if number == 0 else total[cut:]

        return sums

    def run(number: int) -> None:
        try:
            returned[number] = call(loss, parts[number], sums_of(number))
        except Exception as error:  # of whatever the author's code raises
            errors[number] = error
        with changed:
            ended[number] = True
            changed.notify_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raised = sorted(filter(None, errors), key=lambda error: isinstance(error, Uneven))
    if raised:  # the author's own first
        raise raised[0]
    return returned


class Constants(TorchFunctionMode):
    """Keeps what a loss detaches, and gives it back in later calls: it is a constant of the gradient."""

    def __init__(self) -> None:
        """Record; `replayed` gives back what was recorded."""
        super().__init__()
        self._kept: list[Tensor] = []
        self._next: int | None = None
        self._paused = False

    def replayed(self) -> Constants:
        """Give back, beginning with the first one."""
        self._next = 0
        return self

    def outside(self, sums: SumsFn) -> SumsFn:
        """A function that is not the author's: what it detaches depends on its argument."""

        def called(values: Tensor) -> Tensor:
            self._paused = True
            try:
                return sums(values)
            finally:
                self._paused = False

        return called

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Called by torch in place of each of its functions."""
        result = func(*args, **(kwargs or {}))
        detaches = func in _DETACH or (not torch.is_grad_enabled() and isinstance(result, Tensor))
        if self._paused or not detaches:
            return result
        if self._next is None:
            self._kept.append(result.clone())
            return result
        self._next += 1
        return self._kept[self._next - 1]


_DETACH = (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)  # type: ignore[attr-defined]
