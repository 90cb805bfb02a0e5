"""The implementation that a process chose for its machine, where a faster and a slower one compute the same.

A slower way is never taken silently: every choice is printed at the start of a run and kept in summary.json
under "choices", with what was wanted, what is used, why, and what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class MachineChoice:
    """One such choice.

    Attributes:
        name: of what is done in one way or the other, such as "attention".
        wanted: the way that the config and this kind of device ask for.
        used: the way that is taken.
        reason: why.
        cost: of `used` against `wanted`, in words; empty if they are the same.

    Example:
        >>> print(MachineChoice("attention", "flex", "blocks", "no C compiler was found", "twice the time"))
        attention: blocks in place of flex: no C compiler was found (cost: twice the time)
    """

    name: str
    wanted: str
    used: str
    reason: str
    cost: str = ""

    def __post_init__(self) -> None:
        if self.is_slower != bool(self.cost):
            raise ValueError(
                f"{self.name}: a cost belongs to a choice that is not the wanted one, and only there"
            )

    @classmethod
    def as_wanted(cls, name: str, used: str, reason: str) -> MachineChoice:
        """The wanted way is taken."""
        return cls(name, used, used, reason)

    @property
    def is_slower(self) -> bool:
        """Whether something else than the wanted way is taken."""
        return self.used != self.wanted

    def __str__(self) -> str:
        if not self.is_slower:
            return f"{self.name}: {self.used} ({self.reason})"
        return f"{self.name}: {self.used} in place of {self.wanted}: {self.reason} (cost: {self.cost})"


def merged(of_processes: Sequence[Sequence[MachineChoice]], kind: str) -> list[MachineChoice]:
    """The choices of the first process, and what others chose otherwise, under their own name.

    Args:
        of_processes: in order.
        kind: what a process is called, such as "rank".
    """
    first = list(of_processes[0])
    others = [
        replace(choice, name=f"{choice.name} of {kind} {number}")
        for number, choices in enumerate(of_processes)
        for choice in choices
        if choice not in first
    ]
    return first + others
