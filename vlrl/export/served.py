"""A model that is to be served, and the config by which it answered in its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.experiments.registry import is_run
from vlrl.export.provenance import SERVED_SECTIONS, read_provenance, run_config
from vlrl.export.source import find_weights


def served_config(model: str) -> tuple[str, dict[str, Any]]:
    """(name in the API, sections of the config) of an exported folder, a run's folder or any other model.

    Raises:
        ConfigError: for an exported adapter, or a run without a model.
        CheckpointError: for a run whose last checkpoint is damaged.
    """
    folder, tree = Path(model), {}
    name = model if not folder.is_dir() else folder.resolve().name
    path = model if not folder.is_dir() else str(folder.resolve())
    if (said := read_provenance(folder)) is not None:
        if said.get("kind") == "adapter":
            path = said["config"]["model"]["path"]
            other = f", or give vLLM its base: vllm serve {path} --enable-lora --lora-modules {name}={model}"
            if (said["config"].get("lora") or {}).get("dora"):
                other = "; vLLM's LoRA does not know DoRA"
            raise ConfigError(f"{model} is an adapter alone; export with --merge-lora{other}")
        tree = said["config"]
    elif folder.is_dir() and is_run(folder):
        tree, path = run_config(folder), str(find_weights(folder).folder.resolve())
    found = {section: dict(tree[section]) for section in SERVED_SECTIONS if tree.get(section)}
    found["model"] = {**found.get("model", {}), "path": path, "freeze": []}
    longest = int(found.get("generator", {}).get("max_model_len", 4096))
    found["trainer"] = {
        "max_tokens_per_micro_batch": max(4096, longest)
    }  # a config's parts must fit together
    return name, found
