"""The stages of the GPU check run here at a tiny size, are skipped with a reason, and can fail."""

from __future__ import annotations

import copy
import importlib
import json
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import torch
from hidden import environment_without
from packaging.utils import canonicalize_name

from requirements import closure

ROOT = Path(__file__).resolve().parents[2]
# Programs, which import one another by plain name; behind the tests' helpers, some of which have such names.
sys.path += [str(ROOT / name) for name in ("benchmarks/gpu", "benchmarks", "tools")]
stage = importlib.import_module("stage")
check = importlib.import_module("check")
peak = importlib.import_module("peak")
gpu_bundle = importlib.import_module("gpu_bundle")

WITHOUT_ENGINES = ("facts", "attention", "agreement", "training")
WITH_ENGINES = ("engine", "quickstart", "placement")


def run(out: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "check.py"), "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def results(out: Path, *names: str) -> dict[str, dict[str, Any]]:
    """The JSON of stages that must have ended well."""
    found = {name: json.loads((out / f"{name}.json").read_text()) for name in names}
    for name, result in found.items():
        log = (out / f"{name}.log").read_text()
        assert (result["stage"], result["status"]) == (name, "ok"), f"{result['verdict']}\n{log[-3000:]}"
    return found


@pytest.mark.slow(together=True)
@pytest.mark.timeout(1800)
def test_the_trainer_s_stages_run_with_what_the_bundle_brings(tmp_path: Path) -> None:
    """Everything else that is installed here is hidden from them, Ray and vLLM first of all."""
    there = closure(*gpu_bundle.IMAGE) | {*gpu_bundle.CARRIED, "vlrl"}
    hidden = [
        name
        for name, distributions in packages_distributions().items()
        if not there & {canonicalize_name(d) for d in distributions}
    ]
    assert {"ray", "vllm", "scipy", "datasets"} <= set(hidden), "the test would prove nothing"
    environment = environment_without(tmp_path / "hidden", hidden)
    child = run(tmp_path, "--tiny", *WITHOUT_ENGINES, env=environment)
    found = results(tmp_path, *WITHOUT_ENGINES)
    assert child.returncode == 0, child.stdout
    assert [line.split()[:2] for line in child.stdout.splitlines()] == [
        [name, "ok"] for name in WITHOUT_ENGINES
    ]
    assert found["facts"]["figures"]["bf16_tflop_per_s"] > 0
    assert len(found["attention"]["figures"]["lengths"]) == 2
    assert found["agreement"]["figures"]["tiny, images"]["float32"]["rank"]["max"] < 1e-4
    assert found["training"]["figures"]["text"]["row_tokens_per_s"] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WITH_ENGINES)
def test_a_stage_with_engines_runs(name: str, tmp_path: Path) -> None:
    run(tmp_path, "--tiny", "--limit-s", "1700", name)
    results(tmp_path, name)


@pytest.mark.parametrize("name", check.STAGES)
def test_without_a_gpu_it_is_skipped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(stage.Skipped, match=r"needs \d NVIDIA GPUs?, torch sees 0"):
        importlib.import_module(name).measure(stage.Options(tiny=False, out=Path()))


@pytest.mark.parametrize("name", WITH_ENGINES)
def test_without_vllm_it_is_skipped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(stage.Skipped, match="vllm is not installed"):
        importlib.import_module(name).measure(stage.Options(tiny=True, out=Path()))


def test_a_stage_over_its_limit_fails_and_leaves_its_words(tmp_path: Path) -> None:
    child = run(tmp_path, "--limit-s", "0.05", "facts")
    assert child.returncode == 1
    assert "took longer than 0.05 s" in child.stdout
    assert json.loads((tmp_path / "facts.json").read_text())["status"] == "failed"


def test_a_skipped_stage_is_no_failure(tmp_path: Path) -> None:
    """And what an earlier check left is not taken for this one's."""
    (tmp_path / "placement.json").write_text("{}")
    environment = environment_without(tmp_path / "hidden", ["ray"])
    child = run(tmp_path, "--tiny", "placement", env=environment)
    assert child.returncode == 0, child.stdout
    assert child.stdout.split()[:2] == ["placement", "skipped"]
    result = json.loads((tmp_path / "placement.json").read_text())
    assert (result["status"], result["verdict"]) == ("skipped", "ray is not installed")


def test_an_unknown_stage_is_named(tmp_path: Path) -> None:
    child = run(tmp_path, "atention")
    assert child.returncode == 2
    assert "no such stage: atention; there are facts, attention" in child.stderr


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H200", 989.5),
        ("NVIDIA H100 80GB HBM3", 989.5),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA A100-SXM4-80GB", 312.0),
        ("NVIDIA GeForce RTX 2060", None),
    ],
)
def test_rates_of_data_sheets(name: str, tflops: float | None) -> None:
    assert peak.nominal_rate(name) == (None if tflops is None else tflops * 1e12)


GOOD_ATTENTION = {
    "length": 300,
    "flex": {"errors": {"output": 4e-3, "key": 8e-3}},
    "blocks": {"errors": {"output": 4e-3, "query": 7e-3, "key": 8e-3}},
}


def test_attention_that_is_off_fails() -> None:
    attention = importlib.import_module("attention")
    assert attention.faults_of(GOOD_ATTENTION) == []
    for error in (1e-2, float("nan")):
        bad = copy.deepcopy(GOOD_ATTENTION)
        bad["flex"]["errors"]["output"] = error
        assert "300 tokens: output is off by" in attention.faults_of(bad)[0]


@pytest.mark.parametrize("length", [24, 65, 1000])
def test_the_trees_of_the_attention_stage_are_trees(length: int) -> None:
    seen_until = importlib.import_module("attention").tree(length)
    places = range(length)
    assert len(seen_until) == length
    assert all(seen_until[place] > place for place in places)
    assert len(set(seen_until.tolist())) == 8, "the prompt ends with its last branch"
    assert seen_until[0] == length


def errors(mean: float, largest: float, gradient: float) -> dict[str, float]:
    return {"mean": mean, "max": largest, "gradient": gradient}


@pytest.mark.parametrize("side", ["module", "rank"])
@pytest.mark.parametrize(
    ("dtype", "name", "words"),
    [
        ("float32", "max", "float32: max is off by 2.0e-03"),
        ("float32", "gradient", "float32: gradient is off by 2.0e-03"),
        ("bfloat16", "mean", "bfloat16: mean is off by 3.0e-03, transformers by 1.0e-03"),
        ("bfloat16", "gradient", "bfloat16: gradient is off by 3.0e-03, transformers by 1.0e-03"),
    ],
)
def test_a_trainer_that_disagrees_fails(side: str, dtype: str, name: str, words: str) -> None:
    agreement = importlib.import_module("agreement")
    exact, rounded = errors(0.0, 1e-6, 1e-6), errors(1e-3, 9e-3, 1e-3)
    found = {
        "float32": {"module": {**exact}, "rank": {**exact}},
        "bfloat16": {"transformers": rounded, "module": {**rounded}, "rank": {**rounded}},
    }
    assert agreement.faults_of(found) == []
    bad = copy.deepcopy(found)
    bad[dtype][side] |= {name: 2e-3 if dtype == "float32" else 3e-3}
    assert agreement.faults_of(bad) == [
        f"{side}, {words}" + (", more than 0.001" if dtype == "float32" else "")
    ]


def test_memory_beyond_the_plan_and_a_slow_step_fail() -> None:
    training = importlib.import_module("training")
    good = {"memory_ratio": 1.0, "predicted_gib": 50.0, "measured_gib": 50.0, "mfu": 0.3}
    assert training.faults_of(good, training.FULL) == []
    [memory] = training.faults_of({**good, "memory_ratio": 0.9}, training.FULL)
    assert memory.endswith("0.90 is not in 0.92 to 1.25")
    assert training.faults_of({**good, "mfu": 0.08}, training.FULL) == ["MFU 8.0%, not above 8.1%"]


def test_a_micro_batch_is_chosen_that_fits_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    training = importlib.import_module("training")
    needs = {16384: 90 * 2**30, 8192: 70 * 2**30, 4096: 68 * 2**30}
    monkeypatch.setattr(training, "planned", lambda config, *_: config.trainer.max_tokens_per_micro_batch)
    monkeypatch.setattr(training, "expected_bytes", lambda max_tokens, _: needs[max_tokens])
    case = training.FULL.case
    for gib, wanted in ((140, 16384), (80, 8192)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=gib: (free * 2**30, 0))
        config, expected = training.fitting(Path("m"), case, training.FULL, "cuda", 1e15)
        assert config.trainer.max_tokens_per_micro_batch == wanted
        assert expected == needs[wanted]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (24 * 2**30, 0))
    with pytest.raises(stage.Skipped, match="the plan needs 68 GiB, 22 GiB of the GPU are free"):
        training.fitting(Path("m"), case, training.FULL, "cuda", 1e15)


def test_engines_that_train_nothing_or_miss_the_gpu_fail() -> None:
    engine = importlib.import_module("engine")
    good = {"num_steps": 3, "grad_norms": [1.0, 1.0, 1.0], "device": "NVIDIA H200"}
    assert engine.faults_of("float32", good, "cuda") == []
    for change in ({"num_steps": 2}, {"grad_norms": [1.0, 0.0, 1.0]}, {"device": "CPU, 2 cores"}):
        assert len(engine.faults_of("float32", {**good, **change}, "cuda")) == 1


def test_tokens_of_the_wrong_weights_fail() -> None:
    engine = importlib.import_module("engine")
    own = {"own": 1e-5, "other": 0.5}
    assert engine.faults_of_update({"num_requests": 2, "versions": [own, own]}) == []
    for change in ({"own": 0.1}, {"own": float("nan")}, {"other": 1e-5}):
        found = {"num_requests": 2, "versions": [own, {**own, **change}]}
        assert "version 1" in engine.faults_of_update(found)[0]
    assert "no request saw both" in engine.faults_of_update({"num_requests": 0, "versions": []})[0]


def test_a_quickstart_that_misses_its_goal_fails() -> None:
    judged = importlib.import_module("quickstart").judged
    good = {
        "target_reached": True,
        "device": "NVIDIA H200",
        "heldout_accuracy_after": 0.8,
        "target_accuracy": 0.9,
    }
    assert judged(good, 0, True, "cuda").status == "ok"
    assert judged({**good, "target_reached": False}, 1, True, "cuda").words.endswith("0.800 is below 0.9")
    assert judged(good, 0, False, "cuda").words == "there is no report.html"
    assert judged({**good, "device": "CPU, 2 cores"}, 0, True, "cuda").words == "it ran on CPU, 2 cores"


def test_an_idle_gpu_and_another_loss_fail() -> None:
    placement = importlib.import_module("placement")
    one = {"losses": [0.5]}
    busy = {"losses": [0.5], "used_mib": [9000] * 8}
    assert placement.faults_of(busy, one, 8) == []
    idle = {**busy, "used_mib": [9000] * 7 + [3]}
    assert "GPUs [7] were idle" in placement.faults_of(idle, one, 8)[0]
    assert len(placement.faults_of({**busy, "used_mib": [9000]}, one, 8)) == 1
    assert "first loss is 1.0e-02" in placement.faults_of({**busy, "losses": [0.51]}, one, 8)[0]
