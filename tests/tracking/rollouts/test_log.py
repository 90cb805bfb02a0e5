import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kept_rollouts import FakeProcessor, make_group, make_media

from vlrl.config.options import RolloutLogConfig
from vlrl.tracking.rollouts.log import RolloutLog
from vlrl.tracking.rollouts.paths import train_file, train_files
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_images, write_rollouts
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.types import Group


class Told(list[str]):
    def __call__(self, event: str, text: str) -> None:
        self.append(text)


def opened(run_dir: Path, first_step: int = 0, told: Told | None = None, **options: Any) -> RolloutLog:
    told = Told() if told is None else told
    return RolloutLog(run_dir, RolloutLogConfig(**options), first_step=first_step, tell=told)


def group_of(step: int) -> Group:
    """A group whose first image is the step's own, and whose second one all steps show."""
    group = make_group()
    own = make_media(np.full((56, 56, 3), step), str(step))
    for trajectory in group.trajectories:
        (ledger,) = trajectory.ledgers
        object.__setattr__(ledger, "media", (own, ledger.media[1]))
    return group


def tables_of(group: Group, step: int) -> list[pa.Table]:
    return [rollout_table([group], [RolloutPlace(step, step, 0)], FakeProcessor())]


def write(log: RolloutLog, run_dir: Path, steps: range) -> None:
    for step in steps:
        group = group_of(step)
        write_images(run_dir, images_of([group]))
        log.write(step, partial(tables_of, group, step))
    log.flush()


def test_each_step_has_a_file(tmp_path: Path) -> None:
    log = opened(tmp_path)
    write(log, tmp_path, range(3))
    log.close()
    assert list(train_files(tmp_path)) == [0, 1, 2]
    assert [record["step"] for record in read_rollouts(train_file(tmp_path, 1))] == [1, 1]
    assert not list(tmp_path.rglob("*.part"))


def test_a_resumed_run_has_each_step_once(tmp_path: Path) -> None:
    log = opened(tmp_path)
    write(log, tmp_path, range(4))
    again = opened(tmp_path, first_step=2)
    assert list(train_files(tmp_path)) == [0, 1]
    write(again, tmp_path, range(2, 5))
    assert list(train_files(tmp_path)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("every", "wanted"), [(0, []), (1, [0, 1, 2, 3]), (2, [0, 2])])
def test_steps_are_chosen(tmp_path: Path, every: int, wanted: list[int]) -> None:
    log = opened(tmp_path, every=every)
    assert [step for step in range(4) if log.wants(step)] == wanted


def test_the_oldest_steps_go_with_the_images_that_nothing_else_shows(tmp_path: Path) -> None:
    reported = group_of(0)
    records = rollout_records([reported], FakeProcessor(), phase="before", step=0)
    write_rollouts(tmp_path / "rollouts" / "before.jsonl", records, images_of([reported]))
    log = opened(tmp_path, num_kept_steps=2)
    write(log, tmp_path, range(3))
    write(opened(tmp_path, first_step=3, num_kept_steps=2), tmp_path, range(3, 5))
    assert list(train_files(tmp_path)) == [3, 4]
    left = sorted(image.name[0] for image in (tmp_path / "media").iterdir())
    assert left == ["0", "3", "4", "b"]  # that of the report, those of the two steps, and the one all show


def test_files_and_images_stay_below_the_limit(tmp_path: Path) -> None:
    log = opened(tmp_path)
    write(log, tmp_path, range(2))
    num_bytes = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    log = opened(tmp_path, max_gib=num_bytes / 2**30, first_step=2)
    write(log, tmp_path, range(2, 6))
    kept = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert kept <= num_bytes and 5 in train_files(tmp_path)


def test_a_failure_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    told = Told()
    log = opened(tmp_path, told=told)
    (tmp_path / "rollouts").write_text("a file where the folder would be")
    write(log, tmp_path, range(1))
    assert not log.wants(1)
    assert len(told) == 1 and "the rollouts of step 1 and later are not kept" in told[0]


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_log import opened, write
run_dir = Path(sys.argv[1])
log = opened(run_dir)
for step in range(10_000):
    write(log, run_dir, range(step, step + 1))
"""


def test_a_killed_run_leaves_whole_files_and_goes_on_with_each_step_once(tmp_path: Path) -> None:
    helpers = Path(__file__).parents[2] / "helpers"
    process = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, str(Path(__file__).parent), helpers])
    try:
        while len(train_files(tmp_path)) < 5:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    kept = list(train_files(tmp_path))
    assert kept == list(range(len(kept)))
    checkpoint = len(kept) - 2  # what the checkpoint before the kill had waited for
    write(opened(tmp_path, first_step=checkpoint), tmp_path, range(checkpoint, checkpoint + 3))
    steps = [record["step"] for file in train_files(tmp_path).values() for record in read_rollouts(file)]
    assert steps == sorted(2 * list(range(checkpoint + 3)))


def test_whatever_a_table_fails_with_the_run_goes_on(tmp_path: Path) -> None:
    told = Told()
    log = opened(tmp_path, told=told)
    log.write(0, lambda: [pa.table({"group": ["a", object()]})])
    log.flush()
    assert len(told) == 1 and not log.wants(1) and not train_files(tmp_path)
