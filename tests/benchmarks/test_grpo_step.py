"""The pure parts of benchmarks/grpo_step.py; what it measures is for `make bench`, not for a test."""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # programs, not a package: they import one another by plain name
grpo_step = importlib.import_module("grpo_step")
step_floor = importlib.import_module("step_floor")
step_job = importlib.import_module("step_job")
step_report = importlib.import_module("step_report")
step_side = importlib.import_module("step_side")

TEXT = {
    "hidden_size": 4,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 8,
    "vocab_size": 10,
}
VISION = {
    "hidden_size": 4,
    "in_channels": 3,
    "temporal_patch_size": 2,
    "patch_size": 2,
    "intermediate_size": 8,
    "spatial_merge_size": 2,
    "out_hidden_size": 6,
    "depth": 3,
}
WORK = step_floor.Work(
    prompts=2,
    group_size=3,
    prompt_tokens=10,
    completion_tokens=5,
    pictures_per_prompt=1,
    patches=4,
    image_tokens=1,
)


def make_job(**changes: Any) -> Any:
    job = step_job.Job(
        folder="f",
        model="m",
        rows="r",
        text="t",
        prompts=2,
        group_size=3,
        completion_tokens=5,
        lr=1e-3,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        num_rows=8,
        max_steps=4,
        threads=2,
        seed=0,
    )
    return dataclasses.replace(job, **changes)


def make_block(seconds: list[float], **tally: Any) -> dict[str, Any]:
    completions = 6 * len(seconds)
    counted = {
        "completions": completions,
        "prompt_tokens": [10],
        "completion_tokens": [5],
        "distinct_rewards": completions,
    }
    parts = {"generate": [s / 2 for s in seconds], "train": [s / 4 for s in seconds]}
    return {"seconds": seconds, "parts": parts, "tally": {**counted, **tally}}


def test_language_flops_by_hand() -> None:
    # per token and layer: query and output 4·4 each, key and value 4·2 each, three matrices of the MLP 4·8
    linear = 2 * (16 + 16 + 8 + 8 + 3 * 32)
    attention = 2 * 4 * 7 * 2  # 7 keys of width 4, scores and sum
    head = 2 * 4 * 10
    assert step_floor.language_flops(TEXT, 5, 7, 3) == 5 * 2 * (linear + attention) + 3 * head


def test_vision_flops_by_hand() -> None:
    embed = 2 * (3 * 2 * 2 * 2) * 4
    block = 2 * (4 * 16 + 3 * 32) + 4 * 4 * 4
    merger = 2 * (16 * 16 + 16 * 6)
    assert step_floor.vision_flops(VISION, 4, 1) == 4 * (embed + 3 * block) + merger


def test_forward_counts_a_prompt_and_its_picture_once_per_group() -> None:
    config = {"text_config": TEXT, "vision_config": VISION}
    larger = dataclasses.replace(WORK, group_size=WORK.group_size + 1)
    more = step_floor.forward_flops(config, larger) - step_floor.forward_flops(config, WORK)
    assert more == step_floor.language_flops(TEXT, 2 * 4, 10 + 2, 2 * 5)
    assert WORK.tree_tokens == 2 * (10 + 3 * 5)


def test_floor_is_four_forward_passes_at_the_measured_rate() -> None:
    config = {"text_config": TEXT, "vision_config": VISION}
    forward = step_floor.forward_flops(config, WORK)
    floor = step_floor.floor(config, WORK, 1e9)
    assert floor["seconds"] == pytest.approx(4 * forward / 1e9)
    assert floor["train_gflop"] == pytest.approx(3 * floor["generate_gflop"])


def test_matmul_rate_is_a_rate() -> None:
    assert step_floor.matmul_rate(8, 4, 4, repeats=3) > 0


def test_spread_of_many_and_of_one() -> None:
    assert step_report.spread([4.0, 1.0, 3.0, 2.0, 5.0]) == {"min": 1, "p25": 2, "median": 3, "p75": 4}
    assert step_report.spread([2.0]) == {"min": 2, "p25": 2, "median": 2, "p75": 2}


def make_round(vlrl: list[float], trl: list[float], others: float = 0.0, **tally: Any) -> Any:
    blocks = {"vlrl": make_block(vlrl), "trl": make_block(trl, **tally)}
    return step_report.Round(blocks, idle={"vlrl": 0.02, "trl": 0.0}, others=others)


def test_summary_takes_all_quiet_rounds_together() -> None:
    rounds = [
        make_round([1.0, 1.1], [2.0, 2.2]),
        make_round([9.0], [99.0], others=1.5),
        make_round([1.2], [1.8]),
    ]
    result = step_report.summarize(rounds)
    assert (result["vlrl_seconds"], result["trl_seconds"]) == (1.1, 2.0)
    assert result["ratio"] == pytest.approx(2.0 / 1.1)
    assert result["ratio_of_minima"] == pytest.approx(1.8)
    assert result["ratio_by_round"] == pytest.approx([2.1 / 1.05, 1.5])
    assert (result["quiet"], result["rounds"], result["quiet_rounds"]) == (True, 3, 2)
    assert result["others_cores"] == pytest.approx(0.5)
    assert result["vlrl"]["parts"] == {"generate": 0.55, "train": 0.275}
    assert (result["vlrl"]["steps"], result["vlrl"]["idle_cores"]) == (3, 0.02)


def test_summary_says_when_too_few_rounds_were_quiet() -> None:
    result = step_report.summarize([make_round([1.0], [2.0]), make_round([3.0], [6.0], others=1.0)])
    assert (result["quiet"], result["vlrl_seconds"]) == (False, 2.0)


def test_one_side_alone_has_no_ratio() -> None:
    result = step_report.summarize([step_report.Round({"vlrl": make_block([1.0])}, {"vlrl": 0.0}, 0.0)])
    assert result["quiet"] and result["vlrl_seconds"] == 1.0 and "ratio" not in result


@pytest.mark.parametrize(
    ("tally", "message"),
    [
        ({"completions": 11}, "trl drew 11 completions in a block, not 12"),
        ({"completion_tokens": [4, 5]}, r"completions of \[4, 5\] tokens, not of 5"),
        ({"distinct_rewards": 2}, "rewards do not vary"),
        ({"prompt_tokens": [11]}, "prompts differ in length"),
    ],
)
def test_unequal_work_is_refused(tally: dict[str, Any], message: str) -> None:
    good, bad = make_round([1.0, 1.0], [1.0, 1.0]), make_round([1.0, 1.0], [1.0, 1.0], **tally)
    assert step_report.check_equal_work(make_job(), 2, [good, good]) == 10
    with pytest.raises(step_job.BenchmarkError, match=message):
        step_report.check_equal_work(make_job(), 2, [good, bad])


@pytest.mark.parametrize(("others", "loud"), [(0.0, False), (1.0, True)])
def test_report_names_ratio_largest_part_floor_and_noise(others: float, loud: bool) -> None:
    result = step_report.summarize([make_round([1.0], [1.4], others), make_round([1.0], [1.6], others)])
    for name in step_report.SIDES:
        result[name]["start_up"] = {"total": 9.0}
    result["floor"] = {"seconds": 0.5, "generate_gflop": 1, "train_gflop": 3, "matmul_gflop_per_s": 8}
    sizes = {"prompts": 2, "prompt_tokens": 10, "group_size": 3, "completion_tokens": 5, "threads": 2}
    text = step_report.report({**result, "job": sizes})
    assert "TRL / vlrl: 1.50 (by round 1.40 to 1.60, fastest step against fastest step 1.40)" in text
    assert "vlrl step, most in generate: generate 0.500 (50%)" in text
    assert "vlrl is 2.0 times that, trl is 3.0 times that" in text
    assert ("THE MACHINE WAS NOT QUIET" in text) == loud


def test_a_round_is_described_with_what_disturbed_it() -> None:
    assert step_report.describe(make_round([1.0], [2.0])) == "vlrl 1.000 s, trl 2.000 s"
    assert step_report.describe(make_round([1.0], [2.0], 0.5)).endswith("not quiet: others used 0.50 cores")


class FakeSide:
    """Measures nothing."""

    def __init__(self, name: str) -> None:
        self.name, self.pid = name, 2**30

    def run(self, steps: int) -> dict[str, Any]:
        return make_block([1.0] * steps)


@pytest.mark.parametrize(("others", "expected"), [([0.0, 1.0, 0.0, 0.0], 3), ([1.0, 1.0, 1.0, 0.0], 4)])
def test_rounds_are_repeated_until_enough_were_quiet(
    others: list[float], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = iter(others)
    orders = []

    def run_round(sides: Any, steps: int) -> Any:
        orders.append([side.name for side in sides])
        return make_round([1.0] * steps, [1.0] * steps, next(measured))

    monkeypatch.setattr(grpo_step, "run_round", run_round)
    arguments = ["--trl-python", sys.executable, "--rounds", "2", "--max-rounds", "4"]
    options = grpo_step.parse_arguments(arguments)
    rounds = grpo_step.alternate([FakeSide("vlrl"), FakeSide("trl")], options)
    assert len(rounds) == expected
    assert orders[:2] == [["vlrl", "trl"], ["trl", "vlrl"]]


def test_a_round_asks_every_side_for_one_block() -> None:
    measured = grpo_step.run_round([FakeSide("vlrl"), FakeSide("trl")], 2)
    assert list(measured.blocks) == ["vlrl", "trl"]
    assert measured.idle == {"vlrl": 0.0, "trl": 0.0}


def test_block_gives_what_is_left_of_a_step_to_the_rest() -> None:
    block = step_job.Block(2)
    step_job.TALLY.add(10, 5, 0.25)
    assert not block.end_step({"generate": 0.0}, rest="train")
    assert block.end_step({"generate": 0.0}, rest="train")
    measured = block.as_dict()
    assert measured["parts"]["train"] == measured["seconds"]
    assert measured["tally"]["completions"] == 1
    assert step_job.Block(1).as_dict()["tally"]["completions"] == 0


def test_job_survives_its_file(tmp_path: Path) -> None:
    job = make_job(folder=str(tmp_path))
    assert step_job.Job.read(job.write()) == job


def test_reward_varies_with_the_text_alone() -> None:
    assert step_job.noise_reward("a") == step_job.noise_reward("a") != step_job.noise_reward("b")
    assert 0 <= step_job.noise_reward("") < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "--steps must be at least 1"),
        (["--group-size", "1"], "--group-size must be at least 2"),
        (["--completion-tokens", "x"], "invalid int value"),
        (["--rounds", "9", "--max-rounds", "8"], "--max-rounds 8 is below --rounds 9"),
        (["--trl-python", "/nowhere/python"], "make trl-env"),
    ],
)
def test_wrong_arguments_exit_with_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        grpo_step.parse_arguments(["--trl-python", sys.executable, *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_one_side_alone_needs_no_trl() -> None:
    assert grpo_step.parse_arguments(["--only", "vlrl", "--trl-python", "/nowhere/python"]).only == "vlrl"


def test_prepare_writes_rows_that_both_sides_can_read(tmp_path: Path) -> None:
    np = importlib.import_module("numpy")
    options = grpo_step.parse_arguments(
        [
            "--only",
            "vlrl",
            "--steps",
            "2",
            "--rounds",
            "1",
            "--max-rounds",
            "1",
            "--warmup",
            "1",
            "--prompts",
            "3",
        ]
    )
    job = grpo_step.prepare(options, tmp_path)
    assert (job.max_steps, job.num_rows, job.completions) == (3, 9, 24)
    assert np.load(job.rows)["images"].shape == (9, 2, 56, 56, 3)
    assert step_floor.read_model_config(job.model)["text_config"]["hidden_size"] == 128
    assert step_job.Job.read(tmp_path / "job.json") == job


def test_a_side_that_dies_is_reported_with_its_last_words(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no such model >&2\nexit 3\n")
    fake.chmod(0o755)
    with pytest.raises(step_job.BenchmarkError, match=r"(?s)trl's process ended.*no such model"):
        step_side.Side("trl", fake, make_job(folder=str(tmp_path)))


def test_cpu_times_know_a_grandchild_from_the_others() -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spin!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "done\n"
        times = step_side.CpuTimes.now()
        assert times.of(process.pid) >= 0.25
        assert times.of_others(process.pid) == times.busy - times.of(process.pid)
        process.communicate("\n")


def test_busy_ticks_of_some_cores() -> None:
    stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 99 99 8 16 32 99 99\ncpu1 64 0 0 99 0 0 0 0 0 0\nintr 5\n"
    assert step_side.busy_ticks(stat, [0]) == 63
    assert step_side.busy_ticks(stat, [0, 1]) == 127


def test_help_needs_no_engine() -> None:
    command = [sys.executable, str(BENCHMARKS / "grpo_step.py"), "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--completion-tokens" in result.stdout


def test_config_of_the_vlrl_side_is_valid(tmp_path: Path) -> None:
    vlrl_step = importlib.import_module("vlrl_step")
    config = vlrl_step.make_config(make_job(folder=str(tmp_path), model=str(tmp_path)))
    assert config.rollout.max_tokens == 5
    assert config.optim.betas == (0.9, 0.95)
    assert config.data.eval == []
    json.dumps(config.model_dump(mode="json"))
