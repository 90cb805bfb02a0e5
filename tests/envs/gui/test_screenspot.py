"""ScreenSpot's records as rows, emulated screens as ScreenSpot's files and back, errors that say where."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from vlrl.config import parse_config
from vlrl.config.data import DatasetConfig
from vlrl.coordinates import Canvas
from vlrl.data.open import open_dataset
from vlrl.envs.gui.codecs.open import CODECS
from vlrl.envs.gui.grounding import GuiGrounding
from vlrl.envs.gui.screenspot import ScreenSpot
from vlrl.envs.gui.screenspot_files import IMAGES, write_screenspot
from vlrl.errors import ConfigError, DataError
from vlrl.registry import available
from vlrl.rewards.agents.gui import click_in_box

WINDOWS = {
    "img_filename": "pc_1.png",
    "bbox": [10, 20, 30, 40],
    "instruction": "close this window",
    "data_type": "icon",
    "data_source": "windows",
}
PHONE = {**WINDOWS, "img_filename": "mobile_1.png", "data_type": "text", "data_source": "ios"}
PRO = {
    "id": "excel_macos_0",
    "img_filename": "excel_mac/s.png",
    "bbox": [10, 20, 40, 60],
    "instruction": "select the cell",
    "ui_type": "text",
    "application": "excel",
    "platform": "macos",
    "img_size": [200, 100],
    "group": "Office",
}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "excel_mac").mkdir(parents=True)
    for name in ("pc_1.png", "mobile_1.png", "excel_mac/s.png"):
        Image.new("RGB", (200, 100), "navy").save(folder / name)
    return folder


def written(folder: Path, *records: Any, name: str = "spots.json") -> str:
    (folder / name).write_text(json.dumps(list(records)), encoding="utf-8")
    return str(folder / name)


def test_boxes_of_either_form_become_the_same_answer(tmp_path: Path, images: Path) -> None:
    rows: Any = ScreenSpot(written(tmp_path, WINDOWS, PHONE, PRO), str(images))
    assert len(rows) == 3
    assert [row["answer"] for row in (rows[0], rows[1], rows[2])] == [
        {"action": "click", "bbox": [10, 20, 40, 60]}
    ] * 3
    assert rows[0]["metadata"] == {
        "codec": "qwen2_5_computer_use",
        "form": "desktop",
        "data_type": "icon",
        "platform": "windows",
    }
    assert rows[1]["metadata"]["form"] == "mobile"
    assert (
        rows[2]["metadata"].items()
        >= {"application": "excel", "group": "Office", "data_type": "text"}.items()
    )
    system, user = rows[2]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"][0] == {"type": "image", "image": str(images / "excel_mac" / "s.png")}
    assert user["content"][1] == {"type": "text", "text": "select the cell"}


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "plain"] + ["plain@per_1000"])
@pytest.mark.parametrize("factor", [None, 28])
def test_its_targets_are_paid_by_the_codec_that_the_row_names(
    codec: str, factor: int | None, tmp_path: Path, images: Path
) -> None:
    options = {"path": written(tmp_path, WINDOWS), "images": str(images), "codec": codec, "factor": factor}
    row: Any = open_dataset(DatasetConfig(name="screenspot", options=options), "data.train[0]")[0]
    canvas = Canvas((100, 200), (100, 200) if factor is None else (112, 196))
    for text, paid in ((row["target"], 1), ("close it", 0)):
        assert click_in_box(text, row["answer"], canvases=[canvas], codec=row["metadata"]["codec"]) == paid


def test_the_size_that_the_model_is_told_is_that_of_its_processor(tmp_path: Path, images: Path) -> None:
    path = written(tmp_path, WINDOWS)
    whole, rounded, small = (
        ScreenSpot(path, str(images), **options)[0]["messages"][0]["content"][0]["text"]
        for options in ({}, {"factor": 28}, {"factor": 28, "max_pixels": 84 * 56})  # type: ignore[arg-type]
    )
    assert "200x100" in whole
    assert "196x112" in rounded
    assert "84x28" in small


def test_a_folder_is_read_whole_and_every_row_has_a_name_of_its_own(tmp_path: Path, images: Path) -> None:
    for part in ("b", "a"):
        (tmp_path / part).mkdir()
        written(tmp_path / part, WINDOWS, PHONE)
    assert [ScreenSpot(str(tmp_path / "a"), str(images))[n]["id"] for n in (0, 1)] == [
        "spots.json[0]",
        "spots.json[1]",
    ]
    rows = ScreenSpot(f"{tmp_path}/{{a,b}}/*.json", str(images))
    assert len({rows[n]["id"] for n in range(len(rows))}) == 4


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_screens_that_were_written_are_read_again(form: str, tmp_path: Path) -> None:
    """The same words, boxes, targets and pixels; an emulated screen needs no image of anybody's."""
    rows = GuiGrounding(options={"form": form}, num_rows=12, seed=5)
    result = write_screenspot(rows, tmp_path / "out")
    assert result["path"] == str(tmp_path / "out" / f"screenspot_{form}_v2.json")
    assert result["num_records"] == result["num_text"] + result["num_icon"] == 12
    assert result["num_text"]
    assert result["num_icon"]
    read = ScreenSpot(result["path"], result["images"])
    assert len(read) == 12
    for n in range(12):
        made: Any = rows[n]
        found: Any = read[n]
        assert found["answer"] == made["answer"]
        assert found["target"] == made["target"]
        assert found["messages"][0] == made["messages"][0]
        image, words = found["messages"][1]["content"]
        assert words == made["messages"][1]["content"][1]
        pixels = np.asarray(Image.open(image["image"]))
        assert np.array_equal(pixels, made["messages"][1]["content"][0]["image"])
        assert found["metadata"]["form"] == form


def test_files_that_are_there_are_not_written_over(tmp_path: Path) -> None:
    rows = GuiGrounding(num_rows=1, seed=5)
    write_screenspot(rows, tmp_path)
    with pytest.raises(ConfigError, match=r"screenspot_desktop_v2\.json exists"):
        write_screenspot(rows, tmp_path)
    assert len(list((tmp_path / IMAGES).iterdir())) == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        *(({key: None}, key) for key in WINDOWS),
        ({"img_filename": "gone.png"}, "img_filename"),
        ({"img_filename": "../spots.json"}, "img_filename"),
        ({"instruction": " "}, "instruction"),
        ({"data_type": "button"}, "data_type"),
        ({"data_source": 3}, "data_source"),
        ({"bbox": [10, 20, 30]}, "bbox"),
        ({"bbox": "10 20 30 40"}, "bbox"),
        ({"bbox": [10, 20, 0, 40]}, "bbox"),
        ({"bbox": [10, 20, -5, 40]}, "bbox"),
        ({"bbox": [10, 20, True, 40]}, "bbox"),
        ({"bbox": [10, 20, float("nan"), 40]}, "bbox"),
        ({"bbox": [0.1, 0.2, 0.3, 0.4]}, "bbox is .*shares"),
        ({"bbox": [180, 20, 60, 40]}, "bbox spans .*200x100"),
    ],
)
def test_a_wrong_record_is_named_with_its_file_number_and_field(
    wrong: dict[str, Any], field: str, tmp_path: Path, images: Path
) -> None:
    path = written(tmp_path, WINDOWS, {**WINDOWS, **wrong})
    with pytest.raises(DataError, match=rf"spots\.json\[1\]: {field}"):
        _ = ScreenSpot(path, str(images))[1]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"bbox": [40, 20, 10, 60]}, "bbox"),
        ({"platform": None}, "platform"),
        ({"img_size": None}, "img_size"),
        ({"img_size": [100, 200]}, "img_size .*200x100"),
        ({"ui_type": "menu"}, "ui_type"),
    ],
)
def test_a_wrong_record_of_pro_too(wrong: dict[str, Any], field: str, tmp_path: Path, images: Path) -> None:
    path = written(tmp_path, {**PRO, **wrong})
    with pytest.raises(DataError, match=rf"spots\.json\[0\]: {field}"):
        _ = ScreenSpot(path, str(images))[0]


def test_what_is_no_image_or_no_file_of_records_is_said(tmp_path: Path, images: Path) -> None:
    (images / "pc_1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"spots\.json\[0\]: img_filename"):
        _ = ScreenSpot(written(tmp_path, WINDOWS), str(images))[0]
    (tmp_path / "object.json").write_text("{}")
    for path, words in (
        ("object.json", "list of records"),
        ("gone.json", "does not exist"),
        ("images", "no .json"),
    ):
        with pytest.raises(DataError, match=words):
            ScreenSpot(str(tmp_path / path), str(images))
    with pytest.raises(DataError, match=r"spots\.json\[0\]: a record is an object"):
        ScreenSpot(written(tmp_path, 3), str(images))


def test_the_config_of_the_guide_fits_the_reader(pytestconfig: pytest.Config) -> None:
    text = (pytestconfig.rootpath / "docs" / "gui.md").read_text(encoding="utf-8")
    block = re.search(r"^    data:\n(?:    .*\n)+", text.partition("## ScreenSpot")[2], re.MULTILINE)
    assert block
    tree = {"model": {"path": "m"}, **yaml.safe_load(textwrap.dedent(block[0]))}
    tree["data"]["train"] = {"name": "digit_sum"}
    (source,) = parse_config({**tree, "rewards": [{"name": "answer_exact"}]}).data.eval
    assert source.rewards[0].name in available("rewards")
    inspect.signature(ScreenSpot).bind(**source.options)


@pytest.mark.parametrize("options", [{"codec": "qwen"}, {"factor": 0}])
def test_wrong_options(options: dict[str, Any], tmp_path: Path, images: Path) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ScreenSpot(written(tmp_path, WINDOWS), str(images), **options)
