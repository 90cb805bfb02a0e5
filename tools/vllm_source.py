"""Fetch the Python source of a vLLM release for CUDA, and try what vlrl gives to vLLM on it.

    python tools/vllm_source.py pinned    the version of requirements/cuda.lock, which must fit
    python tools/vllm_source.py newest    the newest release: an early warning of what will break

Of the wheel, 330 MB, only the Python files are read (17 MB), into the folder vlrl/vllm-source/VERSION of the
user's cache. The tests read the pinned version too where it is there. Exit code 1 if something does not fit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lock import THIS, packages, read_lock
from python_source import Package
from remote_zip import open_zip
from vllm_guard import ROOT, findings, installed, unlike

LOADERS = "tests/engine/test_logits_processor.py"


def cache_folder() -> Path:
    """Where fetched versions are."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("VLLM_SOURCES") or cache / "vlrl" / "vllm-source")


def fetch(version: str, url: str) -> Path:
    """The folder with the Python files of a version, fetched from its wheel if they are not there yet."""
    folder = cache_folder() / version
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part, open_zip(url) as wheel:
        files = [file for file in wheel.infolist() if file.filename.endswith(".py")]
        for file in sorted(files, key=lambda file: file.header_offset):  # every block is read once
            wheel.extract(file, Path(part) / version)
        (Path(part) / version).rename(folder)
    print(f"vLLM {version}: {len(files)} Python files, {folder}", flush=True)
    return folder


def release(wanted: str) -> tuple[str, str]:
    """(version, address of its wheel) of the pinned or the newest release."""
    version = f"=={read_lock('cuda')['vllm'].version}" if wanted == "pinned" else ""
    found = packages(f"vllm{version}", THIS, "--no-deps")["vllm"]
    return found.version, found.url


def try_loaders(source: Path) -> str:
    """What both of vLLM's loaders say to the token ban, by the tests; "" if they take it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", LOADERS]
    child = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return "" if child.returncode == 0 else child.stdout + child.stderr


def main() -> None:
    if sys.argv[1:] not in (["pinned"], ["newest"]):
        raise SystemExit(__doc__)
    version, url = release(sys.argv[1])
    source = fetch(version, url)
    failures = findings(Package(source, "vllm"))
    if sys.argv[1] == "pinned":  # what the tests run is the installed build, which may be that for CPUs
        failures += unlike(Package(installed(), "vllm"), source)
    if failure := try_loaders(source):
        failures.append(f"{LOADERS} fails:\n{failure}")
    if failures:
        raise SystemExit("\n".join([f"vLLM {version} and vlrl do not fit:", *failures]))
    print(f"vLLM {version} has all that vlrl relies on")


if __name__ == "__main__":
    main()
