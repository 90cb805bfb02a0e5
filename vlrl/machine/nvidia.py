"""NVIDIA's driver, its GPUs, and the CUDA toolkit."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PROBE_TIMEOUT_S = 60.0
DEVICE = Path("/dev/nvidia0")
VERSION_FILE = Path("/proc/driver/nvidia/version")
TOOLKIT = Path("/usr/local/cuda")

OLDEST_DRIVER: Mapping[int, int] = {12: 525, 13: 580}
"""Major version of CUDA → the oldest driver that runs programs built for it (NVIDIA's release notes)."""


def has_gpu(device: Path = DEVICE) -> bool:
    """Whether there is an NVIDIA GPU, with its driver."""
    return device.exists() or bool(gpus())


def gpus() -> list[str]:
    """GPUs that the driver shows, each as "name, memory, driver"; empty without a driver or nvidia-smi."""
    return nvidia_smi("name,memory.total,driver_version")


class GpuReading(NamedTuple):
    """A GPU at this moment.

    Attributes:
        number: by which the driver knows it.
        uuid: of the device, on every machine another.
        memory_used: share of its memory; None if it has none of its own.
        utilization: share of the last second in which it computed; None if it does not say.
    """

    number: str
    uuid: str
    memory_used: float | None
    utilization: float | None


def gpu_readings() -> list[GpuReading]:
    """Readings of this machine's GPUs; none without a driver or nvidia-smi."""
    readings = []
    for line in nvidia_smi("index,uuid,memory.used,memory.total,utilization.gpu"):
        number, uuid, used, total, busy = (field.strip() for field in line.split(","))
        used_mib, total_mib, percent = (_number(field) for field in (used, total, busy))
        share = used_mib / total_mib if used_mib is not None and total_mib else None
        readings.append(GpuReading(number, uuid, share, None if percent is None else percent / 100))
    return readings


def gpu_uuids() -> dict[str, str]:
    """UUIDs of this machine's GPUs by the driver's numbers; none without a driver or nvidia-smi."""
    return {reading.number: reading.uuid for reading in gpu_readings()}


def _number(field: str) -> float | None:
    """The number of "81559 MiB" or "37 %"; None of "[N/A]"."""
    try:
        return float(field.split()[0])
    except (ValueError, IndexError):
        return None


def driver_version(file: Path = VERSION_FILE) -> str:
    """Version of the loaded driver, such as "580.65.06"; empty if it is not known."""
    if file.is_file():
        # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul …", also without "x86_64"
        found = re.search(r"\b\d{3,}\.\d[\d.]*\b", file.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[0]
    answers = nvidia_smi("driver_version")
    return answers[0] if answers else ""


def driver_cuda(library: str = "libcuda.so.1") -> tuple[int, int]:
    """Newest CUDA that the driver's library runs; (0, 0) if it cannot be loaded.

    NVIDIA's compatibility package is such a library: with it an older driver runs a newer CUDA.
    """
    version = ctypes.c_int()
    try:
        ctypes.CDLL(library).cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0, 0
    return version.value // 1000, version.value % 1000 // 10


def toolkit_problem(environment: Mapping[str, str], default: Path = TOOLKIT) -> str:
    """Why torch finds no CUDA toolkit that compiles, looking where it looks; "" if it finds one."""
    home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH")
    if home:
        where = f"CUDA_HOME={home}"
    elif nvcc := shutil.which("nvcc", path=environment.get("PATH")):
        home = where = str(Path(nvcc).parent.parent)
    elif default.exists():
        home = where = str(default)
    else:
        return f"CUDA_HOME is not set, nvcc is not in PATH, and there is no {default}"
    if not os.access(Path(home) / "bin" / "nvcc", os.X_OK):
        return f"{where} has no bin/nvcc"
    return ""


def nvidia_smi(query: str) -> list[str]:
    """Answers of nvidia-smi to fields of its --query-gpu, one line a GPU; none without it or without GPUs."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return child.stdout.strip().splitlines() if child.returncode == 0 else []
