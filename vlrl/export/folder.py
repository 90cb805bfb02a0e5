"""`vlrl export`: a run's model as a folder that transformers, vLLM and a hub take as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.export.card import write_card
from vlrl.export.provenance import EXPORT_FILE, provenance
from vlrl.export.source import find_weights
from vlrl.export.weights import copy_adapter, copy_merged
from vlrl.run.checkpoint import written_atomically

EXPORTS = "exports"
"""Folder in the current one for models that are exported without --out."""


def export_run(
    run_dir: Path,
    out: Path | None = None,
    *,
    checkpoint: str | None = None,
    as_adapter: bool = False,
    max_shard_gib: float = 5.0,
) -> dict[str, Any]:
    """Write a run's model into a folder of its own, whole or not at all.

    Args:
        run_dir: the run's.
        out: the folder, which is replaced if an export is there; None is exports/RUN-STEP.
        checkpoint: see `vlrl.export.source.find_weights`.
        as_adapter: the LoRA adapter alone; otherwise the whole weights, which contain it.
        max_shard_gib: size of a file of weights at most.

    Returns:
        `folder`, `name`, `step`, `base`, `files` with their bytes.

    Raises:
        ConfigError: if there is no such model or adapter, or `out` holds something else.
        CheckpointError: for a damaged checkpoint.
        ResourceError: if the disk is full.
    """
    weights = find_weights(run_dir, checkpoint)
    said = provenance(run_dir, weights)
    name = f"{Path(said['name']).name}-{weights.step}{'-adapter' if as_adapter else ''}"
    final = (out if out is not None else Path(EXPORTS) / name).absolute()
    if (
        final.exists()
        and not (final / EXPORT_FILE).is_file()
        and (not final.is_dir() or any(final.iterdir()))
    ):
        raise ConfigError(f"{final} is there and is no exported model; give another --out, or remove it")
    with written_atomically(final) as aside:
        if as_adapter:
            copy_adapter(weights.folder, aside, str(said["config"]["model"]["path"]))
        else:
            copy_merged(weights.folder, aside, round(max_shard_gib * 2**30))
        write_card(aside, run_dir, said, is_adapter=as_adapter, name=name)
        kind = "adapter" if as_adapter else "model"
        text = json.dumps({**said, "name": name, "kind": kind}, indent=1, ensure_ascii=False)
        (aside / EXPORT_FILE).write_text(text + "\n", encoding="utf-8")
    files = {
        str(path.relative_to(final)): path.stat().st_size
        for path in sorted(final.rglob("*"))
        if path.is_file()
    }
    return {"folder": str(final), "name": name, "step": weights.step, "base": said["base"], "files": files}
