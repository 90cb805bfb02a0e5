"""Samples to try a reward on: a file's, or a small built-in set that fits what the reward compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.check.data.plain import PlainSamples
from vlrl.check.data.plan import NO_MODEL, read_target
from vlrl.config import Config, parse_config
from vlrl.data import open_dataset
from vlrl.errors import ConfigError
from vlrl.registry import available
from vlrl.types import Media, Prompt, Sample

SIZE = (480, 640)
"""(height, width) of the blank image of the built-in samples."""

_PLACES = (
    *([24, 30, 120, 110], [300, 40, 420, 150], [500, 200, 620, 330], [40, 300, 160, 440]),
    *([260, 330, 380, 460], [170, 160, 250, 260], [440, 370, 560, 470], [300, 190, 400, 290]),
)
_LABELS = ("cat", "dog", "car", "tree", "lamp", "boat", "chair", "kite")


def built_in_sets() -> dict[str, list[Sample]]:
    """Name → samples, one set for each kind of answer that the built-in rewards compare."""
    return {
        "choice": [
            _sample("choice", i, f"Which one is it? Image {i}.", letter, choices=list(options))
            for i, (letter, *options) in enumerate(_CHOICES)
        ],
        "text": [_sample("text", i, question, answer) for i, (question, answer) in enumerate(_TEXTS)],
        "number": [
            _sample("number", i, f"How many are there in image {i}?", str(answer))
            for i, answer in enumerate((7, 12, 30, 45, 81, 150, 260, 390, 512, 777, 1024, 2048))
        ],
        "yes or no": [
            _sample("yes or no", i, "Is the door open?", answer) for i, answer in enumerate(("yes", "no") * 3)
        ],
        "order": [_sample("order", i, "In which order?", list(items)) for i, items in enumerate(_ORDERS)],
        "span": [_sample("span", i, "When does it happen?", [10.0 * i, 10.0 * i + 6.5]) for i in range(1, 9)],
        "action": [_sample("action", i, "Do it.", answer) for i, answer in enumerate(_ACTIONS)],
        "polygon": [
            _sample("polygon", i, "Outline it.", [[a, b], [c, b], [c, d], [(a + c) / 2, d]])
            for i, (a, b, c, d) in enumerate(_PLACES)
        ],
        "boxes": [
            _sample("boxes", i, "Find all.", [_labelled(i), _labelled((i + 3) % len(_PLACES))])
            for i in range(len(_PLACES))
        ],
        "box": [_sample("box", i, f"Where is the {_LABELS[i]}?", box) for i, box in enumerate(_PLACES)],
    }


def read_samples(data: str, overrides: Sequence[str], limit: int) -> list[Sample]:
    """The first rows of a config, or of anything that data.train.name takes; no model is needed.

    Raises:
        ConfigError: for data that does not exist or has no rows.
        DataError: for a row that cannot be read.
    """
    config = _config_of(data, overrides)
    plain = PlainSamples(config)
    found: list[Sample] = []
    for number, source in enumerate(config.data.train):
        section = f"data.train.{number}" if len(config.data.train) > 1 else "data.train"
        rows = open_dataset(source, section)
        found += (plain.sample(rows[i]) for i in range(min(len(rows), limit - len(found))))
    if not found:
        raise ConfigError(f"--data {data} has no rows; give at least one")
    return found


def _config_of(data: str, overrides: Sequence[str]) -> Config:
    if data not in available("datasets") or Path(data).exists():
        return read_target(data, overrides)
    tree = {"model": {"path": NO_MODEL}, "data": {"train": {"name": data}}}
    inner = [o if o.startswith("data.") else f"data.train.{o}" for o in overrides]
    return parse_config(tree, source=data, overrides=inner)


def question_of(sample: Sample) -> str:
    """The text of the sample's last message."""
    content = sample.messages[-1]["content"] if sample.messages else ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _sample(kind: str, number: int, question: str, answer: Any, **metadata: Any) -> Sample:
    nothing = np.zeros(0, np.int64)
    return Sample(
        id=f"{kind} {number}",
        messages=({"role": "user", "content": [{"type": "text", "text": question}]},),
        media=(_blank(),),
        prompt=Prompt(nothing, nothing, np.zeros((3, 0), np.int64), 0),
        answer=answer,
        metadata=metadata,
    )


def _blank() -> Media:
    height, width = SIZE
    frames = np.broadcast_to(np.uint8(255), (1, height, width, 3))
    return Media("image", "0" * 64, frames, SIZE, (1, 1, 1), 0, coordinate_frame="original_pixels")


def _labelled(index: int) -> dict[str, Any]:
    return {"bbox_2d": _PLACES[index], "label": _LABELS[index]}


_CHOICES: tuple[tuple[str, ...], ...] = (
    ("B", "oak leaf", "silver key", "paper boat", "green bottle"),
    ("D", "wool scarf", "brass bell", "tin drum", "clay pot"),
    ("A", "stone bridge", "iron gate", "wooden mill", "glass tower"),
    ("C", "river bank", "snowy hill", "sandy beach", "deep forest"),
    ("B", "round table", "square mirror", "tall ladder", "short bench"),
    ("A", "white swan", "black raven", "grey owl", "brown hen"),
    ("D", "sharp knife", "blunt axe", "rusty saw", "new hammer"),
    ("C", "old castle", "small cabin", "red barn", "blue tent"),
)
_TEXTS: tuple[tuple[str, str], ...] = (
    ("What hangs on the wall?", "silver clock"),
    ("What stands in the corner?", "broken umbrella"),
    ("What does the sign say?", "harbour street"),
    ("What is in the basket?", "ripe peaches"),
    ("Who is on the stage?", "jazz trumpeter"),
    ("What covers the hill?", "yellow tulips"),
    ("What pulls the cart?", "two donkeys"),
    ("What lies on the desk?", "folded map"),
    ("What is parked outside?", "vintage motorbike"),
    ("What is the child holding?", "paper lantern"),
    ("What crosses the lake?", "wooden ferry"),
    ("What is on the roof?", "copper weathervane"),
    ("What is the cook cutting?", "purple cabbage"),
    ("What fills the shelf?", "law books"),
    ("What is under the bench?", "sleeping hound"),
    ("What is printed on the mug?", "smiling fox"),
    ("What grows by the door?", "climbing jasmine"),
    ("What is tied to the post?", "rope ladder"),
    ("What is on the plate?", "grilled sardines"),
    ("What drives on the track?", "steam engine"),
    ("What is drawn on the board?", "cubic graph"),
    ("What floats in the glass?", "mint sprig"),
    ("What stands on the field?", "straw scarecrow"),
    ("What is behind the curtain?", "grand piano"),
)
_ORDERS: tuple[tuple[str, ...], ...] = (
    ("wash", "peel", "slice", "fry"),
    ("knock", "enter", "greet", "sit"),
    ("dig", "plant", "water", "harvest"),
    ("wake", "dress", "leave", "return"),
    ("load", "aim", "shoot", "retrieve"),
    ("sketch", "ink", "colour", "frame"),
)
_ACTIONS: tuple[Mapping[str, Any], ...] = (
    {"action": "click", "bbox": [24, 30, 120, 110]},
    {"action": "click", "bbox": [500, 200, 620, 330]},
    {"action": "click", "bbox": [40, 300, 160, 440]},
    {"action": "type", "input_text": "wireless headphones"},
    {"action": "type", "input_text": "quarterly report"},
    {"action": "scroll", "direction": "down"},
    {"action": "key", "keys": "ctrl+s"},
    {"action": "long_press", "bbox": [300, 40, 420, 150]},
)
