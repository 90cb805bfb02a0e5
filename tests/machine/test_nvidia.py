"""What there is of NVIDIA's, on machines that are played by files and small programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from torch.utils.cpp_extension import _find_cuda_home

from vlrl.machine.nvidia import (
    GpuReading,
    driver_cuda,
    driver_version,
    gpu_readings,
    gpus,
    has_gpu,
    toolkit_problem,
)

CLOSED = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
OPEN = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)
"""


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is PATH; nvidia-smi in it answers by the last word of its query."""
    monkeypatch.setenv("PATH", str(tmp_path))
    script = """#!/bin/sh
case "$1" in
  --query-gpu=driver_version) echo 581.15 ;;
  *) echo "NVIDIA L4, 23034 MiB, 581.15" ;;
esac
"""
    (tmp_path / "nvidia-smi").write_text(script)
    (tmp_path / "nvidia-smi").chmod(0o755)
    return tmp_path


def test_the_driver_tells_its_version_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "version"
    for text, version in ((CLOSED, "550.163.01"), (OPEN, "580.65.06")):
        file.write_text(text)
        assert driver_version(file) == version


def test_or_through_nvidia_smi(nvidia_smi: Path) -> None:
    """Linux in Windows has no such file."""
    assert driver_version(nvidia_smi / "version") == "581.15"
    assert gpus() == ["NVIDIA L4, 23034 MiB, 581.15"]
    assert has_gpu(nvidia_smi / "nvidia0")
    (nvidia_smi / "nvidia-smi").write_text("#!/bin/sh\necho 'Failed to initialize NVML' >&2; exit 9\n")
    assert driver_version(nvidia_smi / "version") == ""
    assert not has_gpu(nvidia_smi / "nvidia0")


def test_readings_of_gpus(nvidia_smi: Path) -> None:
    """A GPU that is divided does not say how busy it is."""
    lines = (
        "0, GPU-5c2d1f7e-0001, 20388 MiB, 81552 MiB, 37 %",
        "1, GPU-5c2d1f7e-0002, 0 MiB, 81552 MiB, [N/A]",
        "2, GPU-5c2d1f7e-0003, [N/A], [N/A], [N/A]",
    )
    (nvidia_smi / "nvidia-smi").write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    assert gpu_readings() == [
        GpuReading("0", "GPU-5c2d1f7e-0001", 0.25, 0.37),
        GpuReading("1", "GPU-5c2d1f7e-0002", 0.0, None),
        GpuReading("2", "GPU-5c2d1f7e-0003", None, None),
    ]


def test_nothing_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert driver_version(tmp_path / "version") == ""
    assert not has_gpu(tmp_path / "nvidia0")
    (tmp_path / "nvidia0").touch()
    assert gpu_readings() == []
    assert has_gpu(tmp_path / "nvidia0"), "in a container without nvidia-smi"


def test_the_newest_cuda_of_the_drivers_library(tmp_path: Path) -> None:
    source, library = tmp_path / "cuda.c", tmp_path / "libcuda.so.1"
    source.write_text("int cuDriverGetVersion(int *version) { *version = 13020; return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert driver_cuda(str(library)) == (13, 2)
    assert driver_cuda(str(tmp_path / "libcuda.so.2")) == (0, 0)
    source.write_text("int nothing(void) { return 0; }\n")
    other = tmp_path / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", other, source], check=True)
    assert driver_cuda(str(other)) == (0, 0)


def test_the_toolkit_is_where_torch_looks(tmp_path: Path) -> None:
    """Torch asks CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda, in that order, and believes the first."""
    empty, toolkit, default = tmp_path / "empty", tmp_path / "toolkit", tmp_path / "default"
    (toolkit / "bin").mkdir(parents=True)
    empty.mkdir()
    assert "there is no " in toolkit_problem({"PATH": str(empty)}, default)
    assert toolkit_problem({"CUDA_HOME": str(toolkit)}, default) == f"CUDA_HOME={toolkit} has no bin/nvcc"
    (toolkit / "bin" / "nvcc").touch(0o755)
    assert toolkit_problem({"CUDA_HOME": str(toolkit)}, default) == ""
    assert toolkit_problem({"CUDA_PATH": str(toolkit)}, default) == ""
    assert toolkit_problem({"PATH": str(toolkit / "bin")}, default) == ""
    assert toolkit_problem({"CUDA_HOME": str(empty), "PATH": str(toolkit / "bin")}, default) != ""
    shutil.copytree(toolkit, default)
    assert toolkit_problem({"PATH": str(empty)}, default) == ""


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH", "PATH"])
def test_torch_finds_it_there_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch(0o755)
    for other in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "bin" if name == "PATH" else tmp_path))
    assert _find_cuda_home() == str(tmp_path)
    assert toolkit_problem(os.environ) == ""
