"""Each requirement of a locked set that a machine does not meet is named, with what to do."""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from vlrl.machine.checks import (
    GIB,
    check_compiler,
    check_driver,
    check_python,
    check_space,
    check_system,
    check_toolkit,
)
from vlrl.machine.compiler import StubFailure
from vlrl.machine.locks import LockFacts, lock_facts
from vlrl.machine.nvidia import OLDEST_DRIVER

ROOT = Path(__file__).parent.parent.parent
CUDA, CPU = lock_facts("cuda"), lock_facts("cpu")


def test_it_needs_nothing_but_python() -> None:
    """tools/install.py imports the folder with the machine's own Python, which may be too old a one."""
    files = [ROOT / "vlrl/__init__.py", *(ROOT / "vlrl/machine").glob("*.py"), ROOT / "tools/install.py"]
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        lazy = file == ROOT / "vlrl/__init__.py"  # what it has in functions is imported when it is asked for
        nodes = tree.body if lazy else ast.walk(tree)
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
        foreign = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
        assert all(name.startswith("vlrl.machine") for name in foreign), f"{file.name}: {foreign}"


def test_the_facts_of_cuda_name_a_driver() -> None:
    assert int(CUDA.cuda.partition(".")[0]) in OLDEST_DRIVER
    assert CUDA.download_bytes > 3 * GIB and CUDA.unpacked_bytes > CUDA.download_bytes
    assert CPU.cuda == "" and (CPU.glibc, CPU.architecture) == ((2, 31), "x86_64")


@pytest.mark.parametrize("version", [(3, 11, 2), (3, 12, 3), (3, 13, 5)])
def test_a_python_of_the_locks(version: tuple[int, int, int]) -> None:
    assert check_python(version, CUDA).status == "ok"


@pytest.mark.parametrize("version", [(3, 10, 12), (3, 14, 0), (3, 1, 1)])
def test_another_python_is_refused(version: tuple[int, int, int], tmp_path: Path) -> None:
    check = check_python(version, CUDA, path=str(tmp_path))
    text = ".".join(map(str, version))
    assert check.status == "failed"
    assert check.found == f"{text}, but requirements/cuda.lock is resolved for 3.11, 3.12 and 3.13"
    assert check.remedy.startswith("install Python 3.13")
    (tmp_path / "python3.12").touch(0o755)
    assert (
        check_python(version, CUDA, path=str(tmp_path)).remedy == f"make install PYTHON={tmp_path}/python3.12"
    )


@pytest.mark.parametrize(
    ("libc", "architecture", "words"),
    [
        (
            ("glibc", "2.28"),
            "x86_64",
            "glibc 2.28, but requirements/cuda.lock has wheels for x86_64 and glibc 2.31",
        ),
        (("glibc", "2.4"), "x86_64", "glibc 2.4, but"),
        (("", ""), "x86_64", "no glibc, but"),  # Alpine's musl tells Python nothing
        (("musl", "1.2.5"), "x86_64", "musl 1.2.5, but"),
        (("glibc", "2.39"), "aarch64", "aarch64, but"),
    ],
)
def test_a_system_without_wheels(libc: tuple[str, str], architecture: str, words: str) -> None:
    check = check_system(libc, architecture, CUDA)
    assert check.status == "failed" and check.remedy
    assert check.found.startswith(words)


def test_a_system_with_wheels() -> None:
    assert check_system(("glibc", "2.31"), "x86_64", CUDA).status == "ok"
    assert check_system(("glibc", "2.36"), "x86_64", CPU).found == "x86_64, glibc 2.36"


@pytest.mark.parametrize(
    ("driver", "supported", "cuda", "status", "words"),
    [
        ("580.65.06", (13, 0), "13.0", "ok", "580.65.06, runs CUDA 13.0"),
        ("595.10", (0, 0), "13.0", "ok", "runs CUDA 13.0"),
        ("550.163.01", (12, 4), "12.9", "ok", "runs CUDA 12.9"),
        (
            "550.163.01",
            (12, 4),
            "13.0",
            "failed",
            "550.163.01, but torch is built for CUDA 13.0, which needs 580",
        ),
        ("550.163.01", (0, 0), "13.0", "failed", "needs 580 or later"),
        (
            "535.230.02",
            (13, 1),
            "13.0",
            "ok",
            "its library is of CUDA 13.1",
        ),  # NVIDIA's compatibility package
        ("", (13, 0), "13.0", "ok", "version unknown, its library is of CUDA 13.0"),
        ("", (0, 0), "13.0", "warning", "version unknown"),
        ("470.256.02", (11, 4), "12.9", "failed", "needs 525 or later"),
    ],
)
def test_the_driver(driver: str, supported: tuple[int, int], cuda: str, status: str, words: str) -> None:
    check = check_driver(driver, supported, cuda)
    assert check.status == status
    assert words in check.found
    if status == "failed":
        assert "--lock cpu" in check.remedy and "install driver" in check.remedy


def test_a_compiler_is_needed_on_a_gpu_only() -> None:
    assert check_compiler(None, on_gpu=True).status == "ok"
    failure = StubFailure("there is no gcc or clang in PATH", ("gcc", "libc6-dev", "python3.12-dev"))
    check = check_compiler(failure, on_gpu=True)
    assert check.status == "failed" and "engines cannot start" in check.found
    assert check.remedy == "apt-get install gcc libc6-dev python3.12-dev"
    assert check_compiler(failure, on_gpu=False).status == "warning"


def test_the_toolkit() -> None:
    assert check_toolkit("", "13.0").status == "ok"
    check = check_toolkit("there is no nvcc", "13.0")
    assert check.status == "warning"
    assert "cuda-toolkit-13-0" in check.remedy and "trainer.offload_dir" in check.remedy


Disks = Callable[[Mapping[str, float]], None]


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disks:
    """Folders below tmp_path, each a disk with so many GiB free."""
    real = Path.stat

    def make(free_gib: Mapping[str, float]) -> None:
        for name in free_gib:
            (tmp_path / name).mkdir(exist_ok=True)

        def disk_of(path: Path) -> str:
            parts = path.relative_to(tmp_path).parts if path.is_relative_to(tmp_path) else ()
            return parts[0] if parts and parts[0] in free_gib else ""

        def stat(self: Path, **options: bool) -> object:
            found = real(self, **options)
            number = list(free_gib).index(disk) if (disk := disk_of(self)) else -1
            return SimpleNamespace(st_dev=number, st_mode=found.st_mode)

        monkeypatch.setattr(Path, "stat", stat)
        usage = lambda path: SimpleNamespace(free=int(free_gib[disk_of(path)] * GIB))  # noqa: E731
        monkeypatch.setattr(shutil, "disk_usage", usage)

    return make


def facts(download_gib: float, unpacked_gib: float) -> LockFacts:
    return CUDA._replace(download_bytes=int(download_gib * GIB), unpacked_bytes=int(unpacked_gib * GIB))


def test_what_is_needed_is_summed_up_disk_by_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disks: Disks
) -> None:
    """10 GiB unpacked take 12 with their bytecode; pip has the 4 GiB of wheels in its cache and in TMPDIR."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "memory"))
    home, needs = {"PIP_CACHE_DIR": str(tmp_path / "home/.cache/pip")}, facts(4, 10)
    venv = tmp_path / "home" / "vlrl" / ".venv"

    disks({"home": 16.5, "memory": 4.5})
    assert check_space(venv, needs, home).status == "ok"
    disks({"home": 15.5, "memory": 4.5})
    check = check_space(venv, needs, home)
    assert check.status == "failed"
    assert check.found == (
        f"15.5 GiB free in {tmp_path}/home, but installing requirements/cuda.lock takes 16.0 GiB there"
    )
    disks({"home": 16.5, "memory": 3.5})
    assert f"3.5 GiB free in {tmp_path}/memory" in check_space(venv, needs, home).found
    disks({"home": 12.5, "memory": 4.5})
    assert check_space(venv, needs, {**home, "PIP_NO_CACHE_DIR": "1"}).status == "ok"
