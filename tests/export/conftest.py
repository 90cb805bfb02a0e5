"""A run's folder with a model in it, and one with an adapter beside its merged weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from digit_run import write_run
from tiny_families import build_qwen2_5_vl

from vlrl.config.memory import LoraConfig
from vlrl.model.lora import add_adapters, save_adapters

SCALE = 2.0


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 steps whose model, checkpoint and parent are there; read only."""
    root = tmp_path_factory.mktemp("runs")
    base = build_qwen2_5_vl(root / "base")
    (base / "README.md").write_text("---\nlicense: apache-2.0\nlicense_name: mine\n---\n# A base\n")
    first = root / "first"
    write_run(first)
    _begins_with(first, base)
    second = root / "second"
    write_run(second)
    (first / "model").symlink_to(base)
    _begins_with(second, first / "model", parent=first)
    shutil.copytree(base, second / "model")
    shutil.copytree(base, second / "checkpoints" / "step_000040" / "model")
    for step, accuracy in ((0, 0.25), (40, 1.0), (60, 0.75)):
        with (second / "heldout.jsonl").open("a") as file:
            for index in range(4):
                line = {"step": step, "how": "greedy", "sample_id": str(index), "reward": 0.0}
                file.write(json.dumps(line | {"accuracy": float(index < 4 * accuracy)}) + "\n")
    return second


@pytest.fixture(scope="session")
def lora_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(run with an adapter, its base), the weights in RUN/model merged as a run does."""
    from transformers import AutoModelForImageTextToText

    root = tmp_path_factory.mktemp("lora")
    base = build_qwen2_5_vl(root / "base")
    run = root / "run"
    write_run(run)
    _begins_with(run, base)
    shutil.copytree(base, run / "model")
    model = AutoModelForImageTextToText.from_pretrained(base)
    options = LoraConfig(rank=2, alpha=2 * SCALE, targets=["*.layers.*.self_attn.q_proj.weight"])
    add_adapters(model, options, seed=0)
    adapters = {}
    merged = AutoModelForImageTextToText.from_pretrained(base)
    weights = dict(merged.named_parameters())
    for name, parameter in model.named_parameters():
        if ".lora_B." in name:
            parameter.data = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name)))
            half_a = model.get_parameter(name.replace(".lora_B.", ".lora_A."))
            weights[name.partition(".lora_B.")[0] + ".weight"].data += SCALE * (parameter @ half_a).detach()
        if ".lora_" in name:
            adapters[name.replace(".default.", ".")] = parameter.detach()
    merged.save_pretrained(run / "model")
    save_adapters(model, adapters, run / "model" / "adapter")
    return run, base


def _begins_with(run: Path, model: Path, parent: Path | None = None) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["model"]["path"] = str(model)
    (run / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    said = {"path": str(model), "fingerprint": "0123456789abcdef"} | (
        {"parent_run": str(parent)} if parent else {}
    )
    data = [{"split": "train", "name": "digit_sum", "num_rows": 8, "fingerprint": "feed"}]
    entry = {"started": "2026-11-26T00:00:00+00:00", "first_step": 0, "seed": 3, "model": said, "data": data}
    (run / "lineage.json").write_text(json.dumps([entry | {"code": {"vlrl": "0.1.0", "commit": "c" * 40}}]))
