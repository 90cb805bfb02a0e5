"""A run's folder in place of a file of rollouts, for whoever reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from kept_rollouts import FakeProcessor, make_group

from vlrl.check.rescore.rescore import rescore
from vlrl.data.readers.rollouts import RolloutReader
from vlrl.scoring.functions import find_reward
from vlrl.tracking.rollouts.paths import rollout_files, train_file
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Two steps of training, and the held-out rollouts after it."""
    group = make_group()
    records = rollout_records([group], FakeProcessor(), phase="after", step=2)
    write_rollouts(tmp_path / "rollouts" / "after.jsonl", records, images_of([group]))
    for step in range(2):
        group = make_group()
        for trajectory in group.trajectories:
            trajectory.completion += f" {step}"
        file = train_file(tmp_path, step)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rollout_table([group], [RolloutPlace(step, step, 0)], FakeProcessor()), file)
    return tmp_path


def test_a_run_stands_for_its_training(run_dir: Path) -> None:
    assert rollout_files(run_dir) == [train_file(run_dir, step) for step in range(2)]
    for file in rollout_files(run_dir):
        file.unlink()
    assert rollout_files(run_dir) == [run_dir / "rollouts" / "after.jsonl"]


def test_training_is_scored_again(run_dir: Path) -> None:
    result = rescore(find_reward("answer_exact", {}), run_dir)
    assert (result["num_rows"], result["num_failed"]) == (4, 0)


def test_the_best_of_training_are_rows_and_held_out_ones_are_none(run_dir: Path) -> None:
    reader = RolloutReader(str(run_dir), min_reward=1.0, best_of=None)
    said = [reader[number].fields["messages"][-1]["content"] for number in range(len(reader))]
    assert sorted(said) == ["<answer>7</answer> 0", "<answer>7</answer> 1"]
    assert (reader[0].root / reader[0].fields["images"][0]).is_file()
