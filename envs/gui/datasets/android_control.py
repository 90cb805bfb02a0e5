"""AndroidControl: tasks that people have done on Android phones, with an instruction for each step.

The files android_control-*-of-* are TFRecords of one episode each, compressed by gzip; splits.json lists the
episodes of "train", "validation" and "test". Source, facts only: Li et al. 2024, arXiv 2406.03679;
google-research/google-research, android_control/README.md; for the accessibility trees
google-deepmind/android_env, android_env/proto/a11y.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from vlrl.coordinates import Canvas
from vlrl.data.benchmarks.files import published_files
from vlrl.data.benchmarks.rows import scorer
from vlrl.envs.gui.actions import (
    Action,
    Click,
    LongPress,
    OpenApp,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.grammar.directions import DIRECTIONS, scroll_towards
from vlrl.envs.gui.datasets.steps import Demonstration, History, ShownStep, Told
from vlrl.envs.gui.datasets.streamed import DemonstrationStream
from vlrl.envs.gui.datasets.style import Style
from vlrl.envs.gui.datasets.tfrecord import examples, fields
from vlrl.errors import ConfigError, DataError

MAX_BOX_SHARE = 0.5
"""A larger box is the page, not the thing that was tapped."""
_BOUNDS, _CLICKABLE, _VISIBLE = 2, 14, 23
_WINDOWS, _TREE, _NODES = 1, 11, 1
"""Field numbers of a node of an accessibility tree, and of the way to it."""

Box = tuple[float, float, float, float]


def android_control(
    path: str,
    split: str = "test",
    level: Literal["high", "low"] = "high",
    codec: str = "qwen2_5_mobile_use",
    history: History = "text",
    images: int = 1,
    factor: int | None = None,
    shuffle_buffer: int = 64,
) -> DemonstrationStream:
    """Rows of the episodes of a split.

    Args:
        path: the folder of the files.
        split: of splits.json.
        level: "low" tells the instruction of each step, "high" the goal alone.
        codec: grammar of instructions, history and target.
        history: see `vlrl.envs.gui.datasets.steps`.
        images: screenshots that are shown.
        factor: see `vlrl.envs.gui.datasets.style.Style`.
        shuffle_buffer: rows that are shuffled among themselves.

    Raises:
        ConfigError: for an unknown split, level or codec.
        DatasetMissing: if the folder does not hold the files.
    """
    if level not in ("high", "low"):
        raise ConfigError(f"dataset android_control: level={level!r}; give high or low")
    told = Told(Style.of("android_control", codec, factor), history, images)
    files = published_files("android_control", path, ("android_control-*-of-*",))
    (listed, *_) = published_files("android_control", path, ("splits.json",))
    splits = json.loads(listed.read_text(encoding="utf-8"))
    if split not in splits:
        raise ConfigError(f"dataset android_control: no split {split!r}; there are {', '.join(splits)}")
    chosen = frozenset(map(int, splits[split]))

    def read(file: Path) -> Iterator[Demonstration]:
        for number, found in enumerate(examples(file)):
            try:
                if int(found["episode_id"][0]) in chosen:
                    yield _episode(found, level)
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise DataError(f"{file}[{number}]: {type(error).__name__}: {error}") from error

    return DemonstrationStream(files, read, told, [scorer("android_control")], shuffle_buffer)


def _episode(found: Mapping[str, Sequence[Any]], level: str) -> Demonstration:
    sizes = list(zip(found["screenshot_heights"], found["screenshot_widths"], strict=True))
    said = [text.decode() for text in found["step_instructions"]]
    steps = []
    for number, text in enumerate(found["actions"]):
        action = json.loads(text)
        size = (int(sizes[number][0]), int(sizes[number][1]))
        steps.append(
            ShownStep(
                {"bytes": found["screenshots"][number]},
                size,
                _action(action, size),
                _box_at(found["accessibility_trees"][number], action, size),
                said[number] if level == "low" else "",
                {"action_type": action["action_type"]},
            )
        )
    episode = int(found["episode_id"][0])
    return Demonstration(f"episode {episode}", found["goal"][0].decode(), "mobile", steps)


def _action(said: Mapping[str, Any], size: tuple[int, int]) -> Action | None:
    """An action of the set; "type" alone has no word here, as it is three actions at once."""
    match said["action_type"]:
        case "click":
            return Click(_point(said, size))
        case "long_press":
            return LongPress(_point(said, size))
        case "scroll":
            view, (height, width) = View(Canvas(size, size), (0, 0)), size
            return scroll_towards(DIRECTIONS[said["direction"]], view, (width // 2, height // 2), max(size))
        case "open_app":
            return OpenApp(said["app_name"])
        case "input_text":
            return TypeText(said["text"])
        case "navigate_home":
            return SystemButton("home")
        case "navigate_back":
            return SystemButton("back")
        case "wait":
            return Wait()
    return None


def _point(said: Mapping[str, Any], size: tuple[int, int]) -> tuple[int, int]:
    height, width = size
    return min(max(0, int(said["x"])), width - 1), min(max(0, int(said["y"])), height - 1)


def _box_at(tree: bytes, said: Mapping[str, Any], size: tuple[int, int]) -> Box | None:
    """The box of what was tapped: the smallest that responds to clicks, else the smallest visible one."""
    if said["action_type"] not in ("click", "long_press"):
        return None
    x, y = _point(said, size)
    largest = MAX_BOX_SHARE * size[0] * size[1]
    found = []
    for box, is_clickable in _visible_boxes(tree, size):
        area = (box[2] - box[0]) * (box[3] - box[1])
        if box[0] <= x <= box[2] and box[1] <= y <= box[3] and 0 < area <= largest:
            found.append((not is_clickable, area, box))
    return min(found)[2] if found else None


def _visible_boxes(tree: bytes, size: tuple[int, int]) -> Iterator[tuple[Box, bool]]:
    """(box within the screen, whether it responds to clicks) of each visible node of a forest."""
    height, width = size
    for window in fields(tree).get(_WINDOWS, ()):
        for nodes in fields(_message(window)).get(_TREE, ()):
            for node in fields(_message(nodes)).get(_NODES, ()):
                known = fields(_message(node))
                if known.get(_VISIBLE) != [1] or _BOUNDS not in known:
                    continue
                sides = fields(_message(known[_BOUNDS][0]))
                left, top, right, bottom = (_signed(sides.get(n, [0])[0]) for n in (1, 2, 3, 4))
                box = (max(0, left), max(0, top), min(right, width), min(bottom, height))
                yield box, known.get(_CLICKABLE) == [1]


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("the accessibility tree has another form")
    return value


def _signed(value: int | bytes) -> int:
    number = int(value) if isinstance(value, int) else 0
    return number - (1 << 64) if number >= 1 << 63 else number
