"""Joining the group of ranks that split a model."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch


def join_ranks(timeout_s: float) -> torch.device:
    """Join the group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT name; the device to train on."""
    with _hidden("mlflow"):  # which DeepSpeed's autotuner imports where it is installed, in two seconds
        import deepspeed
    with _uncompiled(), suppress(ImportError):  # which ZeRO-3 imports, to ask whether the optimizer is Muon
        importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        # Unless told otherwise, DeepSpeed compiles a shared-memory all-reduce for a minute; gloo has one.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    backend, timeout = "nccl" if on_gpu else "gloo", timedelta(seconds=timeout_s)
    deepspeed.init_distributed(dist_backend=backend, timeout=timeout, verbose=False)
    return torch.device("cuda", 0) if on_gpu else torch.device("cpu")


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Have importing a package fail as if it were not installed, unless it has been imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Have torch.compile leave functions as they are: for those nobody calls it would import its compiler."""
    before = os.environ.get("TORCHDYNAMO_DISABLE")
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TORCHDYNAMO_DISABLE"]
        else:
            os.environ["TORCHDYNAMO_DISABLE"] = before
