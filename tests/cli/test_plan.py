"""`vlrl plan` says whether a run fits and what would make it fit, and loads nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

CONFIG = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


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


def test_a_gpu_that_is_not_here_must_be_described(vlrl: Any, config_only: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, which answers for itself")
    where = f"model.path={config_only}"
    result = vlrl("plan", CONFIG, where, "--device", "cuda", "--memory-gib", 80)
    assert result.code == 2
    assert "--teraflops" in result.err
    given = ("--device", "cuda", "--memory-gib", 80, "--teraflops", 400)
    assert vlrl("plan", CONFIG, where, *given).code == 0
    assert vlrl("plan", CONFIG, where, "--device", "tpu").code == 2


def test_a_hub_model_is_planned_offline_and_says_what_was_tried(
    vlrl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The help's own example: no hub is asked, times are for people, and nothing fits 4 GiB."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    recipe = CONFIG.parent / "vlm_r1_rec.yaml"
    given = ("plan", recipe, "--device", "cuda", "--teraflops", 10, "--json")
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
