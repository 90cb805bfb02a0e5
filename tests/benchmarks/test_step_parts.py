"""The pure parts of benchmarks/train_step.py; what it measures is for `make bench`, not for a test."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # programs, not a package: they import one another by plain name
cases = importlib.import_module("cases")
step_floor = importlib.import_module("step_floor")
step_job = importlib.import_module("step_job")
step_jobs = importlib.import_module("step_jobs")
step_memory = importlib.import_module("step_memory")
step_report = importlib.import_module("step_report")
step_rounds = importlib.import_module("step_rounds")
step_side = importlib.import_module("step_side")
train_step = importlib.import_module("train_step")

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
    "window_size": 4,
    "fullatt_block_indexes": [2],
}
WORK = step_floor.Work(
    prompts=2,
    group_size=3,
    prompt_tokens=10,
    completion_tokens=5,
    images_per_prompt=1,
    patches=4,
    image_tokens=1,
)


def make_job(**changes: Any) -> Any:
    job = step_job.Job(
        folder="f",
        model="m",
        rows="r",
        text="t",
        case=dataclasses.replace(cases.CASES["b"], groups=2, group_size=3, completion_tokens=5),
        lr=1e-3,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        num_rows=8,
        max_steps=4,
        micro_batch=6,
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
    return {"seconds": seconds, "parts": parts, "tally": {**counted, **tally}, "losses": [0.25]}


def test_language_flops_by_hand() -> None:
    # per token and layer: query and output 4·4 each, key and value 4·2 each, three matrices of the MLP 4·8
    linear = 2 * (16 + 16 + 8 + 8 + 3 * 32)
    attention = 2 * 4 * 7 * 2  # 7 keys of width 4, scores and sum
    head = 2 * 4 * 10
    assert step_floor.language_flops(TEXT, 5, 7, 3) == 5 * 2 * (linear + attention) + 3 * head


@pytest.mark.parametrize(("patches", "keys"), [(4, 3 * 4), (16, 16 + 2 * 4)])
def test_vision_flops_by_hand(patches: int, keys: int) -> None:
    """Windows are of four patches; of the three blocks, one sees the whole image."""
    embed = 2 * (3 * 2 * 2 * 2) * 4
    linear = 3 * 2 * (4 * 16 + 3 * 32)
    merger = 2 * (16 * 16 + 16 * 6)
    expected = patches * (embed + linear + 4 * 4 * keys) + merger
    assert step_floor.vision_flops(VISION, patches, 1) == expected


def test_forward_counts_a_prompt_and_its_image_once_per_group() -> None:
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


PEAKS = {"vlrl": {"python 1": 2, "ray 2": 4}, "trl": {"python 3": 24}}


def make_round(vlrl: list[float], trl: list[float], others: float = 0.0, **tally: Any) -> Any:
    blocks = {"vlrl": make_block(vlrl), "trl": make_block(trl, **tally)}
    cpu = {"vlrl": 2 * vlrl[0], "trl": 5 * vlrl[0]}
    return step_report.Round(blocks, idle={"vlrl": 0.02, "trl": 0.0}, others=others, cpu_seconds=cpu)


def test_summary_takes_all_quiet_rounds_together() -> None:
    rounds = [
        make_round([1.0, 1.1], [2.0, 2.2]),
        make_round([9.0], [99.0], others=1.5),
        make_round([1.2], [1.8]),
    ]
    result = step_report.summarize(rounds, PEAKS)
    assert (result["vlrl"]["median"], result["trl"]["median"]) == (1.1, 2.0)
    assert result["speedup"] == pytest.approx(2.0 / 1.1)
    assert result["speedup_of_minima"] == pytest.approx(1.8)
    assert result["speedup_by_round"] == pytest.approx([2.1 / 1.05, 1.5])
    assert result["cpu_speedup"] == pytest.approx(2.5)
    assert (result["quiet"], result["rounds"], result["quiet_rounds"]) == (True, 3, 2)
    assert result["others_cores"] == pytest.approx(0.5)
    assert result["vlrl"]["parts"] == {"generate": 0.55, "train": 0.275}
    assert (result["vlrl"]["steps"], result["vlrl"]["idle_cores"]) == (3, 0.02)


def test_memory_is_the_sum_over_processes_or_the_gpu_s() -> None:
    result = step_report.summarize([make_round([1.0], [2.0])], PEAKS)
    assert (result["vlrl"]["peak_bytes"], result["vlrl"]["largest_process_bytes"]) == (6, 4)
    assert result["memory_ratio"] == pytest.approx(6 / 24)
    measured = make_round([1.0], [2.0])
    for block in measured.blocks.values():
        block["gpu_bytes"] = 9
    assert step_report.summarize([measured], PEAKS)["trl"]["peak_bytes"] == 9


def test_summary_says_when_too_few_rounds_were_quiet() -> None:
    rounds = [make_round([1.0], [2.0]), make_round([3.0], [6.0], others=1.0)]
    result = step_report.summarize(rounds, PEAKS)
    assert (result["quiet"], result["vlrl"]["median"]) == (False, 2.0)


def test_one_side_alone_has_no_ratio() -> None:
    one = step_report.Round({"vlrl": make_block([1.0])}, {"vlrl": 0.0}, 0.0, {"vlrl": 1.0})
    result = step_report.summarize([one], {"vlrl": {}})
    assert result["quiet"] and result["vlrl"]["median"] == 1.0 and "speedup" not in result


@pytest.mark.parametrize(
    ("tally", "message"),
    [
        ({"completions": 11}, "trl generated 11 completions in a block, not 12"),
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


def test_trainers_must_compute_the_same_losses() -> None:
    rounds = [make_round([1.0], [1.0]), make_round([1.0], [1.0])]
    assert step_report.check_equal_losses(make_job(), rounds) == 0.0
    rounds[1].blocks["trl"]["losses"][0] = 0.2515
    with pytest.raises(step_job.BenchmarkError, match="different losses in round 2"):
        step_report.check_equal_losses(make_job(), rounds)
    coarse = dataclasses.replace(make_job(), case=cases.CASES["d"])
    assert step_report.check_equal_losses(coarse, rounds) == pytest.approx(1.5e-3)


@pytest.mark.parametrize(("others", "loud"), [(0.0, False), (1.0, True)])
def test_report_names_ratio_memory_largest_part_floor_and_noise(others: float, loud: bool) -> None:
    rounds = [make_round([1.0], [1.4], others), make_round([1.0], [1.6], others)]
    result = step_report.summarize(rounds, PEAKS)
    for name in PEAKS:
        result[name]["start_up"] = {"total": 9.0}
    result["floor"] = {"seconds": 0.5, "gflop": 4.0, "matmul_gflop_per_s": 8}
    text = step_report.report(result, list(PEAKS))
    assert "trl / vlrl: 1.50 times (by round 1.40 to 1.60" in text
    assert "CPU seconds 2.50); memory vlrl / trl: 0.25" in text
    assert "vlrl step, most in generate: generate 0.500 (50%)" in text
    assert "vlrl reaches 50%, trl reaches 33%" in text
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

    monkeypatch.setattr(step_rounds, "run_round", run_round)
    sides = [FakeSide("vlrl"), FakeSide("trl")]
    rounds = step_rounds.alternate(sides, steps=1, rounds=2, max_rounds=4)
    assert len(rounds) == expected
    assert orders[:2] == [["vlrl", "trl"], ["trl", "vlrl"]]


def test_a_round_asks_every_side_for_one_block() -> None:
    measured = step_rounds.run_round([FakeSide("vlrl"), FakeSide("trl")], 2)
    assert list(measured.blocks) == ["vlrl", "trl"]
    assert measured.idle == measured.cpu_seconds == {"vlrl": 0.0, "trl": 0.0}


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
        (["--micro-batch", "5"], "--micro-batch 5 does not divide 32"),
        (["--case", "c", "--only", "whole"], "case c has no whole step; those of a, b have"),
    ],
)
def test_wrong_arguments_exit_with_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        train_step.parse_arguments(["--case", "b", "--trl-python", sys.executable, *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_the_trainer_alone_needs_no_trl() -> None:
    nowhere = ["--trl-python", "/nowhere/python"]
    assert train_step.parse_arguments(["--case", "b", "--only", "trainer", *nowhere]).only == "trainer"
    assert train_step.parse_arguments(["--case", "c", *nowhere]).case == "c"


def test_the_whole_step_s_rows_and_model_are_written(tmp_path: Path) -> None:
    np = importlib.import_module("numpy")
    sizes = ["--steps", "2", "--rounds", "1", "--max-rounds", "1", "--warmup", "1", "--groups", "3"]
    options = train_step.parse_arguments(["--case", "a", "--trl-python", sys.executable, *sizes])
    job = step_jobs.whole_job(train_step.case_of(options), tmp_path, **train_step.job_options(options))
    assert (job.max_steps, job.num_rows, job.case.completions, job.micro_batch) == (5, 15, 24, 24)
    assert np.load(job.rows)["images"].shape == (15, 2, 56, 56, 3)
    assert step_floor.read_model_config(job.model)["text_config"]["hidden_size"] == 128
    assert step_job.Job.read(tmp_path / "job.json") == job


def test_the_table_has_a_row_a_comparison() -> None:
    table = importlib.import_module("train_table")
    result = step_report.summarize([make_round([1.0], [8.0])], PEAKS)
    result["floor"] = {"seconds": 0.5}
    both = {"case": "b", "load": 2.0, "whole": result}
    [row] = table.rows_of(both)
    assert (
        row
        == "| b, whole step | 1 s | trl 8 s | **8.00** (2.50) | 0.00, 0.00 | 0.25 | 0.5 s, 50% | 2.0; quiet |"
    )
    assert row.count("|") == table.HEAD.splitlines()[0].count("|") == table.HEAD.splitlines()[1].count("|")


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_episodes_that_act_alike_share_more(alike: float) -> None:
    groups = importlib.import_module("train_groups")
    case = dataclasses.replace(cases.CASES["c"], alike=alike, image_tokens=4)
    [group] = groups.make_groups(case)
    pack = importlib.import_module("vlrl.packing.pack")
    options = importlib.import_module("vlrl.packing.options")
    [[batch]] = pack.pack(
        [group],
        groups.random_pixels,
        options.PackOptions(
            num_ranks=1,
            max_tokens=10**6,
            aggregation="token",
            max_completion_tokens=24,
            keep_zero_advantage=True,
        ),
    )
    slots = sum(len(ledger.token_ids) for t in group.trajectories for ledger in t.ledgers)
    shared = 1 - len(batch.input_ids) / slots
    assert (shared > 0.8) if alike == 1 else (shared > 0.2) if alike else (0.02 < shared < 0.2)
    assert len(batch.media_keys) < 8 * 6


def test_text_alone_brings_no_image_and_nothing_a_blank_one() -> None:
    groups, one_rank = (importlib.import_module(name) for name in ("train_groups", "one_rank"))
    case = dataclasses.replace(cases.CASES["b"], images=0, groups=2, group_size=3)
    [batch] = one_rank.packed(groups.make_groups(case), case, 10**6)
    assert (batch.media_keys, len(batch.media_order), batch.media_inputs) == ((), 0, None)
    blank = groups.random_pixels([])
    assert blank["image_grid_thw"].tolist() == [[1, 2, 2]]
    assert blank["pixel_values"].shape == (4, 3 * 2 * 14**2)


@pytest.mark.parametrize(("shape", "millions"), [("wide", 543), ("3b", 3755), ("7b", 8292)])
def test_published_shapes_are_those_that_the_plan_ships(shape: str, millions: int) -> None:
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    config = importlib.import_module("train_shapes").model_config(shape)
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == millions
    assert config.image_token_id == 7


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
    command = [sys.executable, str(BENCHMARKS / "train_step.py"), "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--completion-tokens" in result.stdout


def test_config_of_the_vlrl_side_is_valid(tmp_path: Path) -> None:
    vlrl_step = importlib.import_module("vlrl_step")
    config = vlrl_step.make_config(make_job(folder=str(tmp_path), model=str(tmp_path)))
    assert config.rollout.max_tokens == 5
    assert config.optim.betas == (0.9, 0.95)
    assert config.data.eval == []
    json.dumps(config.model_dump(mode="json"))


ROLLUP = """55d0a8a00000-7ffc12345000 ---p 00000000 00:00 0                          [rollup]
Rss:                1744 kB
Pss:                 478 kB
Pss_Anon:            116 kB
Shared_Clean:       1300 kB
Private_Clean:        28 kB
Private_Dirty:       100 kB
Anonymous:           110 kB
Private_Hugetlb:       4 kB
"""


def test_private_memory_is_read_from_a_rollup() -> None:
    found = step_memory.parse_rollup(ROLLUP)
    assert found == {"private": 132 * 1024, "proportional": 478 * 1024, "anonymous": 110 * 1024}
    assert set(step_memory.parse_rollup("").values()) == {0}


def test_peaks_are_of_a_moment_for_all_and_of_its_own_for_each() -> None:
    peaks = step_memory.MemoryPeaks()
    for first, second in ((3, 1), (1, 2)):
        peaks.add(
            {1: dict.fromkeys(step_memory.FIELDS, first), 2: dict.fromkeys(step_memory.FIELDS, second)}, 0.5
        )
    found = peaks.as_dict(trainer=2)
    assert (found["private_bytes"], found["trainer_private_bytes"]) == (4, 2)
    assert (found["memory_samples"], found["memory_sample_cpu_seconds"]) == (2, 0.5)
    halves = step_memory.ratios(found, {key: 2 * value for key, value in found.items()})
    assert halves["private_memory_ratio"] == halves["trainer_private_memory_ratio"] == 0.5


def test_memory_is_sampled_while_the_work_is_done() -> None:
    blocks = []
    peaks = step_memory.sample_during(lambda: blocks.append(bytes(50 << 20)), lambda: [os.getpid()], 0.01)
    found = peaks.as_dict(os.getpid())
    assert 0 < found["trainer_private_bytes"] <= found["private_bytes"]
    assert found["memory_samples"] >= 1


@pytest.mark.parametrize(
    ("most_bytes", "most_seconds", "reason"), [(1, 60, "over 9.31e-10 GiB"), (1e12, 0, "over 0 s")]
)
def test_a_side_that_exceeds_a_limit_is_ended(most_bytes: float, most_seconds: float, reason: str) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        step_memory.Guard(lambda: [process.pid], most_bytes, most_seconds) as guard,
    ):
        process.wait(30)
    assert (guard.reason, process.returncode) == (reason, -9)


def test_a_side_within_its_limits_is_left_alone() -> None:
    with step_memory.Guard(lambda: [os.getpid()], 1e12, 60) as guard:
        pass
    assert guard.reason == ""
