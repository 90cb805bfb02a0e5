"""Stage 1: what this machine is, and the rates that later stages are measured against."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any

import stage
import torch
from peak import nominal_rate

from vlrl.plan.duration import matmul_rate
from vlrl.plan.machine import host_memory

GIB = 2**30
MIN_REACHED = 0.5
"""Share of the data sheet's bfloat16 rate below which something holds the GPU back."""
MAX_ERROR = 1e-2
"""Of a bfloat16 product, relative to its largest value."""


def measure(options: stage.Options) -> stage.Verdict:
    stage.require_gpus(1, options)
    device = options.device
    rate = matmul_rate(device, "bfloat16")
    error = product_error(device)
    size = GIB // 4 if options.tiny else 2 * GIB
    gpu = gpu_facts() if device == "cuda" else {}
    figures: dict[str, Any] = {
        **gpu,
        "host": host_facts(),
        "bf16_tflop_per_s": rate / 1e12,
        "bf16_product_error": error,
        "copy_gb_per_s": copy_rate(size, device, device, pinned=False) / 1e9,
    }
    if device == "cuda":
        for name, pinned in (("pageable", False), ("pinned", True)):
            figures[f"{name}_to_gpu_gb_per_s"] = copy_rate(size, "cpu", device, pinned=pinned) / 1e9
            figures[f"{name}_to_host_gb_per_s"] = copy_rate(size, device, "cpu", pinned=pinned) / 1e9
    faults = []
    peak = nominal_rate(gpu["gpus"][0]["name"]) if gpu else None
    if peak is not None:
        figures["share_of_nominal"] = rate / peak
        if rate < MIN_REACHED * peak:
            faults.append(
                f"a bfloat16 product reaches {rate / peak:.0%} of the data sheet's {peak / 1e12:.0f} TFLOP/s"
            )
    if not error <= MAX_ERROR:
        faults.append(f"a bfloat16 product is off by {error:.1e}")
    name = gpu["gpus"][0]["name"] if gpu else f"CPU, {os.cpu_count()} cores"
    count = f"{len(gpu['gpus'])} x " if gpu else ""
    words = (
        f"{count}{name}: {rate / 1e12:.3g} TFLOP/s in bfloat16, {figures['copy_gb_per_s']:.3g} GB/s of memory"
    )
    return stage.Verdict.of(words, faults, figures)


def product_error(device: str) -> float:
    """Largest error of a bfloat16 product against float64, as a share of its largest value."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(256, 256, generator=generator).bfloat16() for _ in range(2))
    exact = left.double() @ right.double()
    found = (left.to(device) @ right.to(device)).double().cpu()
    return float((found - exact).abs().max() / exact.abs().max())


def copy_rate(num_bytes: int, source: str, target: str, *, pinned: bool) -> float:
    """Bytes/s of a copy, the best of five; within a device, read and written bytes count."""
    places = [
        torch.ones(num_bytes, dtype=torch.uint8, device=device, pin_memory=pinned and device == "cpu")
        for device in (source, target)
    ]
    best = float("inf")
    for _ in range(6):
        begin = time.perf_counter()
        places[1].copy_(places[0])
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return num_bytes * (2 if source == target else 1) / best


def gpu_facts() -> dict[str, Any]:
    """The GPUs as torch and the driver name them."""
    properties = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    answer = subprocess.run(smi, capture_output=True, text=True) if shutil.which(smi[0]) else None
    return {
        "gpus": [
            {"name": p.name, "memory_gib": p.total_memory / GIB, "capability": f"{p.major}.{p.minor}"}
            for p in properties
        ],
        "driver": answer.stdout.split()[0] if answer and answer.stdout.strip() else None,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }


def host_facts() -> dict[str, Any]:
    """What else a run leans on: cores, memory, shared memory, and what Triton compiles with."""
    shared = Path("/dev/shm")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": host_memory() / GIB,
        "shared_memory_gib": shutil.disk_usage(shared).total / GIB if shared.exists() else 0.0,
        "disk_free_gib": shutil.disk_usage(".").free / GIB,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "compiler": next((path for name in ("gcc", "cc", "clang") if (path := shutil.which(name))), None),
        "nvcc": shutil.which("nvcc"),
        "python_headers": (Path(sysconfig.get_paths()["include"]) / "Python.h").exists(),
    }


if __name__ == "__main__":
    stage.run(measure)
