"""What a locked set of packages needs, compared with this machine.

tools/install.py asks before it downloads the set, and `vlrl doctor` when it is asked.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vlrl.machine.compiler import StubFailure
from vlrl.machine.locks import LockFacts
from vlrl.machine.nvidia import OLDEST_DRIVER
from vlrl.machine.result import CheckResult

GIB = 2**30
WITH_BYTECODE = 1.2
"""Size of installed packages over that of their wheels' files; 1.18 was measured of cpu.lock."""
CPU_SET = "take the CPU set: python3 tools/install.py --lock cpu"


def check_python(found: Sequence[int], facts: LockFacts, path: str | None = None) -> CheckResult:
    """The interpreter is one that the locked set is resolved for.

    Args:
        found: `sys.version_info`, or its first numbers.
        facts: of the locked set.
        path: where another interpreter is looked for; None is PATH.
    """
    text = ".".join(str(part) for part in found[:3])
    if ".".join(str(part) for part in found[:2]) in facts.pythons:
        return CheckResult("Python", "ok", f"{text} ({sys.executable})")
    versions = f"{', '.join(facts.pythons[:-1])} and {facts.pythons[-1]}"
    found_text = f"{text}, but requirements/{facts.kind}.lock is resolved for {versions}"
    here = (shutil.which(f"python{version}", path=path) for version in reversed(facts.pythons))
    if other := next(filter(None, here), None):
        return CheckResult("Python", "failed", found_text, f"make install PYTHON={other}")
    newest = facts.pythons[-1]
    remedy = (
        f"install Python {newest} (`uv python install {newest}`), then: make install PYTHON=python{newest}"
    )
    return CheckResult("Python", "failed", found_text, remedy)


def check_system(libc: tuple[str, str], architecture: str, facts: LockFacts) -> CheckResult:
    """The wheels run with this C library and on this processor.

    Args:
        libc: of `platform.libc_ver()`.
        architecture: of `platform.machine()`.
        facts: of the locked set.
    """
    name, version = libc
    found, oldest = f"{name or 'no glibc'} {version}".strip(), ".".join(str(part) for part in facts.glibc)
    wheels = f"requirements/{facts.kind}.lock has wheels for {facts.architecture} and glibc {oldest} or later"
    if architecture != facts.architecture:
        return CheckResult("system", "failed", f"{architecture}, but {wheels}", "use a machine of that kind")
    if name != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < facts.glibc:
        remedy = "use a newer system or a container of one (Debian 12, Ubuntu 22.04 or later)"
        return CheckResult("system", "failed", f"{found}, but {wheels}", remedy)
    return CheckResult("system", "ok", f"{architecture}, {found}")


def check_driver(driver: str, supported: tuple[int, int], cuda: str) -> CheckResult:
    """The driver runs programs that are built for a version of CUDA.

    Args:
        driver: its version; empty if it is not known.
        supported: newest CUDA of the driver's library, see `driver_cuda`.
        cuda: what torch is built for, such as "13.0".
    """
    major = int(cuda.partition(".")[0])
    oldest = OLDEST_DRIVER.get(major, 0)
    if driver and int(driver.partition(".")[0]) >= oldest:
        return CheckResult("NVIDIA driver", "ok", f"{driver}, runs CUDA {cuda}")
    if supported[0] >= major:
        by = f"its library is of CUDA {supported[0]}.{supported[1]}"
        return CheckResult("NVIDIA driver", "ok", f"{driver or 'version unknown'}, {by}")
    if not driver:
        return CheckResult(
            "NVIDIA driver",
            "warning",
            "version unknown",
            f"torch needs {oldest} or later; run nvidia-smi to see it",
        )
    return CheckResult(
        "NVIDIA driver",
        "failed",
        f"{driver}, but torch is built for CUDA {cuda}, which needs {oldest} or later",
        f"install driver {oldest} or later (for a container: on its host), or {CPU_SET}",
    )


def check_compiler(failure: StubFailure | None, on_gpu: bool) -> CheckResult:
    """A C compiler and Python's headers compile what Triton compiles at run time."""
    if failure is None:
        return CheckResult("C compiler", "ok", "compiles extensions of Python")
    remedy = f"apt-get install {' '.join(failure.packages)}"
    if on_gpu:
        found = f"{failure.reason}: Triton cannot compile, so engines cannot start"
        return CheckResult("C compiler", "failed", found, remedy)
    return CheckResult(
        "C compiler", "warning", failure.reason, f"{remedy}; generator.enforce_eager=false needs it"
    )


def check_toolkit(problem: str, cuda: str) -> CheckResult:
    """A CUDA toolkit, which nothing but trainer.offload_dir needs."""
    if not problem:
        return CheckResult("CUDA toolkit", "ok", "found")
    remedy = f"only trainer.offload_dir needs one: {toolkit_remedy(cuda)}"
    return CheckResult("CUDA toolkit", "warning", f"none: {problem}", remedy)


def toolkit_remedy(cuda: str) -> str:
    """How to get a toolkit for a version of CUDA."""
    package = f"cuda-toolkit-{cuda.replace('.', '-')}"
    return f"install {package} from NVIDIA's repository and set CUDA_HOME to its folder"


def check_space(venv: Path, facts: LockFacts, environment: Mapping[str, str] = os.environ) -> CheckResult:
    """The disks hold the packages, what pip keeps of them, and what it downloads before it unpacks.

    Args:
        venv: the environment, empty or still to be made.
        facts: of the locked set.
        environment: pip's.
    """
    needs = [
        (venv, int(facts.unpacked_bytes * WITH_BYTECODE)),
        (Path(tempfile.gettempdir()), facts.download_bytes),
    ]
    if not environment.get("PIP_NO_CACHE_DIR"):
        cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"
        needs.append((Path(environment.get("PIP_CACHE_DIR") or cache), facts.download_bytes))
    on_disks: dict[int, list[tuple[Path, int]]] = {}
    for folder, num_bytes in needs:
        existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        on_disks.setdefault(existing.stat().st_dev, []).append((existing, num_bytes))
    for places in on_disks.values():
        needed, free = sum(size for _, size in places), shutil.disk_usage(places[0][0]).free
        if free < needed:
            folders = " and ".join(sorted({str(folder) for folder, _ in places}))
            found = (
                f"{free / GIB:.1f} GiB free in {folders}, but installing requirements/{facts.kind}.lock "
                f"takes {needed / GIB:.1f} GiB there"
            )
            remedy = "free some space, or set TMPDIR and PIP_CACHE_DIR to folders of another disk"
            return CheckResult("packages", "failed", found, remedy)
    return CheckResult("packages", "ok", f"room for {sum(size for _, size in needs) / GIB:.1f} GiB")
