"""Where rollouts and their images lie in a run's folder."""

from __future__ import annotations

from pathlib import Path

from vlrl.types import Media

ROLLOUTS, TRAIN = "rollouts", "train"
"""RUN/rollouts has the rollouts before and after training, RUN/rollouts/train a file for each step."""


def media_path(media: Media) -> str:
    """Where a medium's PNG lies, relative to the run's folder."""
    return f"media/{media.sha256}.png"


def sound_path(path: str) -> str:
    """Where the sound lies whose image is at `path`."""
    return str(Path(path).with_suffix(".wav"))


def run_dir_of(path: Path) -> Path:
    """The folder that media paths are relative to, of a file of rollouts; a run's folder itself."""
    if path.is_dir():
        return path
    folder = path.parent.parent if path.parent.name == TRAIN else path.parent
    return folder.parent if folder.name == ROLLOUTS else path.parent


def train_file(run_dir: Path, step: int) -> Path:
    """The file of a step's rollouts."""
    return run_dir / ROLLOUTS / TRAIN / f"{step:06d}.parquet"


def train_files(run_dir: Path) -> dict[int, Path]:
    """The files of a run's training by step, in its order."""
    found = {int(file.stem): file for file in (run_dir / ROLLOUTS / TRAIN).glob("*.parquet")}
    return dict(sorted(found.items()))


def report_files(run_dir: Path) -> list[Path]:
    """The files of a run's other rollouts, which the report shows: before and after training."""
    return sorted((run_dir / ROLLOUTS).glob("*.jsonl"))


def rollout_files(path: Path) -> list[Path]:
    """The files that a path names: itself, or those of a run's training; without any, its others."""
    if not path.is_dir():
        return [path]
    return list(train_files(path).values()) or report_files(path)
