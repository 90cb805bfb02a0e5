"""Whole runs that generate while the trainer steps, or refill their batches: real engines, tiny model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from whole_runs import metrics, run

from vlrl.config import Config
from vlrl.errors import Interrupted
from vlrl.run.checkpoint import latest_checkpoint
from vlrl.tracking.timeline import TIMELINE_FILE, overlap_s, read_timeline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NUM_STEPS = 5
STOP_AFTER = 2
BATCH = 2

REWARD = '''
def parity(completion, answer):
    """Something that a random model gets right every other time."""
    return float(sum(map(ord, completion)) % 2)
'''


def tickets(config: Config) -> Mapping[str, Any]:
    found = latest_checkpoint(config.run_dir)[1].tickets
    assert found is not None
    return found


@pytest.fixture
def new_run(tiny_model: Path, tmp_path: Path) -> Any:
    (tmp_path / "reward.py").write_text(REWARD)

    def make(name: str, **sections: Any) -> Config:
        return make_config(
            tiny_model,
            run={"name": name, "dir": str(tmp_path), "seed": 11},
            rewards=[{"name": f"{tmp_path}/reward.py:parity"}],
            rollout={
                "prompts_per_step": BATCH,
                "group_size": 2,
                "max_tokens": 6,
                **sections.pop("rollout", {}),
            },
            optim={"lr": 3e-3},
            checkpoint={"every": 0},
            **{
                "num_steps": NUM_STEPS,
                "data": {"train": {"name": "digit_sum", "limit": 60}},
                "logging": {"tensorboard": False},
                **sections,
            },
        )

    return make


def test_refilled_batches_are_the_same_whether_the_run_was_stopped_or_not(
    new_run: Any, local_ray: None
) -> None:
    batch = {"filters": [{"name": "zero_variance"}], "over_sampling": 1.5, "max_dropped_share": 0.95}
    whole, stopped = new_run("whole", batch=batch), new_run("stopped", batch=batch)
    run(whole)
    assert sum(m["groups/dropped_zero_variance"] for m in metrics(whole)) > 0
    assert tickets(whole)["next_position"] > NUM_STEPS * BATCH
    with pytest.raises(Interrupted):
        run(stopped, stop_after=STOP_AFTER)
    run(stopped, resume=True)
    assert metrics(stopped) == metrics(whole)
    assert tickets(stopped) == tickets(whole)


def test_replayed_groups_are_the_same_whether_the_run_was_stopped_or_not(
    new_run: Any, local_ray: None
) -> None:
    """One completion beside a greedy one; the stopped run goes on with rollout workers, on kept groups."""
    sections: dict[str, Any] = {
        "algorithm": {"preset": "remax", "correction": {"kind": "truncated"}},
        "batch": {"replay": {"share": 1.0}},
    }
    whole = new_run("whole", rollout={"group_size": 1}, **sections)
    run(whole)
    assert sum(m["replay/num_groups"] for m in metrics(whole)[STOP_AFTER + 1 :]) > 0
    assert all(0 <= m["baseline/greedy_reward"] <= 1 for m in metrics(whole))
    with pytest.raises(Interrupted):
        run(new_run("stopped", rollout={"group_size": 1}, **sections), stop_after=STOP_AFTER)
    workers = {"group_size": 1, "num_workers": 2, "cpus_per_worker": 0.1}
    stopped = new_run("stopped", rollout=workers, **sections)
    run(stopped, resume=True)
    found = metrics(stopped)
    assert [m.pop("failures/replaced_workers", 0.0) for m in found] == [0.0] * NUM_STEPS
    assert found == metrics(whole)
    logs = [(config.run_dir / "samples.jsonl").read_text() for config in (whole, stopped)]
    assert logs[0] == logs[1] and "replayed_sample_ids" in logs[0]


def test_generating_while_the_trainer_steps_keeps_the_order_and_the_bound(
    new_run: Any, local_ray: None
) -> None:
    config = new_run(
        "async",
        asynchronous={"mode": "async", "pipeline_depth": 2, "max_staleness": 1},
        episodes={"lockstep": False},
        algorithm={"num_minibatches": 2, "correction": {"kind": "decoupled"}},
        weights={"probe_every": 2},
        logging={"tensorboard": False, "timeline": True},
    )
    assert config.generator.mode == "continuous"
    with pytest.raises(Interrupted):
        run(config, stop_after=STOP_AFTER)
    state = tickets(config)
    open_positions = [position for position, *_ in state["open"]]
    first = (STOP_AFTER + 1) * BATCH
    assert open_positions == list(range(first, state["next_position"]))
    assert open_positions  # generated ahead, or on the way
    run(config, resume=True)
    found = metrics(config)
    assert [m["step"] for m in found] == list(range(NUM_STEPS))
    rows = {name.rsplit("_staleness", 1)[1] for m in found for name in m if "token_share_staleness" in name}
    assert "1" in rows and rows <= {"0", "1"}
    assert (
        max(m.get("off_policy/staleness_mean", 0.0) for m in found) > 0.5
    )  # absent if no advantage was above 0
    # Absent where all tokens are old, or none has an advantage; the probes compare in any case.
    assert all(m.get("parity/max_abs_logprob_diff", 0.0) < 1e-3 for m in found)
    spans = read_timeline(config.run_dir / TIMELINE_FILE)
    updates = [span.details["version"] for span in spans if span.lane == "generator"]
    assert updates == list(range(1, NUM_STEPS + 1))  # by two processes, in one file
    steps = [span for span in spans if span.lane == "trainer" and span.what == "train"]
    generated_meanwhile = [
        overlap_s([span for span in spans if span.lane == "request"], s.start_s, s.end_s) for s in steps
    ]
    assert any(seconds > 0 for seconds in generated_meanwhile)
