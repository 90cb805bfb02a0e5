"""`vlrl view --static`: one folder, opened from the disk, with the same page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from served_view import ViewPage
from viewed_run import RunWriter

from vlrl.cli.app import run as vlrl
from vlrl.errors import ConfigError
from vlrl.viewer.browse.static import write_static


@pytest.fixture(scope="module")
def folder(run_dirs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "page"
    written = write_static(run_dirs, folder, max_rollouts=100)
    assert written["num_rollouts"] == 3 * 96 and "96 of 960 rollouts are written" in written["left_out"][0]
    return folder


def test_a_browser_opens_it_from_the_disk(folder: Path, tmp_path: Path) -> None:
    with ViewPage((folder / "index.html").as_uri(), tmp_path / "profile") as page:
        page.start()
        page.until("document.querySelectorAll('.panel svg').length > 3")  # drawn when a frame shows them
        page.go("#health")
        assert "KL spike" in page.text(".findings")
        page.go("#rollouts")
        page.until("document.querySelectorAll('.list .row').length > 5")
        assert "96 rollouts in 24 groups" in page.text(".side .count")
        page.choose("#find", "typetext")
        page.until("document.querySelector('.side .count').textContent.includes('of 96')")
        page.go("#rollout/grpo_s0/39/21")
        page.until("document.querySelector('.stage img')?.naturalWidth > 0")
        assert "double click" in page.text(".gesture")
        page.go("#rollout/grpo_s0/2/0")
        page.until("document.querySelector('.detail').textContent.includes('not in this folder')")
        page.errors.clear()


def test_no_answer_can_end_its_script(folder: Path) -> None:
    for file in folder.rglob("data/**/*.js"):
        text = file.read_bytes()
        assert (
            text.isascii()
            and text.startswith(b"vlrl.arrived(")
            and text.endswith(b");\n")
            and text.count(b"\n") == 1
        )
        json.loads(b"[" + text[len(b"vlrl.arrived(") : -3] + b"]")


def test_an_earlier_page_is_replaced_and_another_folder_is_refused(
    folder: Path, run_dirs: list[Path], tmp_path: Path
) -> None:
    write_static(run_dirs[2:], tmp_path / "page", 24)
    again = write_static(run_dirs[2:], tmp_path / "page", 48)
    assert again["num_rollouts"] == 48 and not list((tmp_path / "page" / "data").glob("grpo*"))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "only_copy.tex").write_text("")
    with pytest.raises(ConfigError, match="has other files"):
        write_static(run_dirs[2:], tmp_path / "thesis", 24)


def test_the_command_tells_what_it_left_out(
    run_dirs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page"
    assert vlrl(["view", str(run_dirs[2]), "--static", str(out), "--max-rollouts", "48"]) == 0
    assert "48 of 288 rollouts are written" in capsys.readouterr().out and (out / "index.html").is_file()
    RunWriter(tmp_path / "empty")
    assert vlrl(["view", str(tmp_path / "nowhere"), "--no-open"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_run_without_rollouts_can_be_written(tmp_path: Path) -> None:
    RunWriter(tmp_path / "sft").log(0)
    written: dict[str, Any] = write_static([tmp_path / "sft"], tmp_path / "page", 10)
    assert written == {"num_rollouts": 0, "num_images": 0, "left_out": []}
