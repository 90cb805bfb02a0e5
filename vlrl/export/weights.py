"""The files of an exported model: its weights in shards with an index, or its adapter, and its processor."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlrl.config.learning.policies import ADAPTER_FOLDER
from vlrl.errors import ConfigError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
WEIGHT_PATTERNS = ("*.safetensors", "*.safetensors.index.json", "*.bin")


def adapters_of(folder: Path) -> dict[str, Path]:
    """Folders of a model's adapters by policy; "" is the only one of a run without policies."""
    root = folder / ADAPTER_FOLDER
    if (root / ADAPTER_CONFIG).is_file():
        return {"": root}
    return {path.parent.name: path.parent for path in sorted(root.glob(f"*/{ADAPTER_CONFIG}"))}


def copy_merged(folder: Path, out: Path, max_shard_bytes: int) -> None:
    """Copy a model without its adapters; its weights contain them.

    Args:
        folder: of the model, in Hugging Face format.
        out: that exists.
        max_shard_bytes: larger files of weights are written again in shards of at most this size.

    Raises:
        ConfigError: for a model of several policies, whose weights contain no adapter.
    """
    if policies := [name for name in adapters_of(folder) if name]:
        raise ConfigError(
            f"{folder} has an adapter for each of the policies {', '.join(policies)}, and no one model; "
            "export them with --adapter"
        )
    for path in sorted(folder.iterdir()):
        if path.is_file() and not _is_weights(path):
            shutil.copyfile(path, out / path.name)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ConfigError(f"{folder} has no *.safetensors; export a model of a run")
    if all(path.stat().st_size <= max_shard_bytes for path in files):
        for path in [*files, *folder.glob("*.safetensors.index.json")]:
            shutil.copyfile(path, out / path.name)
    else:
        _write_shards(files, out, max_shard_bytes)


def copy_adapter(folder: Path, out: Path, base: str) -> None:
    """Copy a model's adapter, or one folder for each policy, and the processor's files.

    Args:
        folder: of the model.
        out: that exists.
        base: the model that the adapter is put on, as peft is to load it.

    Raises:
        ConfigError: if the model has no adapter.
    """
    adapters = adapters_of(folder)
    if not adapters:
        raise ConfigError(f"{folder} has no adapter: it was trained without `lora`; leave out --adapter")
    for policy, source in adapters.items():
        shutil.copytree(source, out / policy, dirs_exist_ok=True)
        path = out / policy / ADAPTER_CONFIG
        said = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(
            json.dumps({**said, "base_model_name_or_path": base}, indent=1) + "\n", encoding="utf-8"
        )
    model_only = ("config.json", "generation_config.json")
    for path in sorted(folder.iterdir()):
        if path.is_file() and not _is_weights(path) and path.name not in model_only:
            shutil.copyfile(path, out / path.name)


def _is_weights(path: Path) -> bool:
    return any(path.match(pattern) for pattern in WEIGHT_PATTERNS)


def _write_shards(files: Sequence[Path], out: Path, max_shard_bytes: int) -> None:
    """Write tensors again, in shards of a bounded size; the files are mapped, so memory holds one shard."""
    from huggingface_hub import split_torch_state_dict_into_shards
    from safetensors.torch import load_file, save_file

    tensors: dict[str, Any] = {}
    for path in files:
        tensors.update(load_file(path))
    plan = split_torch_state_dict_into_shards(tensors, max_shard_size=max_shard_bytes)
    for name, keys in plan.filename_to_tensors.items():
        save_file({key: tensors[key] for key in keys}, out / name, metadata={"format": "pt"})
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        (out / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
