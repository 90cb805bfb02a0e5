"""A small desktop for tests of what lies above a backend: buttons, a field, a knob. Its environment: ToyEnv.

Tasks, by the key "kind": click (a named button), form (type a word, press Send), drag (the knob to the
right end), ask (say the word on the card). Without a kind the seed draws one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    Move,
    Pixel,
    Scroll,
    TypeText,
    points_of,
)
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.screen import Element, Form, PixelBox, Screen, Verdict
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

KINDS = ("click", "form", "drag", "ask")
NAMES = ("Save", "Open", "Print", "Close", "Undo", "Copy", "Paste", "Find")
WORDS = ("tea", "river", "lamp", "stone", "cloud", "apple")
TRACK = (30, 290)
KNOB_Y = 150


@dataclass(frozen=True, slots=True)
class World:
    """All that there is; a snapshot is one of these."""

    kind: str
    names: tuple[str, ...]
    places: tuple[PixelBox, ...]
    wanted: str
    pressed: tuple[str, ...] = ()
    text: str = ""
    is_focused: bool = False
    knob: int = TRACK[0]
    scrolled: int = 0
    answer: str = ""
    pointer: Pixel = (0, 0)
    held: Pixel | None = None


@dataclass(slots=True)
class ToyDesktop:
    """A `Backend`, with elements, an oracle and snapshots."""

    size: tuple[int, int] = (320, 240)
    form: Form = "desktop"
    max_steps: int = 8
    world: World = field(init=False)

    FIELD: PixelBox = (20, 190, 220, 214)
    SEND: PixelBox = (232, 190, 300, 214)

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        unknown = sorted(set(task) - {"kind"})
        if unknown or task.get("kind", "click") not in KINDS:
            raise ConfigError(f"toy desktop: the task {dict(task)} is not {{kind: {' | '.join(KINDS)}}}")
        rng = np.random.default_rng(derive_seed("toy desktop", seed))
        kind = str(task.get("kind") or KINDS[rng.integers(len(KINDS))])
        names = tuple(NAMES[i] for i in rng.permutation(len(NAMES))[:4])
        places = tuple(
            (int(x), int(y), int(x) + 110, int(y) + 30)
            for x, y in (
                (30 + 140 * (i % 2) + rng.integers(-10, 10), 44 + 44 * (i // 2) + rng.integers(-6, 6))
                for i in range(4)
            )
        )
        wanted = names[rng.integers(4)] if kind == "click" else WORDS[rng.integers(len(WORDS))]
        self.world = World(kind, names, places, wanted)
        return self._screen()

    @property
    def goal(self) -> str:
        world = self.world
        return {
            "click": f"Click the button {world.wanted}.",
            "form": f"Type {world.wanted} into the field, then press Send.",
            "drag": "Drag the knob to the right end of its track.",
            "ask": "Which word stands on the card? Answer with it.",
        }[world.kind]

    @property
    def ends_at_goal(self) -> bool:
        return self.world.kind != "ask"

    def perform(self, action: Action) -> Screen:
        places = points_of(action)
        world = replace(self.world, pointer=places[-1]) if places else self.world
        match action:
            case Click(button="left"):
                world = self._clicked(world)
            case Drag(path=path) if abs(path[0][0] - world.knob) < 12 and abs(path[0][1] - KNOB_Y) < 12:
                world = replace(world, knob=min(max(path[-1][0], TRACK[0]), TRACK[1]))
            case TypeText(text=text) if world.is_focused:
                world = replace(world, text=(world.text + text)[:30])
            case Key(keys=("backspace",)) if world.is_focused:
                world = replace(world, text=world.text[:-1])
            case Scroll(dy=dy):
                world = replace(world, scrolled=min(max(world.scrolled + dy, 0), 400))
            case ButtonDown():
                world = replace(world, held=world.pointer)
            case ButtonUp():
                world = replace(world, held=None)
            case Answer(text=text):
                world = replace(world, answer=text)
            case Move() | _:
                pass
        self.world = world
        return self._screen()

    def verdict(self) -> Verdict:
        world = self.world
        milestones = {
            "click": {"pressed": world.pressed[-1:] == (world.wanted,)},
            "form": {"typed": world.text == world.wanted, "sent": world.pressed[-1:] == ("Send",)},
            "drag": {"moved": world.knob >= TRACK[1] - 4},
            "ask": {"answered": world.answer.strip().lower() == world.wanted},
        }[world.kind]
        stray = tuple(name for name in world.pressed if name not in ("Send", world.wanted))
        return Verdict(
            all(milestones.values()) and not stray,
            sum(milestones.values()) / len(milestones) if not stray else 0.0,
            milestones,
            stray,
        )

    def elements(self) -> Sequence[Element]:
        world = self.world
        states = frozenset({"focused"} if world.is_focused else ())
        return [
            Element("window", "Toy", (0, 0, *self.size)),
            *(
                Element("button", name, box, path=("Toy",))
                for name, box in zip(world.names, world.places, strict=True)
            ),
            Element("textbox", "Text", self.FIELD, world.text, states, ("Toy",)),
            Element("button", "Send", self.SEND, path=("Toy",)),
        ]

    def oracle(self) -> Action:
        world = self.world
        if world.kind == "click":
            return Click(_middle(world.places[world.names.index(world.wanted)]))
        if world.kind == "drag":
            return Drag(((world.knob, KNOB_Y), (TRACK[1], KNOB_Y)))
        if world.kind == "ask":
            return Answer(world.wanted)
        if not world.text:
            return TypeText(world.wanted) if world.is_focused else Click(_middle(self.FIELD))
        return Click(_middle(self.SEND)) if world.text == world.wanted else Key(("backspace",))

    def snapshot(self) -> World:
        return self.world

    def restore(self, state: World) -> None:
        self.world = state

    def close(self) -> None:
        pass

    def _clicked(self, world: World) -> World:
        x, y = world.pointer
        boxes = {**dict(zip(world.names, world.places, strict=True)), "Send": self.SEND}
        hit = tuple(name for name, (x0, y0, x1, y1) in boxes.items() if x0 <= x < x1 and y0 <= y < y1)
        x0, y0, x1, y1 = self.FIELD
        return replace(world, pressed=world.pressed + hit, is_focused=x0 <= x < x1 and y0 <= y < y1)

    def _screen(self) -> Screen:
        world = self.world
        image = Image.new("RGB", self.size, (236, 239, 243))
        draw, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()

        def label(box: PixelBox, words: str, fill: tuple[int, int, int], ink: tuple[int, int, int]) -> None:
            draw.rounded_rectangle((box[0], box[1], box[2] - 1, box[3] - 1), 5, fill, (170, 178, 190))
            x, y = _middle(box)
            draw.text((x - font.getbbox(words)[2] // 2, y - 5), words, ink, font)

        draw.rectangle((0, 0, self.size[0], 23), (52, 73, 110))
        draw.text((10, 7), "Toy", (255, 255, 255), font)
        for name, box in zip(world.names, world.places, strict=True):
            pressed = name in world.pressed[-1:]
            label(box, name, (90, 140, 220) if pressed else (252, 252, 253), (30, 34, 40))
        draw.line((TRACK[0], KNOB_Y, TRACK[1], KNOB_Y), (150, 158, 170), 4)
        draw.ellipse((world.knob - 9, KNOB_Y - 9, world.knob + 9, KNOB_Y + 9), (52, 110, 200))
        if world.kind == "ask":
            label((200, 160, 300, 184), world.wanted, (255, 246, 200), (60, 50, 10))
        draw.rectangle(self.FIELD, (255, 255, 255), (52, 110, 200) if world.is_focused else (170, 178, 190))
        draw.text((self.FIELD[0] + 6, self.FIELD[1] + 7), world.text, (30, 34, 40), font)
        label(
            self.SEND, "Send", (120, 200, 140) if "Send" in world.pressed else (252, 252, 253), (30, 34, 40)
        )
        draw.rectangle((312, 26, 317, 236), (220, 224, 230))
        draw.rectangle((312, 26 + world.scrolled // 3, 317, 66 + world.scrolled // 3), (150, 158, 170))
        x, y = world.pointer
        draw.polygon([(x, y), (x, y + 12), (x + 8, y + 9)], (20, 20, 20), (255, 255, 255))
        return Screen(np.asarray(image), world.pointer)


class ToyEnv(GuiEnv):
    """Click, type, drag or answer on a toy desktop. Reward 1 at the end."""

    def __init__(self, max_steps: int = 8, form: Form = "desktop", **rules: Any) -> None:
        super().__init__(ToyDesktop(max_steps=max_steps, form=form), **rules)


def _middle(box: PixelBox) -> Pixel:
    return (box[0] + box[2]) // 2, (box[1] + box[3]) // 2
