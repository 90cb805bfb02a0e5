import json
import math
import subprocess
import sys

import pytest

from vlrl.config.options import LoggingConfig
from vlrl.tracking.console import COLUMNS
from vlrl.tracking.metrics import METRICS, describe, is_reward_part
from vlrl.tracking.sinks import MetricSinks, drop_from_step, read_metrics
from vlrl.trainer.result import mean_of_updates

PLAIN = LoggingConfig(tensorboard=False)


def log_steps(run_dir, steps, resume_step=None):
    with MetricSinks(run_dir, PLAIN, resume_step=resume_step) as sinks:
        for step in steps:
            sinks.log(step, {"reward/mean": step / 10})


def test_one_flat_object_per_line_and_null_for_what_json_cannot_say(tmp_path):
    with MetricSinks(tmp_path, PLAIN) as sinks:
        sinks.log(3, {"reward/mean": 0.5, "policy/sampler_mismatch": math.nan, "optim/grad_norm": math.inf})
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=pytest.fail) == {
        "step": 3,
        "reward/mean": 0.5,
        "policy/sampler_mismatch": None,
        "optim/grad_norm": None,
    }


def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path):
    log_steps(tmp_path / "whole", range(8))
    log_steps(tmp_path / "stopped", range(6))
    log_steps(tmp_path / "stopped", range(4, 8), resume_step=4)
    whole, resumed = (tmp_path / name / "metrics.jsonl" for name in ("whole", "stopped"))
    assert resumed.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def test_a_fresh_run_does_not_keep_the_lines_of_an_old_one(tmp_path):
    log_steps(tmp_path, range(5))
    log_steps(tmp_path, range(2))
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [0, 1]


def test_what_was_logged_survives_a_kill(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from vlrl.config.options import LoggingConfig; from vlrl.tracking.sinks import MetricSinks\n"
        "sinks = MetricSinks(Path(sys.argv[1]), LoggingConfig(tensorboard=False))\n"
        "sinks.log(0, {'reward/mean': 1.0}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 0, "reward/mean": 1.0}]


def test_a_line_cut_short_is_skipped_and_dropped_on_resume(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "a": 1.0}\n{"step": 1, "a": 2.0}\n{"step": 2, "a"')
    assert [line["step"] for line in read_metrics(path)] == [0, 1]
    drop_from_step(path, 2)
    assert path.read_text() == '{"step": 0, "a": 1.0}\n{"step": 1, "a": 2.0}\n'


def test_lines_of_one_step_are_merged(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "a": 1.0}\n{"step": 0, "a": 2.0}\n{"step": 1, "b": 3.0}\n')
    assert read_metrics(path) == [{"step": 0, "a": 2.0}, {"step": 1, "a": 1.0, "b": 3.0}]


def test_every_metric_is_described_and_the_console_shows_known_ones():
    assert all(describe(name) for name in METRICS)
    assert is_reward_part("reward/exact") and "exact" in describe("reward/exact")
    assert "boxes.jsonl" in describe("reward_by_source/boxes.jsonl")
    for name in ("policy/entropy", "policy/kl_reference", "policy/sampler_mismatch", "policy/clip_fraction"):
        assert "trained tokens" in describe(name)  # not all that were sampled: groups without advantages
    assert "'zero_variance'" in describe("groups/dropped_zero_variance")
    assert (
        describe("off_policy/ess_staleness8_up")
        == "off_policy/ess, of tokens generated 8 or more updates ago"
    )
    assert describe("heldout/judge/gpt-9/num_calls") == "The judge gpt-9: calls"
    assert not is_reward_part("reward/mean")
    assert {name for name, _, _ in COLUMNS} <= set(METRICS)


def test_importing_the_metrics_does_not_import_torch():
    script = "import sys, vlrl.tracking.metrics, vlrl.tracking.console; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_steps_updates_are_averaged() -> None:
    """The last of them alone would hide what the others did; one without trained tokens has fewer numbers."""
    updates = [
        {"policy/loss": 1.0, "policy/clip_fraction": 0.0, "optim/lr": 0.5},
        {"policy/loss": 3.0, "policy/clip_fraction": 0.2, "optim/lr": 0.5},
        {"policy/loss": 0.0, "optim/lr": 0.5},
    ]
    assert mean_of_updates(updates) == {
        "policy/loss": pytest.approx(4 / 3),
        "policy/clip_fraction": pytest.approx(0.1),
        "optim/lr": 0.5,
    }
    assert mean_of_updates([]) == {}
