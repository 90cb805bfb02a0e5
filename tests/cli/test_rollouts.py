"""`vlrl rollouts` on a run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kept_rollouts import FakeProcessor, make_group

from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.tracking.rollouts.records import images_of, write_images
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    for step in range(2):
        group = make_group()
        group.trajectories[0].completion = "<script>\u202e[bold]one\nline"
        file = train_file(folder, step)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rollout_table([group], [RolloutPlace(step, step, 0)], FakeProcessor()), file)
        write_images(folder, images_of([group]))
    return folder


def test_what_fits_is_listed(run_dir: Path, vlrl: Any) -> None:
    shown = vlrl("rollouts", run_dir, "--where", "step == 1", "--limit", "1").out
    assert "digit_sum/heldout/0" in shown
    assert "<script>\\u202e[bold]one\\nline" in shown  # as Python writes it: no mark of the terminal's
    assert "2 rollouts, the first 1 listed" in shown


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_what_fits_is_exported_whole(run_dir: Path, tmp_path: Path, name: str, vlrl: Any) -> None:
    file = tmp_path / "elsewhere" / name
    told = vlrl("rollouts", run_dir, "--where", "advantage > 0", "--export", file, "--json").json
    assert told["num_rollouts"] == 2 and told["rollouts"][0]["refusal"] is None
    records = read_rollouts(file)
    assert [(record["step"], record["advantage"]) for record in records] == [(0, 0.5), (1, 0.5)]
    assert Path(records[0]["media"][0]["path"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--where", "rewards < 1"], "the columns are step"),
        (["--sort", "size"], "there is no such column"),
        (["--export", "x.csv"], "a .parquet or a .jsonl file"),
    ],
)
def test_a_wrong_argument_is_named(run_dir: Path, arguments: list[str], words: str, vlrl: Any) -> None:
    result = vlrl("rollouts", run_dir, *arguments)
    assert result.code == 2 and words in " ".join(result.err.split())
