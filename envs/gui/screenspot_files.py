"""Grounding rows as files in ScreenSpot-v2's form, for its own scripts and for `vlrl.envs.gui.screenspot`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from vlrl.environment.observe import pixels_of
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    from vlrl.envs.gui.grounding import GuiGrounding

IMAGES = "screenspotv2_image"
"""The folder of images, as in the archive of ScreenSpot-v2."""

WORDLESS = ("combobox", "searchbox", "slider", "spinbutton", "switch", "textbox")
"""Roles whose name stands beside them, if anywhere: they are widgets, data_type icon."""


def write_screenspot(
    rows: GuiGrounding, folder: Path, on_row: Callable[[int], None] = lambda number: None
) -> dict[str, Any]:
    """Write rows as screenspot_desktop_v2.json, or screenspot_mobile_v2.json, and a PNG each.

    data_source is the form. The accessibility tree does not say what is drawn on a widget; data_type is
    "icon" for the roles of WORDLESS, and for buttons at most twice as wide as high whose name is not a digit.

    Args:
        rows: of a dataset gui_grounding.
        folder: to write to; made if it is not there.
        on_row: called with the number of rows written so far.

    Returns:
        path, images, num_records, num_text, num_icon.

    Raises:
        ConfigError: if the folder has such a file already.
    """
    first: dict[str, Any] = dict(rows[0])
    path, images = folder / f"screenspot_{first['metadata']['form']}_v2.json", folder / IMAGES
    if path.exists():
        raise ConfigError(f"{path} exists already; give another folder, or delete it")
    images.mkdir(parents=True, exist_ok=True)
    records = []
    for number in range(len(rows)):
        row: dict[str, Any] = first if number == 0 else dict(rows[number])
        record, pixels = _record(row, f"{path.stem}_{number:06d}.png")
        Image.fromarray(pixels).save(images / record["img_filename"])
        records.append(record)
        on_row(len(records))
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    kinds = Counter(record["data_type"] for record in records)
    counts = {"num_records": len(records), "num_text": kinds["text"], "num_icon": kinds["icon"]}
    return {"path": str(path), "images": str(images), **counts}


def _record(row: dict[str, Any], file_name: str) -> tuple[dict[str, Any], Any]:
    image, words = row["messages"][-1]["content"]
    x0, y0, x1, y1 = row["answer"]["bbox"]
    role, name = row["metadata"]["widget_role"], row["metadata"]["widget_name"]
    is_image = role == "button" and not name.isdigit() and x1 - x0 <= 2 * (y1 - y0)
    record = {
        "img_filename": file_name,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "instruction": words["text"],
        "data_type": "icon" if is_image or role in WORDLESS else "text",
        "data_source": row["metadata"]["form"],
    }
    return record, pixels_of(image["image"])
