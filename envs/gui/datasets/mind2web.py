"""Multimodal-Mind2Web: tasks that people have done on web pages, a screenshot of the whole page each step.

Rows of parquet, one a step: screenshot, confirmed_task, operation (JSON of op and value), pos_candidates
(JSON whose attributes hold bounding_box_rect "x,y,width,height"), action_reprs (of the whole task) and
target_action_index. Source, facts only: Deng et al. 2023, arXiv 2306.06070; Zheng et al. 2024, arXiv
2401.01614; osunlp/Multimodal-Mind2Web. TYPE and SELECT are a click and then keys; the row's answer is the
click, and `op` and `value` in the metadata say the rest.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from vlrl.config.data import MediaConfig
from vlrl.data.benchmarks.files import open_published
from vlrl.data.benchmarks.rows import BenchmarkRows, row, scorer, text_of
from vlrl.data.readers.record import Record
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.datasets.steps import answer_of
from vlrl.envs.gui.datasets.style import Style
from vlrl.processors.media.image import image_size


def mind2web(
    path: str,
    split: str = "test_task",
    codec: str = "qwen2_5_computer_use",
    factor: int | None = None,
) -> BenchmarkRows:
    """Rows of a split: train, test_task, test_website or test_domain.

    Args:
        path: the folder of the parquet files.
        split: the beginning of the files' names.
        codec: grammar of instructions and target.
        factor: see `vlrl.envs.gui.datasets.style.Style`.

    Raises:
        ConfigError: for an unknown codec.
        DatasetMissing: if the folder does not hold the files.
    """
    style = Style.of("mind2web", codec, factor)
    reader = open_published("mind2web", path, (f"{split}-*.parquet",))
    return BenchmarkRows(reader, lambda record: _row(record, style), [scorer("click_in_box")])


def _row(record: Record, style: Style) -> dict[str, Any]:
    fields = record.fields
    image = fields["screenshot"]
    height, width = image_size(io.BytesIO(image["bytes"]), record.place, MediaConfig().max_source_pixels)
    x, y, across, down = _rect(fields["pos_candidates"])
    box = (max(0.0, x), max(0.0, y), min(x + across, float(width)), min(y + down, float(height)))
    if not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError(f"the box of the target is {box}, not on the page of {width}x{height}")
    middle = Click((int((box[0] + box[2]) / 2), int((box[1] + box[3]) / 2)))
    operation = _object(fields["operation"])
    done = fields["action_reprs"][: int(fields["target_action_index"])]
    text = f"Task: {text_of(fields, 'confirmed_task')}"
    if done:
        text += "\nWhat has been done:" + "".join(f"\n{n}. {what}" for n, what in enumerate(done, 1))
    size = height, width
    content = [{"type": "image", "image": image}, {"type": "text", "text": text}]
    found = row(
        [style.instructions(size, "desktop"), {"role": "user", "content": content}],
        answer_of(middle, box),
        codec=style.codec.name,
        form="desktop",
        op=operation["op"],
        value=operation.get("value") or None,
        website=fields.get("website"),
        domain=fields.get("domain"),
    )
    return {**found, "target": style.words(middle, size)}


def _rect(candidates: Any) -> list[float]:
    """The box of the first positive candidate.

    Raises:
        ValueError: for a step without one, as some are.
    """
    if not candidates:
        raise ValueError("no element of the page is the target (pos_candidates is empty)")
    attributes = _object(_object(candidates[0])["attributes"])
    sides = [float(side) for side in attributes["bounding_box_rect"].split(",")]
    if len(sides) != 4:
        raise ValueError(f"bounding_box_rect is {attributes['bounding_box_rect']!r:.60}; it has four numbers")
    return sides


def _object(value: Any) -> Mapping[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise ValueError(f"{value!r:.60} is not an object")
    return found
