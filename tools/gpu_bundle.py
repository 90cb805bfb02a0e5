"""Pack what a GPU machine without network needs to run benchmarks/gpu/check.py, in parts that can be carried.

    python tools/gpu_bundle.py [--out FOLDER] [--python 3.12]

The machine is taken to have torch, transformers and what those need, and neither vLLM, Ray nor DeepSpeed.
The parts hold the repository at HEAD, and wheels of CARRIED in the versions of requirements/cuda.lock. run.sh
beside them checks their SHA-256, unpacks them and runs the stages:

    sh run.sh [STAGE ...]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lock import read_lock

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ("torch", "torchvision", "transformers", "numpy", "pillow")
"""What the machine has; with what these need in turn."""
CARRIED = (
    "annotated-types",
    "deepspeed",
    "einops",
    "hjson",
    "msgpack",
    "ninja",
    "psutil",
    "py-cpuinfo",
    "pydantic",
    "pydantic-core",
    "typing-extensions",  # pydantic wants a later one than torch
    "typing-inspection",
)
"""What the stages import besides (tests/tools/test_gpu_bundle.py), with what these need in turn."""
SOURCES = ("deepspeed",)
"""Of these PyPI has no wheels."""
PLATFORMS = tuple(f"manylinux{tag}_x86_64" for tag in ("_2_28", "_2_27", "_2_17", "2014", "1"))
PART_BYTES = 60_000_000
SUMS, SCRIPT, REPOSITORY = "SHA256SUMS", "run.sh", "repository.tar.gz"


class BundleError(Exception):
    """The bundle could not be made; the message says why."""


def divide(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Files into parts of at most `limit` bytes of content, the largest first.

    Raises:
        BundleError: if a file alone is larger.
    """
    parts: list[list[str]] = []
    left: list[int] = []
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        size = sizes[name]
        if size > limit:
            raise BundleError(f"{name} has {size:,} bytes, a part {limit:,} at most")
        number = next((i for i, room in enumerate(left) if room >= size), len(parts))
        if number == len(parts):
            parts.append([])
            left.append(limit)
        parts[number].append(name)
        left[number] -= size
    return parts


def write_bundle(content: Path, out: Path, limit: int = PART_BYTES) -> list[Path]:
    """Pack a folder's files into part_N.tar of at most `limit` bytes, with run.sh and the sums of all.

    Raises:
        BundleError: if a file is too large for a part.
    """
    # tar rounds every file up to 512 bytes, has headers for each, and ends with a record of 10 KiB.
    sizes = {
        str(file.relative_to(content)): -(-file.stat().st_size // 512) * 512 + 2048
        for file in content.rglob("*")
        if file.is_file()
    }
    parts = divide(sizes, limit - 20 * 512)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    written = []
    for number, names in enumerate(parts, 1):
        written.append(out / f"part_{number}.tar")
        with tarfile.open(written[-1], "w") as tar:
            for name in sorted(names):
                tar.add(content / name, name)
    written.append(out / SCRIPT)
    shutil.copy(ROOT / "tools" / "gpu_bundle.sh", written[-1])
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in written]
    (out / SUMS).write_text("".join(sums))
    return [*written, out / SUMS]


def pins() -> list[str]:
    """CARRIED in the versions of the CUDA lock."""
    locked = read_lock("cuda")
    return [f"{name}=={locked[name].version}" for name in CARRIED]


def fetch(folder: Path, python: str) -> None:
    """Wheels of CARRIED for a Linux machine with x86-64 cores and a Python version.

    Raises:
        BundleError: if pip cannot find or build one.
    """
    built = [pin for pin in pins() if pin.partition("==")[0] in SOURCES]
    fetched = [pin for pin in pins() if pin not in built]
    wanted = ["--python-version", python, "--implementation", "cp", "--only-binary=:all:"]
    wanted += [f"--platform={platform}" for platform in PLATFORMS]
    pip("download", "-d", str(folder), *wanted, *fetched)
    # Without its compiled operations, which the trainer does not use; it asks the torch that is here.
    pip("wheel", "-w", str(folder), "--no-build-isolation", *built, environment={"DS_BUILD_OPS": "0"})


def pip(*arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run pip without dependencies."""
    command = [sys.executable, "-m", "pip", arguments[0], "-qq", "--no-deps", "--disable-pip-version-check"]
    run([*command, *arguments[1:]], environment)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a program; its output is shown if it fails."""
    result = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if result.returncode:
        raise BundleError(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack what a GPU machine without network needs.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu_bundle")
    parser.add_argument("--python", default="3.12", help="the machine's Python (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder)
        (content / "wheels").mkdir()
        fetch(content / "wheels", options.python)
        run(["git", "archive", "--format=tar.gz", "-o", str(content / REPOSITORY), "HEAD"])
        for file in write_bundle(content, options.out):
            print(f"{file.stat().st_size:>11,} {file}")


if __name__ == "__main__":
    try:
        main()
    except BundleError as error:
        raise SystemExit(str(error)) from None
