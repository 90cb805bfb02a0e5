"""The page as one folder: the server's answers as scripts, so that a browser opens it from a disk too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.viewer.browse.answers import ViewAnswers
from vlrl.viewer.browse.media import media_file, thumbnail
from vlrl.viewer.browse.opened import OpenRun
from vlrl.viewer.browse.server import PAGE, PAGE_FILE

MARKER = "vlrl-view.json"
"""In a folder that was written before, which may be written again."""
OURS = ("data", "media", "thumb")
BLOCK = 1000
"""Rollouts of a file of the index, about; a step's are in one."""

Step = tuple[int, int, str]


def write_static(run_dirs: Sequence[Path], folder: Path, max_rollouts: int) -> dict[str, Any]:
    """Write the page of some runs.

    Args:
        run_dirs: folders of runs.
        folder: a new or empty one, or one that was written before.
        max_rollouts: most of a run, of its newest steps; at least one step.

    Returns:
        num_rollouts and num_images written; `left_out`: sentences on what was not.

    Raises:
        ConfigError: for a folder that is not a run's, or one with other files to write into.
    """
    answers = ViewAnswers(run_dirs)
    _prepare(folder)
    manifest, left_out, num_rollouts, num_images = answers.manifest(), list[str](), 0, 0
    for described in manifest["runs"]:
        run = answers.runs[described["key"]]
        steps = _newest(described["steps"], max_rollouts)
        if len(steps) < len(described["steps"]):
            written, known = (sum(step[1] for step in each) for each in (steps, described["steps"]))
            left_out.append(
                f"{run.key}: {written} of {known} rollouts are written, those of the newest {len(steps)} "
                "steps; --max-rollouts writes more"
            )
        described["steps"], described["is_done"] = steps, True
        described["blocks"] = _blocks(steps)
        for what in ("curves", "health", "timeline"):
            _write(folder, f"{run.key}/{what}", answers.answer(f"{run.key}/{what}"))
        for first, last in described["blocks"]:
            for what in ("index", "texts"):
                path = f"{run.key}/{what}/{first}-{last}"
                _write(folder, path, answers.answer(path))
        media = dict[str, int]()
        for step, count, _ in steps:
            for row in range(count):
                rollout = run.rollout(step, row)
                media |= {medium["sha256"]: medium["frames"] for medium in rollout["media"]}
                _write(folder, f"{run.key}/rollout/{step}/{row}", rollout)
            num_rollouts += count
        num_images += _write_media(folder, run, media)
    _write(folder, "manifest", manifest)
    return {"num_rollouts": num_rollouts, "num_images": num_images, "left_out": left_out}


def _prepare(folder: Path) -> None:
    """An empty folder with the page's own files."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--static {folder} is a file; give a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise ConfigError(
            f"--static {folder} has other files; give a new folder, or one that was written before"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in OURS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for file in sorted(PAGE.rglob("*")):
        place = file.relative_to(PAGE)
        if PAGE_FILE.fullmatch(place.as_posix()):
            (folder / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, folder / place)
    page = folder / "index.html"
    page.write_text(
        page.read_text(encoding="utf-8").replace('data-mode="served"', 'data-mode="written"', 1), "utf-8"
    )
    (folder / MARKER).write_text('{"written_by": "vlrl view"}\n', encoding="utf-8")


def _newest(steps: Sequence[Step], most: int) -> list[Step]:
    """The newest steps that have so many rollouts together, in their order."""
    chosen, count = list[Step](), 0
    for step in reversed(steps):
        count += step[1]
        if chosen and count > most:
            break
        chosen.append(step)
    return chosen[::-1]


def _blocks(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """(first, last) step of each file of the index, the newest first."""
    blocks, count = list[tuple[int, int]](), BLOCK
    for step, rows, _ in reversed(steps):
        if count >= BLOCK:
            blocks.append((step, step))
            count = 0
        blocks[-1] = step, blocks[-1][1]
        count += rows
    return blocks


def _write(folder: Path, path: str, answer: Mapping[str, Any]) -> None:
    """An answer as a script. JSON in ASCII is JavaScript; nothing in it can end the script or the text."""
    file = folder / "data" / f"{path}.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer, allow_nan=False, separators=(",", ":"))
    file.write_text(f"vlrl.arrived({json.dumps(path)},{text});\n", encoding="ascii")


def _write_media(folder: Path, run: OpenRun, media: Mapping[str, int]) -> int:
    """Copy the images and make their thumbnails; the number of those that are there."""
    count = 0
    for sha256, frames in media.items():
        file = media_file(run.run_dir, sha256)
        if file is None:
            continue
        for name in ("media", "thumb"):
            (folder / name / run.key).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / "media" / run.key / file.name)
        if small := thumbnail(file, frames):
            (folder / "thumb" / run.key / f"{sha256}.webp").write_bytes(small)
        count += 1
    return count
