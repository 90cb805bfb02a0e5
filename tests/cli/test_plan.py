"""`vlrl plan` says whether a run fits and what would make it fit, and loads nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

CONFIG = Path(__file__).parents[2] / "configs" / "quickstart.yaml"
PHASES = ("training", "generation", "hand_over")
PARTS = ("generation", "workers", "driver", "packing", "media", "training", "sync")


@pytest.fixture
def config_only(tiny_model: Path, tmp_path: Path) -> Path:
    """A model's folder as `plan` needs it of the hub: config.json and nothing else."""
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(tiny_model / "config.json", folder)
    return folder


def test_a_run_that_fits_is_exit_code_0(vlrl: Any, config_only: Path) -> None:
    where = f"model.path={config_only}"
    result = vlrl("plan", CONFIG, where, "--device", "cpu", "--memory-gib", 64, "--teraflops", 0.1, "--json")
    assert result.code == 0, result.err
    found = result.json
    assert found["fits"] is True
    assert found["changes"] == []
    parts = found["memory"]
    assert found["needed_bytes"] > sum(
        parts[name] for name in ("weights", "gradients", "optimizer", "logits")
    )
    assert found["train_seconds"] > 0
    for part in ("weights", "gradients", "optimizer", "activations", "logits", "KV cache", "weight segment"):
        assert part in result.err
    twice = vlrl("plan", CONFIG, where, "--device", "cpu", "--memory-gib", 64, "--teraflops", 0.2, "--json")
    assert twice.json["train_seconds"] == pytest.approx(found["train_seconds"] / 2)


def test_a_run_that_does_not_fit_is_exit_code_1_with_what_would(vlrl: Any, config_only: Path) -> None:
    given = ["plan", CONFIG, f"model.path={config_only}", "rollout.prompts_per_step=64"]
    given += ["trainer.max_tokens_per_micro_batch=16384", "--device", "cpu", "--teraflops", 0.1, "--json"]
    needed = vlrl(*given, "--memory-gib", 64).json["needed_bytes"]
    result = vlrl(*given, "--memory-gib", needed / 2**30 - 0.05)
    assert result.code == 1
    assert "does not fit" in result.err
    changes = {change["change"]: change["needed_bytes"] for change in result.json["changes"]}
    assert "trainer.gradient_checkpointing=true" in changes
    assert all(bytes_ <= result.json["memory_bytes"] for bytes_ in changes.values())
    key = "trainer.gradient_checkpointing=true"
    assert vlrl(*given, key, "--memory-gib", 64).json["needed_bytes"] == changes[key]


@pytest.mark.parametrize("method", ["sft", "dpo", "reward-model"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training_on_given_completions_has_no_engine(
    vlrl: Any, config_only: Path, method: str, device: str
) -> None:
    given = ["plan", CONFIG, f"model.path={config_only}", "--device", device, "--memory-gib", 64, "--json"]
    given += ["--teraflops", 0.1, "sft.batch_size=8"]
    if device == "cuda":
        given += ["--gpus-per-node", 1, "--host-memory-gib", 64]
    with_engine, without = vlrl(*given).json, vlrl(*given, "--method", method)
    assert without.code == 0, without.err
    assert "the engine" not in without.err and without.json["engine_bytes"] == 0
    assert without.json["num_replicas"] == 0 < with_engine["num_replicas"]
    assert without.json["needed_bytes"] < with_engine["needed_bytes"]
    assert without.json["train_seconds"] > 0


def test_a_gpu_that_is_not_here_must_be_described(vlrl: Any, config_only: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, which answers for itself")
    where = f"model.path={config_only}"
    result = vlrl("plan", CONFIG, where, "--device", "cuda")
    assert result.code == 2
    assert "--memory-gib" in result.err
    assert vlrl("plan", CONFIG, where, "--device", "cuda", "--memory-gib", 80).code == 0
    assert vlrl("plan", CONFIG, where, "--device", "tpu").code == 2
    result = vlrl("plan", CONFIG, where, "--device", "cpu", "--nodes", 2)
    assert result.code == 2
    assert "leave out --device cpu" in result.err


def test_any_number_of_nodes_is_planned_gpu_by_gpu(vlrl: Any, config_only: Path) -> None:
    """A number of GPUs says that they are GPUs; all that are alike stand in one line, all in the JSON."""
    given = ("plan", CONFIG, f"model.path={config_only}", "trainer.num_ranks=null", "--memory-gib", 80)
    result = vlrl(*given, "--nodes", 3, "--gpus-per-node", 4, "--json")
    assert result.code == 0, result.err
    found = result.json
    assert (found["num_gpus"], found["num_ranks"], found["num_replicas"]) == (12, 12, 12)
    assert found["placement"] == "colocated"
    assert [(gpu["node"], gpu["gpu"]) for gpu in found["gpus"]] == [
        (f"node {node}", gpu) for node in range(3) for gpu in range(4)
    ]
    assert found["gpus"][5]["processes"] == ["rank 5", "engine 5"]
    assert [host["node"] for host in found["hosts"]] == ["node 0", "node 1", "node 2"]
    assert found["needed_bytes"] == max(max(gpu[phase] for phase in PHASES) for gpu in found["gpus"])
    (line,) = [line for line in result.err.splitlines() if "rank 0" in line]
    assert line.endswith("node 0 GPU 0 to node 2 GPU 3: rank 0 to 11, engine 0 to 11")
    split = ("asynchronous.mode=async", "episodes.lockstep=false", "trainer.num_ranks=5")
    result = vlrl(*given, *split, "--nodes", 2, "--gpus-per-node", 4, "--json")
    lines = [line.split("  ")[-1] for line in result.err.splitlines() if " GPU " in line and "node" in line]
    assert lines == ["node 0 GPU 0 to node 1 GPU 0: rank 0 to 4", "node 1 GPU 1 to 3: engine 0 to 2"]
    assert result.json["placement"] == "split"


def test_the_lines_in_the_docs_are_those_of_their_command(vlrl: Any) -> None:
    page = (CONFIG.parents[1] / "docs" / "memory.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    vlrl plan configs/(\S+) (.*)$", page, re.MULTILINE)
    shown = re.findall(r"^    (colocated: .*|    .* GPU 0 to 7: .*|host memory, .*)$", page, re.MULTILINE)
    printed = vlrl("plan", CONFIG.parent / command[0], *command[1].split()).out.splitlines()
    assert len(shown) == 3
    assert {*shown} <= {*printed}


def test_host_memory_is_held_against_what_is_given(vlrl: Any, config_only: Path) -> None:
    given = ("plan", CONFIG, f"model.path={config_only}", "--memory-gib", 80, "--gpus-per-node", 1, "--json")
    assert vlrl(*given).json["host_memory_bytes"] is None
    large = vlrl(*given, "--host-memory-gib", 64)
    assert large.code == 0, large.err
    assert "of 64.00 GiB" in large.err
    small = vlrl(*given, "--host-memory-gib", 4)
    assert small.code == 1
    assert "GiB of host memory does not fit in the 4.00 GiB of a node" in small.err


def test_a_steps_parts_are_told_and_the_longest_is_named(vlrl: Any, config_only: Path) -> None:
    given = (
        "plan",
        CONFIG,
        f"model.path={config_only}",
        "trainer.num_ranks=null",
        "--memory-gib",
        80,
        "--json",
    )
    one, many = (
        vlrl(*given, "--nodes", nodes, "--gpus-per-node", 8, f"rollout.prompts_per_step={64 * nodes}")
        for nodes in (1, 8)
    )
    parts = one.json["step"]
    assert parts["total"] == pytest.approx(sum(parts[name] for name in PARTS))
    assert parts["bottleneck"] == max(PARTS, key=lambda name: parts[name])
    for name in PARTS:
        assert f"{name} " in one.err
    # As many questions a GPU: what GPUs do takes as long, what one process does takes eight times as long.
    later = many.json["step"]
    assert later["generation"] == pytest.approx(parts["generation"])
    assert later["driver"] == pytest.approx(8 * parts["driver"])
    assert f"limited by {later['bottleneck']}, " in many.err


def test_a_hub_model_is_planned_offline_and_says_what_was_tried(
    vlrl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The help's own example: no hub is asked, times are for people, and nothing fits 4 GiB."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    recipe = CONFIG.parent / "vlm_r1_rec.yaml"
    given = ("plan", recipe, "--device", "cuda", "--gpus-per-node", 8, "--teraflops", 10, "--json")
    result = vlrl(*given, "--memory-gib", 80)
    assert result.code == 0, result.err
    assert result.json["num_params"] == 3_754_622_976
    assert result.json["num_gpus"] == 8
    assert " h " in next(line for line in result.err.splitlines() if line.startswith("train:"))
    assert "disk: " in result.err
    assert result.json["disk_bytes"] > 2 * result.json["checkpoint_bytes"]
    small = vlrl(*given, "--memory-gib", 4)
    assert small.code == 1
    assert "nothing fits 4.00 GiB of what was tried" in small.err
    for change in ("lora.rank=32", "algorithm.kl_coef=0", "trainer.offload_optimizer=true"):
        assert change in small.err
        assert any(change in tried for tried in small.json["tried"])


@pytest.mark.parametrize("command", ["train", "sft"])
def test_training_that_cannot_fit_is_refused_before_engines_start(
    vlrl: Any, tiny_model: Path, command: str
) -> None:
    """A KV cache of 100 TiB, or 4,000 ranks on one host: Ray is never started for it."""
    where = (f"model.path={tiny_model}", "data.train.options.num_rows=16", "data.eval=[]", "run.dir=runs")
    large = "generator.cpu_kv_cache_gib=100000" if command == "train" else "trainer.num_ranks=4000"
    config = CONFIG if command == "train" else CONFIG.parent / "quickstart_sft.yaml"
    result = vlrl(command, config, *where, large, "--json")
    assert result.code == 1, result.err
    assert "predicted not to fit" in result.json["error"]
    assert "run.check_memory=warn" in result.json["error"]
    assert "starting engines" not in result.err
