"""tools/install.py refuses a machine before it downloads anything, and says what to do."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from vlrl.machine.compiler import StubFailure

FILE = Path(__file__).parent.parent.parent / "tools" / "install.py"
NO_HEADERS = StubFailure("there is no Python.h", ("gcc", "libc6-dev", "python3.11-dev"))

Install = Callable[..., str]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/install.py on a machine with a GPU, a new driver, a compiler and a full disk."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = load()
    monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(module, "driver_version", lambda: "580.65.06")
    monkeypatch.setattr(module, "driver_cuda", lambda: (13, 0))
    monkeypatch.setattr(module, "compile_stub", lambda stub: None)
    monkeypatch.setattr(module, "missing_debian_packages", lambda kind: [])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**30))
    return module


@pytest.fixture
def refused(program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Run it; what it says at its end, after which there must be no environment."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["install.py", "--venv", str(tmp_path / "venv"), *arguments])
        with pytest.raises(SystemExit) as end:
            program.main()
        assert not (tmp_path / "venv").exists()
        return str(end.value)

    return run


def test_a_python_without_a_lock(refused: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0, "final", 0))
    for kind in ("cuda", "cpu", "trl", "ecosystem"):
        message = refused("--lock", kind)
        assert f"Python: 3.14.0, but requirements/{kind}.lock is resolved for 3.11, 3.12 and 3.13" in message
        assert "PYTHON=" in message


def test_an_old_driver(program: ModuleType, refused: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "driver_version", lambda: "550.163.01")
    monkeypatch.setattr(program, "driver_cuda", lambda: (12, 4))
    message = refused()
    assert "NVIDIA driver: 550.163.01, but torch is built for CUDA 13.0, which needs 580 or later" in message
    assert "→ install driver 580" in message
    assert "packages: 1.0 GiB free" in refused("--lock", "cpu"), "the CPU set needs no driver"
    monkeypatch.setattr(program, "has_gpu", lambda: False)
    assert "packages: 1.0 GiB free" in refused("--lock", "cuda"), "an image is built where there is no GPU"


def test_an_old_system(program: ModuleType, refused: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.platform, "libc_ver", lambda: ("glibc", "2.28"))
    assert "system: glibc 2.28, but requirements/cuda.lock has wheels for" in refused()


def test_a_compiler_is_installed_if_need_be(
    program: ModuleType, refused: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    monkeypatch.setattr(program, "compile_stub", lambda stub: None if installed else NO_HEADERS)
    monkeypatch.setattr(program, "install_debian_packages", installed.extend)
    assert "packages: 1.0 GiB free" in refused(), "with the compiler it got as far as the disk"
    assert installed == ["gcc", "libc6-dev", "python3.11-dev"]
    monkeypatch.setattr(program, "compile_stub", lambda stub: NO_HEADERS)
    message = refused()
    assert "C compiler: there is no Python.h: Triton cannot compile, so engines cannot start" in message
    assert "→ apt-get install gcc libc6-dev python3.11-dev" in message


def test_what_apt_may_not_install_is_said(
    program: ModuleType, refused: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "compile_stub", lambda stub: NO_HEADERS)
    monkeypatch.setattr(program.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sudo" else f"/usr/bin/{name}")
    assert "as root: apt-get install gcc libc6-dev python3.11-dev" in refused()


def test_a_full_disk(refused: Install) -> None:
    message = refused()
    assert "packages: 1.0 GiB free in" in message
    assert "installing requirements/cuda.lock takes" in message


def test_all_that_is_wrong_is_said_at_once(
    program: ModuleType, refused: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program.platform, "libc_ver", lambda: ("glibc", "2.28"))
    monkeypatch.setattr(program, "driver_version", lambda: "470.256.02")
    monkeypatch.setattr(program, "driver_cuda", lambda: (11, 4))
    message = refused()
    assert "system: glibc 2.28" in message and "NVIDIA driver: 470.256.02" in message
