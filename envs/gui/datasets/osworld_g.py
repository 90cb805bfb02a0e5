"""OSWorld-G: a screenshot of a desktop, words that ask for a click, and where it belongs.

    OSWorld-G.json   image_path, image_size [width, height], instruction, GUI_types, and
    box_type         bbox: box_coordinates [x, y, width, height]; polygon: [x, y, x, y, …]; refusal: nothing
                     on the screen is meant

Source, facts only: Xie et al. 2025, arXiv 2505.13227; xlang-ai/OSWorld-G. OSWorld-G_refined.json has the same
form with plainer instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlrl.data.benchmarks.files import open_published
from vlrl.data.benchmarks.rows import BenchmarkRows, row, scorer, text_of
from vlrl.data.readers.record import Record
from vlrl.envs.gui.actions import Action, Click, Finish
from vlrl.envs.gui.datasets.steps import answer_of
from vlrl.envs.gui.datasets.style import Style


def osworld_g(
    path: str,
    images: str | None = None,
    codec: str = "qwen2_5_computer_use",
    factor: int | None = None,
) -> BenchmarkRows:
    """Rows of the file.

    Args:
        path: the folder of OSWorld-G.json, or the file itself.
        images: the folder that image_path starts from; None is images/ beside the file.
        codec: grammar of instructions and target.
        factor: see `vlrl.envs.gui.datasets.style.Style`.

    Raises:
        ConfigError: for an unknown codec.
        DatasetMissing: if the folder does not hold the file.
    """
    style = Style.of("osworld_g", codec, factor)
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    root = Path(images) if images else folder / "images"
    reader = open_published("osworld_g", path, ("OSWorld-G.json",), image_root=root)
    return BenchmarkRows(reader, lambda record: _row(record, style), [scorer("click_in_region")])


def _row(record: Record, style: Style) -> dict[str, Any]:
    fields = record.fields
    width, height = (int(side) for side in fields["image_size"])
    action, answer, polygon = _target(fields)
    content = [
        {"type": "image", "image": text_of(fields, "image_path")},
        {"type": "text", "text": text_of(fields, "instruction")},
    ]
    kinds = fields.get("GUI_types") or []
    found = row(
        [style.instructions((height, width), "desktop"), {"role": "user", "content": content}],
        answer,
        codec=style.codec.name,
        form="desktop",
        box_type=fields["box_type"],
        gui_type=kinds[0] if kinds else None,
        polygon=polygon,
    )
    return {**found, "target": style.words(action, (height, width))}


def _target(fields: Mapping[str, Any]) -> tuple[Action, dict[str, Any], list[float] | None]:
    """(the action, the answer, the polygon if it is one)."""
    kind, numbers = fields["box_type"], [float(n) for n in fields.get("box_coordinates") or ()]
    if kind == "refusal":
        return Finish(False), answer_of(Finish(False)), None
    if kind == "bbox" and len(numbers) == 4:
        x, y, across, down = numbers
        box, polygon = (x, y, x + across, y + down), None
    elif kind == "polygon" and len(numbers) >= 6 and len(numbers) % 2 == 0:
        box, polygon = (min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])), numbers
    else:
        raise ValueError(
            f"box_type {kind!r:.20} with {len(numbers)} numbers is none of bbox, polygon, refusal"
        )
    middle = Click((int((box[0] + box[2]) / 2), int((box[1] + box[3]) / 2)))
    return middle, answer_of(middle, box), polygon
