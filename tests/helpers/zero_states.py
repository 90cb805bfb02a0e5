"""Whole weights and moments out of a checkpoint of ZeRO-3 ranks, by DeepSpeed's own conversion."""

from __future__ import annotations

import io
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

KINDS = ("fp32", "exp_avg", "exp_avg_sq")


def whole_states(checkpoint: Path, scratch: Path) -> dict[str, dict[str, torch.Tensor]]:
    """The master weights and both moments of every trained parameter of a vlrl checkpoint.

    `deepspeed.checkpoint.ds_to_universal` puts the slices together, code that vlrl does not use.
    """
    from deepspeed.checkpoint import ds_to_universal

    options = Namespace(
        input_folder=str(checkpoint / "state" / "zero"),
        output_folder=str(scratch),
        num_extract_workers=1,
        num_merge_workers=1,
        keep_temp_folder=False,
        strict=True,
        inject_missing_state=False,
    )
    with redirect_stdout(io.StringIO()):
        ds_to_universal.main(options)
    folders = sorted(file.parent for file in scratch.rglob("exp_avg.pt"))
    return {folder.name: {kind: _tensor(folder / f"{kind}.pt") for kind in KINDS} for folder in folders}


def _tensor(file: Path) -> torch.Tensor:
    found: Any = torch.load(file, weights_only=False)
    return found["param"] if isinstance(found, dict) else found
