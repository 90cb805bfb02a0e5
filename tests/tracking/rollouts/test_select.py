from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kept_rollouts import FakeProcessor, make_episode, make_group

from vlrl.errors import ConfigError, DataError
from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.select import overview, select, whole_rows
from vlrl.tracking.rollouts.table import SCHEMA, RolloutPlace, rollout_table


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run of three steps: each trained a question's two answers and an episode."""
    for step in range(3):
        group = make_group()
        group.trajectories[1].completion = f"at {step}"
        places = [RolloutPlace(step, 2 * step, 0), RolloutPlace(step, 2 * step + 1, 1)]
        table = rollout_table([group, make_episode()], places, FakeProcessor())
        train_file(tmp_path, step).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, train_file(tmp_path, step))
    return tmp_path


def test_parts_of_the_reward_and_numbers_of_the_environment_are_columns(run_dir: Path) -> None:
    frame = overview(run_dir)
    assert len(frame) == 9
    assert frame["part_exact"].tolist()[:2] == [1.0, 1.0] and frame["part_exact"].isna()[2]
    assert frame["info_success"].tolist()[2] == 1.0


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (None, 9),
        ("step > 0", 6),
        ("reward < 2 and step == 1", 2),
        ("reward.isna()", 3),
        ("part_exact == 1 and completion.str.contains('at 2')", 1),
        ("outcome == 'truncated'", 3),
        ("reward > 100", 0),
    ],
)
def test_a_condition_chooses(run_dir: Path, where: str | None, count: int) -> None:
    chosen = select(run_dir, where)
    assert len(chosen) == count
    assert whole_rows(chosen).num_rows == count


def test_rows_come_in_the_order_asked_for(run_dir: Path) -> None:
    chosen = select(run_dir, "group == 0", sort="-step", limit=3)
    assert chosen["step"].tolist() == [2, 2, 1]
    rows = whole_rows(select(run_dir, sort="advantage"))
    assert rows.schema.equals(SCHEMA)
    assert rows["advantage"].to_pylist() == [-0.5] * 3 + [0.5] * 3 + [4.0] * 3
    assert pa.compute.unique(rows["step"]).to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("where", ["reward <", "rewards < 1", "import os", "step > 'x'"])
def test_a_condition_that_cannot_be_read_names_the_columns(run_dir: Path, where: str) -> None:
    with pytest.raises(ConfigError, match=r"the columns are .*reward.*part_exact"):
        select(run_dir, where)


def test_a_column_that_is_not_there_is_named(run_dir: Path) -> None:
    with pytest.raises(ConfigError, match="--sort '-rewards': there is no such column"):
        select(run_dir, sort="-rewards")


def test_a_folder_without_rollouts_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"logging\.rollouts\.every"):
        select(tmp_path)
