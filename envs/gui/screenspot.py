"""ScreenSpot, ScreenSpot-v2 and ScreenSpot-Pro: a screenshot, words that ask for a click, and its box.

    v1, v2   img_filename, instruction, bbox [x, y, width, height], data_type, data_source
    Pro      img_filename, instruction, bbox [x0, y0, x1, y1], ui_type, application, platform, img_size

Boxes are pixels of the image; data_type and ui_type are "text" or "icon"; a record with ui_type is Pro's.
The rows are those of `vlrl.envs.gui.grounding`: the answer is {"action": "click", "bbox": [x0, y0, x1, y1]}.

Sources, facts only: njucckevin/SeeClick, pretrain/screenspot_test.py (v1; v2 has its form);
likaixin2000/ScreenSpot-Pro-GUI-Grounding, eval_screenspot_pro.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.config.data import MediaConfig, ProcessorConfig
from vlrl.data.readers.files import expand
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.datasets.style import Style
from vlrl.envs.gui.screen import Form
from vlrl.errors import DataError
from vlrl.parsing.frames import SLACK
from vlrl.processors.media.image import image_size
from vlrl.processors.media.sources import under_root
from vlrl.types import Row

KINDS = ("text", "icon")
PHONES = ("ios", "android", "mobile")
"""Values of data_source and platform that are phones; the others are desktops."""

_LIMITS = ProcessorConfig()


@dataclass(frozen=True, slots=True)
class Spot:
    """One record.

    Attributes:
        place: its file and its number there, from 0.
        image: the screenshot's file.
        box: (x0, y0, x1, y1) in pixels of the image, x0 < x1 and y0 < y1.
        kind: "text" or "icon".
        platform: such as "windows", "ios", "shop".
        size: (width, height) that the record gives for the image, if it does.
        more: further metadata of the row: application, group.
    """

    place: str
    image: Path
    instruction: str
    box: tuple[float, float, float, float]
    kind: str
    platform: str
    size: tuple[float, float] | None
    more: Mapping[str, str]

    @property
    def form(self) -> Form:
        """What it was taken on."""
        return "mobile" if self.platform.lower() in PHONES else "desktop"


class ScreenSpot:
    """Rows of one click each, in the files' order; `metadata` has codec, form, data_type and platform."""

    def __init__(
        self,
        path: str,
        images: str,
        codec: str = "qwen2_5_computer_use",
        factor: int | None = None,
        min_pixels: int = _LIMITS.min_pixels,
        max_pixels: int = _LIMITS.max_pixels,
    ) -> None:
        """Read every record; images are opened row by row.

        Args:
            path: a JSON file, a pattern of several, or a folder of them.
            images: the folder that img_filename starts from.
            codec: grammar of instructions and target.
            factor: of the sides of an image as the model is given it, 28 for Qwen2.5-VL and 32 for Qwen3-VL:
                for codecs that name its size or write its pixels. None is the image as it is.
            min_pixels: fewer are enlarged, where there is a factor; the processor's.
            max_pixels: more are shrunk.

        Raises:
            ConfigError: for an unknown codec or a factor below 1.
            DataError: naming the file, the record's number and the field that is missing or wrong.
        """
        self._style = Style.of("screenspot", codec, factor, min_pixels=min_pixels, max_pixels=max_pixels)
        self._spots = read_spots(path, Path(images))

    def __len__(self) -> int:
        """Number of records."""
        return len(self._spots)

    def __getitem__(self, index: int) -> Row:
        """Row `index`.

        Raises:
            DataError: naming the file, the record's number and the field, if the image is none or not the
                one that the record speaks of.
        """
        spot = self._spots[index]
        size = _image_size(spot)
        x0, y0, x1, y1 = spot.box
        middle = min(int((x0 + x1) / 2), size[1] - 1), min(int((y0 + y1) / 2), size[0] - 1)
        words = [{"type": "image", "image": str(spot.image)}, {"type": "text", "text": spot.instruction}]
        found = {
            "codec": self._style.codec.name,
            "form": spot.form,
            "data_type": spot.kind,
            "platform": spot.platform,
        }
        return {
            "id": spot.place,
            "messages": [
                self._style.instructions(size, spot.form),
                {"role": "user", "content": words},
            ],
            "answer": {"action": "click", "bbox": list(spot.box)},
            "target": self._style.words(Click(middle), size),
            "metadata": {**found, **spot.more},
        }


def read_spots(path: str, images: Path) -> list[Spot]:
    """Every record of a JSON file, of the files that a pattern names, or of a folder's *.json, by name.

    Raises:
        DataError: naming the file, the record's number and the field.
    """
    files = sorted(Path(path).glob("*.json")) if Path(path).is_dir() else expand(path)
    if not files:
        raise DataError(f"dataset screenspot: the folder {path} holds no .json file")
    root = Path(os.path.commonpath([file.parent for file in files]))
    return [spot for file in files for spot in _spots_of(file, str(file.relative_to(root)), images)]


def _spots_of(file: Path, name: str, images: Path) -> list[Spot]:
    try:
        records = json.loads(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON in UTF-8 ({error})") from error
    if not isinstance(records, list) or not records:
        raise DataError(f"{file}: a ScreenSpot file is a list of records, and not empty")
    return [_spot(record, f"{file}[{n}]", f"{name}[{n}]", images) for n, record in enumerate(records)]


def _spot(record: Any, where: str, place: str, images: Path) -> Spot:
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: a record is an object, not a {type(record).__name__}")
    is_pro = "ui_type" in record
    kind = _text(record, "ui_type" if is_pro else "data_type", where)
    if kind not in KINDS:
        raise DataError(f"{where}: {'ui_type' if is_pro else 'data_type'} is {kind!r:.60}; text or icon")
    more = {key: str(record[key]) for key in ("application", "group") if record.get(key) is not None}
    return Spot(
        place,
        _image(record, where, images),
        _text(record, "instruction", where),
        _box(record, where, is_pro),
        kind,
        _text(record, "platform" if is_pro else "data_source", where),
        _img_size(record, where) if is_pro else None,
        more,
    )


def _field(record: Mapping[str, Any], name: str, where: str) -> Any:
    if record.get(name) is None:
        raise DataError(f"{where}: {name} is missing; it has {', '.join(map(str, record)) or 'nothing'}")
    return record[name]


def _text(record: Mapping[str, Any], name: str, where: str) -> str:
    value = _field(record, name, where)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: {name} is {value!r:.60}; give a text that is not empty")
    return value


def _numbers(record: Mapping[str, Any], name: str, count: int, where: str) -> list[float]:
    value = _field(record, name, where)
    numbers = value if isinstance(value, list) else []
    if len(numbers) != count or not all(type(n) in (int, float) and abs(n) <= 1e6 for n in numbers):
        raise DataError(f"{where}: {name} is {value!r:.60}; give {count} numbers, in pixels")
    return numbers


def _box(record: Mapping[str, Any], where: str, is_pro: bool) -> tuple[float, float, float, float]:
    x, y, a, b = _numbers(record, "bbox", 4, where)
    if max(x, y, a, b) <= 1:
        raise DataError(f"{where}: bbox is {[x, y, a, b]}, shares of the image; multiply by its sides")
    x1, y1 = (a, b) if is_pro else (x + a, y + b)
    if not (x < x1 and y < y1):
        form = "[x0, y0, x1, y1] with x0 < x1, y0 < y1" if is_pro else "[x, y, width, height], both above 0"
        raise DataError(f"{where}: bbox is {[x, y, a, b]}; give {form}")
    return x, y, x1, y1


def _img_size(record: Mapping[str, Any], where: str) -> tuple[float, float]:
    width, height = _numbers(record, "img_size", 2, where)
    return width, height


def _image(record: Mapping[str, Any], where: str, images: Path) -> Path:
    path = under_root(images, _text(record, "img_filename", where), f"{where}: img_filename")
    if not path.is_file():
        raise DataError(f"{where}: img_filename: there is no image {path}; check the option images")
    return path


def _image_size(spot: Spot) -> tuple[int, int]:
    """(height, width) of the image, which holds the box."""
    with spot.image.open("rb") as file:
        name = f"{spot.place}: img_filename {spot.image}"
        height, width = image_size(file, name, MediaConfig().max_source_pixels)
    if spot.size is not None and spot.size != (width, height):
        raise DataError(f"{spot.place}: img_size is {list(spot.size)}, but the image is {width}x{height}")
    x0, y0, x1, y1 = spot.box
    across, down = SLACK * width, SLACK * height
    if not (-across <= x0 and -down <= y0 and x1 <= width + across and y1 <= height + down):
        raise DataError(f"{spot.place}: bbox spans {[x0, y0, x1, y1]}, beyond the image of {width}x{height}")
    return height, width
