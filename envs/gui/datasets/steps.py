"""Demonstrations as rows: each step is a row, for `vlrl sft` by its target and for rewards by its answer.

A row has the codec's instructions, the task, what was done before, and the screenshot of the step. Its target
is the step's action in the codec's words; its answer is the action in common words (`vlrl.parsing.actions`),
with the box of what was meant where the set gives one. `history` says how what was done before is told:

    text    a list of the earlier actions under the task
    turns   a conversation: each earlier screenshot, and the action as the assistant's turn

and `images` how many screenshots are shown, the step's own and the last ones before it. An action that the
codec cannot say is left out, as a step and from the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vlrl.data.readers.record import Record
from vlrl.envs.gui.actions import (
    Action,
    Answer,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.directions import direction_of
from vlrl.envs.gui.datasets.style import Style
from vlrl.envs.gui.screen import Form
from vlrl.errors import ConfigError
from vlrl.parsing.actions import CLICKS
from vlrl.processors.messages import message_of

History: TypeAlias = Literal["text", "turns"]
HISTORIES = ("text", "turns")
NOT_SHOWN = "(an earlier screenshot)"
"""What stands for a screenshot that is not shown again."""


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One screenshot and what was done on it.

    Attributes:
        image: its source, see `vlrl.processors.media.sources`.
        size: (height, width) of the image.
        action: what was done; None for one that vlrl has no word for.
        box: (x0, y0, x1, y1) of what a click was meant for, in pixels of the image; None if it is not known.
        instruction: of this step alone; "" if there is none.
        metadata: of the row.
    """

    image: Any
    size: tuple[int, int]
    action: Action | None
    box: tuple[float, float, float, float] | None = None
    instruction: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An episode that a person has played.

    Attributes:
        place: its name, unique in the set.
        goal: the task.
        form: of the screen.
        steps: in order.
        root: folder that images are relative to, if they are paths.
        metadata: of all its rows.
    """

    place: str
    goal: str
    form: Form
    steps: Sequence[ShownStep]
    root: Path | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """How rows of demonstrations are told; see this file's first lines."""

    style: Style
    history: History = "text"
    images: int = 1

    def __post_init__(self) -> None:
        if self.history not in HISTORIES:
            raise ConfigError(f"history={self.history!r}; give {' or '.join(HISTORIES)}")
        if self.images < 1:
            raise ConfigError(
                f"images={self.images}; the step's own screenshot is always shown: give 1 or more"
            )

    def rows(self, shown: Demonstration) -> Iterator[Record]:
        """A row for each step whose action the codec can say."""
        past: list[tuple[ShownStep, str]] = []
        for number, step in enumerate(shown.steps):
            words = self._words(step)
            if words is None:
                continue
            assert step.action is not None
            record = {
                "messages": self._messages(shown, past, step),
                "target": words,
                "answer": answer_of(step.action, step.box),
                "metadata": {
                    "codec": self.style.codec.name,
                    "form": shown.form,
                    "step": number,
                    **shown.metadata,
                    **step.metadata,
                },
            }
            yield Record(record, f"{shown.place}:{number}", shown.root)
            past.append((step, words))

    def _words(self, step: ShownStep) -> str | None:
        try:
            return None if step.action is None else self.style.words(step.action, step.size)
        except ActionError:
            return None

    def _messages(
        self, shown: Demonstration, past: Sequence[tuple[ShownStep, str]], step: ShownStep
    ) -> list[dict[str, Any]]:
        system = self.style.instructions(step.size, shown.form)
        task = f"Task: {shown.goal}"
        now = f"\nNext step: {step.instruction}" if step.instruction else ""
        if self.history == "text":
            done = [f"\n{n}. {words}" for n, (_, words) in enumerate(past, 1)]
            text = task + ("\nWhat has been done:" + "".join(done) if done else "") + now
            shown_before = past[max(0, len(past) - self.images + 1) :]
            images = [*(earlier.image for earlier, _ in shown_before), step.image]
            return [system, _user(images, text)]
        messages = [system]
        for number, (earlier, words) in enumerate(past):
            is_shown = number > len(past) - self.images
            lines = [*([task] if number == 0 else []), *([] if is_shown else [NOT_SHOWN])]
            messages.append(_user([earlier.image] if is_shown else [], "\n".join(lines)))
            messages.append(message_of("assistant", words))
        return [*messages, _user([step.image], (now if past else task + now).strip())]


def _user(images: Sequence[Any], text: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}] if text else parts}


def answer_of(action: Action, box: tuple[float, float, float, float] | None = None) -> dict[str, Any]:
    """An action in the common words of `vlrl.parsing.actions`, places in pixels of the screenshot."""
    match action:
        case Click(point=point, button=button, count=count):
            kind = CLICKS.get((button, str(count)), "click")
            return {"action": kind, **_place(point, box)}
        case LongPress(point=point):
            return {"action": "long_press", **_place(point, box)}
        case Move(point=point):
            return {"action": "move", **_place(point, box)}
        case Drag(path=path):
            return {"action": "drag", "coordinate": list(path[0]), "coordinate2": list(path[-1])}
        case Swipe(start=start, end=end):
            return {"action": "swipe", "coordinate": list(start), "coordinate2": list(end)}
        case Scroll():
            return {"action": "scroll", "direction": direction_of(action)}
        case TypeText(text=text):
            return {"action": "type", "text": text}
        case Key(keys=keys):
            return {"action": "key", "keys": " ".join(keys)}
        case OpenApp(name=name):
            return {"action": "open_app", "text": name}
        case SystemButton(name=name):
            return {"action": name}
        case Answer(text=text):
            return {"action": "answer", "text": text}
        case Finish(success=success):
            return {"action": "finish", "status": "success" if success else "failure"}
        case Wait():
            return {"action": "wait"}
    return {"action": type(action).__name__.lower()}


def _place(
    point: tuple[int, int] | None, box: tuple[float, float, float, float] | None
) -> dict[str, list[float]]:
    if box is not None:
        return {"bbox": list(box)}
    return {} if point is None else {"coordinate": list(point)}
