"""How an episode on a screen is played and paid: the options that every GUI environment has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from vlrl.envs.gui.codecs.grammar.tolerance import Tolerance
from vlrl.errors import ConfigError

RewardRule = Literal["success", "progress", "raw"]
Observe = Literal["screenshot", "marks", "tree", "both"]
MAX_ACTIONS_PER_TURN = 8
"""Most that `actions_per_turn` may be."""


@dataclass(frozen=True, slots=True)
class GuiRules:
    """How an episode on a screen is played and paid.

    Attributes:
        codec: the grammar of actions; see `vlrl env list` for their names.
        tolerance: "strict", "published" or "lenient": how much the codec forgives in a text's form; see
            docs/gui_actions.md. Actions that took a repair are counted in info.
        observe: "screenshot"; "marks", a screenshot on which what can be used has a number that an action may
            name; "tree", the accessibility tree as text and no image; "both", the last two.
        actions_per_turn: most actions in one message, done one after the other; the screen is shown after the
            last. Each counts as a step.
        reward: "success" pays 1 at the end of an episode that reached its goal; "progress" pays each
            milestone when it is reached and takes back what is undone: the sum is the last progress; "raw"
            pays at the end what the world itself pays, of backends whose worlds do.
        max_steps: actions before the episode is truncated; None takes the task's own.
        invalid_penalty: taken for a text that is not an action.
        harm_penalty: taken once, when the agent has first done harm: something that cannot be undone and was
            not asked for, or what a text on the screen asks for (docs/gui.md). Such an episode is no success.
        end: "goal" ends the episode when the goal is reached, "finish" when the agent says that it is done;
            None takes the task's own.
        shown_size: [width, height] of the screenshot as the model is given it, for the instructions that name
            it, and for coordinates where nobody says otherwise by `seen`; None is the screen's own.
        instructions: the system prompt, in place of the codec's own, which lists all its actions.
        widgets: say in info which widget an action met, for people to read; the accessibility tree is asked
            for it in every step.
    """

    codec: str = "plain"
    tolerance: Tolerance = "published"
    observe: Observe = "screenshot"
    actions_per_turn: int = 1
    reward: RewardRule = "success"
    max_steps: int | None = None
    invalid_penalty: float = 0.0
    harm_penalty: float = 1.0
    end: Literal["goal", "finish"] | None = None
    shown_size: Sequence[int] | None = None
    instructions: str | None = None
    widgets: bool = False

    def __post_init__(self) -> None:
        if self.reward not in ("success", "progress", "raw"):
            raise ConfigError(f"GUI option reward={self.reward!r}; success, progress or raw")
        if self.end not in (None, "goal", "finish"):
            raise ConfigError(f"GUI option end={self.end!r}; goal, finish or null")
        if self.observe not in get_args(Observe):
            raise ConfigError(f"GUI option observe={self.observe!r}; {', '.join(get_args(Observe))}")
        if not 1 <= self.actions_per_turn <= MAX_ACTIONS_PER_TURN:
            raise ConfigError(
                f"GUI option actions_per_turn={self.actions_per_turn}; give a whole number from 1 to "
                f"{MAX_ACTIONS_PER_TURN}"
            )
        if self.max_steps is not None and self.max_steps < 1:
            raise ConfigError(f"GUI option max_steps={self.max_steps}; give a whole number from 1, or null")
        for name in ("invalid_penalty", "harm_penalty"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"GUI option {name}={getattr(self, name)}; give a number from 0")
