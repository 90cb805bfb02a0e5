"""What every backend of a GUI environment takes and gives; a new backend is a class with these methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from vlrl.envs.gui.actions import Action, Pixel
from vlrl.types import ByteArray

Form = Literal["desktop", "mobile"]
PixelBox: TypeAlias = tuple[int, int, int, int]
"""(x0, y0, x1, y1) in pixels of the screen: from x0 to before x1."""
UNCLEAN = 0.5
"""Share of the progress that is left when something else was changed, too."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A screenshot.

    Attributes:
        pixels: [height, width, 3] uint8 RGB, pointer drawn where there is one; not changed afterwards.
        pointer: where the pointer is.
        settled: False if the screen was still changing when the time to wait for it had run out.
    """

    pixels: ByteArray
    pointer: Pixel = (0, 0)
    settled: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """A widget, as an accessibility tree names it; one schema for emulator, AT-SPI and DOM.

    Attributes:
        role: ARIA's word in lower case: "button", "textbox", "menuitem", "window", …
        name: what a person would call it; its label or text.
        box: where it is; what other windows cover is not cut off.
        value: a field's text, a slider's number.
        states: of "focused", "checked", "selected", "expanded", "disabled", "hidden", "covered", "clipped":
            a part of it cannot be seen.
        path: names of the elements that hold it, the outermost first.
    """

    role: str
    name: str
    box: PixelBox
    value: str = ""
    states: frozenset[str] = frozenset()
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a task, read from where the agent cannot reach.

    Attributes:
        success: everything that was asked for is so, and nothing else was changed.
        progress: share of the milestones that are reached, weighted, 0 to 1; 1 only with success.
        milestones: which are reached.
        side_effects: what changed that should not have, in words.
        ended: the world itself is over, as a page that counts the first click.
        reward: what the world itself pays, -1 to 1; None of one that pays nothing.
        agent_error: what the agent broke, so that the world cannot go on; it has ended without success.
        harms: what was done that cannot be undone, or that somebody else than the user asked for, in words.
    """

    success: bool
    progress: float
    milestones: Mapping[str, bool] = field(default_factory=dict)
    side_effects: tuple[str, ...] = ()
    ended: bool = False
    reward: float | None = None
    agent_error: str = ""
    harms: tuple[str, ...] = ()


class Backend(Protocol):
    """A machine with a screen and a task on it. Not async: it runs in a thread or a process of its own.

    What it may also have:

        oracle() -> Action                      a right next action; NoOracle where it knows none
        elements() -> Sequence[Element]         the accessibility tree, front windows last
        snapshot() -> Any, restore(Any)         its state as a value
        task_info: Mapping                      name and level of the task that the seed drew
        end_episode()                           give back what only the episode needs
    """

    size: tuple[int, int]
    """(width, height) of the screen in pixels."""
    form: Form

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Set the task up and show it; the same task and seed give the same world.

        Raises:
            ConfigError: for an unknown task or key.
        """
        ...

    @property
    def goal(self) -> str:
        """What the agent is asked to do."""
        ...

    @property
    def max_steps(self) -> int:
        """Actions that the task allows for."""
        ...

    @property
    def ends_at_goal(self) -> bool:
        """True where the episode ends when the goal is reached, False where the agent has to say so."""
        ...

    def perform(self, action: Action) -> Screen:
        """Do it, wait until the screen has settled, show it. Answer and Finish are kept for the verdict.

        Raises:
            ActionError: for an action that this machine cannot do, before any of it is done.
        """
        ...

    def verdict(self) -> Verdict:
        """How the task stands now."""
        ...

    def close(self) -> None:
        """Free everything; safe to call twice."""
        ...
