"""Android in the Wild: tasks that people have done on emulated Android phones, without an instruction a step.

The files are TFRecords of one step each, compressed by gzip, the steps of an episode one after the other;
a split's JSON maps "train", "validation" and "test" to episodes. Source, facts only: Rawles et al. 2023,
arXiv 2307.10088; google-research/google-research, android_in_the_wild (README.md, action_type.py,
visualization_utils.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.data.benchmarks.files import published_files
from vlrl.data.benchmarks.rows import scorer
from vlrl.envs.gui.actions import Action, Click, Finish, Swipe, SystemButton, TypeText
from vlrl.envs.gui.datasets.steps import Demonstration, History, ShownStep, Told
from vlrl.envs.gui.datasets.streamed import DemonstrationStream
from vlrl.envs.gui.datasets.style import Style
from vlrl.envs.gui.datasets.tfrecord import examples
from vlrl.errors import ConfigError, DataError

TAP = 0.04
"""A finger that moves no farther than this share of the screen has tapped."""


def aitw(
    path: str,
    split: str = "test",
    splits: str | None = None,
    codec: str = "qwen2_5_mobile_use",
    history: History = "text",
    images: int = 1,
    factor: int | None = None,
    shuffle_buffer: int = 64,
) -> DemonstrationStream:
    """Rows of the episodes of one of the five sets (google_apps, install, web_shopping, general, single).

    Args:
        path: the folder of the set's files.
        split: "train", "validation" or "test" of the file `splits`.
        splits: a JSON file of splits, such as standard/general.json; None takes all episodes.
        codec: grammar of instructions, history and target.
        history: see `vlrl.envs.gui.datasets.steps`.
        images: screenshots that are shown.
        factor: see `vlrl.envs.gui.datasets.style.Style`.
        shuffle_buffer: rows that are shuffled among themselves.

    Raises:
        ConfigError: for an unknown split or codec.
        DatasetMissing: if the folder does not hold the files.
    """
    told = Told(Style.of("aitw", codec, factor), history, images)
    files = published_files("aitw", path, ("*-of-*",))
    chosen = None if splits is None else _chosen(Path(splits), split)

    def read(file: Path) -> Iterator[Demonstration]:
        episodes = groupby(examples(file), key=lambda found: _text(found, "episode_id"))
        for name, found in episodes:
            try:
                if chosen is None or name in chosen:
                    yield _episode(name, list(found))
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise DataError(f"{file}, episode {name}: {type(error).__name__}: {error}") from error

    return DemonstrationStream(files, read, told, [scorer("aitw")], shuffle_buffer)


def _chosen(file: Path, split: str) -> frozenset[str]:
    (file, *_) = published_files("aitw", str(file), ("*.json",))
    listed = json.loads(file.read_text(encoding="utf-8"))
    if split not in listed:
        raise ConfigError(f"dataset aitw: {file} has no split {split!r}; there are {', '.join(listed)}")
    return frozenset(map(str, listed[split]))


def _episode(name: str, found: Sequence[Mapping[str, Sequence[Any]]]) -> Demonstration:
    steps = [_step(each) for each in sorted(found, key=lambda each: int(each["step_id"][0]))]
    return Demonstration(f"episode {name}", _text(found[0], "goal_info"), "mobile", steps)


def _step(found: Mapping[str, Sequence[Any]]) -> ShownStep:
    height, width, channels = (int(found[f"image/{side}"][0]) for side in ("height", "width", "channels"))
    pixels = np.frombuffer(found["image/encoded"][0], np.uint8).reshape(height, width, channels)
    boxes = np.asarray(found.get("image/ui_annotations_positions", ()), np.float64).reshape(-1, 4)
    shares = [[round(float(side), 6) for side in box] for box in boxes]
    return ShownStep(pixels, (height, width), _action(found, height, width), metadata={"ui_boxes": shares})


def _action(found: Mapping[str, Sequence[Any]], height: int, width: int) -> Action | None:
    kind = int(found["results/action_type"][0])
    if kind == 4:
        (y0, x0), (y1, x1) = (found[f"results/yx_{end}"] for end in ("touch", "lift"))
        start, end = (
            (min(max(0, int(x * width)), width - 1), min(max(0, int(y * height)), height - 1))
            for y, x in ((y0, x0), (y1, x1))
        )
        return Click(start) if math.dist((y0, x0), (y1, x1)) <= TAP else Swipe(start, end)
    if kind == 3:
        return TypeText(_text(found, "results/type_action"))
    others: Mapping[int, Action] = {
        5: SystemButton("back"),
        6: SystemButton("home"),
        7: SystemButton("enter"),
        10: Finish(True),
        11: Finish(False),
    }
    return others.get(kind)


def _text(found: Mapping[str, Sequence[Any]], name: str) -> str:
    value = found[name][0]
    return value.decode() if isinstance(value, bytes) else str(value)
