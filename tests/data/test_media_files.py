"""Missing media are found before engines start, by looking for files and decoding nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.data.media_files import look_for_media
from vlrl.data.run_data import Sources
from vlrl.errors import DataError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Ten rows, each with a file of its own that is not an image at all."""
    rows = [
        {"id": str(i), "problem": "<image>What?", "answer": "1", "images": [f"{i}.png"]} for i in range(10)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for i in range(10):
        (tmp_path / f"{i}.png").write_text("no image")
    return path


def look(train: Any, heldout: Any = (), clock: Iterator[float] | None = None, **data: Any) -> list[str]:
    config = make_config(data={"train": train, "eval": heldout, **data})
    sources, told = Sources.open(config), list[str]()
    times = clock or iter(lambda: 0.0, None)
    look_for_media(
        (*sources.train, *sources.heldout),
        config,
        lambda event, text: told.append(f"{event}: {text}"),
        clock=lambda: next(times),
    )
    return told


def test_files_that_are_there_are_not_opened(file: Path) -> None:
    assert look({"name": str(file)}, {"name": str(file)}) == []


@pytest.mark.parametrize("heldout", [False, True])
def test_missing_ones_are_an_error_that_names_the_first(file: Path, tmp_path: Path, heldout: bool) -> None:
    for i in range(5):
        (tmp_path / f"{i}.png").unlink()
    rows = {"name": str(file)}
    with pytest.raises(DataError, match=r"missing: sample '0'.*0\.png.*1\.png.*2\.png.*, and 2 more; check"):
        look({"name": "digit_sum"}, rows) if heldout else look(rows)


def test_or_they_are_reported(file: Path, tmp_path: Path) -> None:
    (tmp_path / "7.png").unlink()
    (told,) = look({"name": str(file)}, on_broken="drop")
    assert told.startswith("media_missing: media files are missing: sample '7'")
    assert told.endswith("their rows will be left out (data.on_broken=drop)")


def test_a_first_row_whose_medium_is_refused_is_passed_over_as_any_other_is(
    file: Path, tmp_path: Path
) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps(json.loads(lines[0]) | {"images": ["file:///0.png"]}), *lines[1:]]))
    (tmp_path / "7.png").unlink()
    (told,) = look({"name": str(file)}, on_broken="drop")
    assert told.startswith("media_missing: media files are missing: sample '7'")


def test_it_stops_after_a_while_and_says_so(file: Path, tmp_path: Path) -> None:
    (tmp_path / "9.png").unlink()
    (told,) = look({"name": str(file)}, clock=count(0.0, 5.0))
    assert "the media files of 4 of 10 rows of" in told and "were looked for in 20 s" in told


def test_sources_that_make_their_images_are_passed_over() -> None:
    assert look({"name": "digit_sum"}, clock=count(0.0, 1000.0)) == []
