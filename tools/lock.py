"""Write the locks: every package of a set, pinned, by uv's resolver.

    python tools/lock.py [--upgrade] KIND ...   write KIND.lock from KIND.in; KINDS names them
    python tools/lock.py check [KIND ...]       resolve locks for each of PYTHONS, installing nothing

The .in files hold what vlrl needs directly; a lock holds everything those need in turn. Versions that fit
stay, but for --upgrade. A lock is installed with ``--no-deps``, so what it lists is exactly what a machine
gets: one set for all of PYTHONS, where a package that only some of them need carries a marker. What the sets
need of a machine is written with them, to vlrl/machine/locks.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from remote_zip import TIMEOUT_S, open_zip, path_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER, FACTS = ROOT / "requirements", ROOT / "vlrl" / "machine" / "locks.json"
PYTORCH_CPU_INDEX = os.environ.get("PYTORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")

KINDS = ("cpu", "cuda", "dev", "cluster", "trl", "ecosystem")
ON_TOP = ("dev", "cluster")
"""Locks that go on top of cpu.lock or cuda.lock: they agree with it and omit what it has."""
PYTHONS = ("3.11", "3.12", "3.13")
THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"
ARCHITECTURE, SYSTEM = "x86_64", "manylinux_2_31"
"""The oldest glibc of which every package has a wheel: llguidance, which vLLM needs, begins there."""
OF_SOURCE = ("deepspeed", "docopt", "odfpy")
"""Packages that ship as source."""

LEFT_OUT = {
    "cpu": {
        # vLLM's metadata asks for these two, its code for images and video does not. Their wheels on PyPI are
        # linked against CUDA libraries; where those are missing, `import transformers` fails on them.
        "torchaudio": "needs CUDA libraries",
        "torchcodec": "needs CUDA libraries",
        # xgrammar's metadata asks for it, for kernels on a GPU. A gigabyte.
        "triton": "compiles for GPUs only",
    },
    # gui/miniwob reads the pages of miniwob; its Python, which drives Selenium, is never imported.
    "dev": {"selenium": "miniwob's Python needs it, its pages do not"},
}

OVERRIDDEN = {"trackio": "pillow", "mlflow-skinny": "cachetools", "browsergym-core": "greenlet"}
"""Package of the tests → what it, or one it needs, bounds below our version, with which its tests pass."""


class Package(NamedTuple):
    """A package of a resolved set, and the file that pip would install."""

    version: str
    url: str
    size: int


class Pin(NamedTuple):
    """A line of a lock."""

    version: str
    marker: str


def read_pins(file: Path) -> dict[str, Pin]:
    """Package name to pin."""
    line = r"^([\w.-]+)={2,3}([^\s;]+)(?: ; (.*))?$"
    found = re.findall(line, file.read_text(), flags=re.MULTILINE)
    return {name: Pin(version, marker) for name, version, marker in found}


def read_lock(kind: str) -> dict[str, Pin]:
    return read_pins(FOLDER / f"{kind}.lock")


def lines_of(pins: dict[str, Pin], leave_out: Iterable[str] = ()) -> str:
    """Pins as requirements."""
    kept = sorted(pins.keys() - set(leave_out))
    return "".join(
        f"{name}=={pins[name].version}{f' ; {pins[name].marker}' if pins[name].marker else ''}\n"
        for name in kept
    )


def digest(pins: dict[str, Pin]) -> str:
    return hashlib.sha256(lines_of(pins).encode()).hexdigest()


def needed(pins: dict[str, Pin], python: str) -> set[str]:
    """Names of the packages that are installed on a Python."""
    return {name for name, pin in pins.items() if not pin.marker or f'"{python}"' in pin.marker}


def compile_set(
    python: str, files: Sequence[Path], output: Path, *options: str, leave_out: Iterable[str], cpu: bool
) -> None:
    """Write to `output` the set that fits requirement files on a Python.

    A requirements file that is there already is kept to as far as it fits. CPU builds of torch are looked for
    where pip is told to look (PIP_FIND_LINKS), and on failure in PyTorch's own index.
    """
    with (
        tempfile.NamedTemporaryFile("w", suffix=".txt") as excluded,
        tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides,
    ):
        excluded.write("".join(f"{name}\n" for name in leave_out))
        excluded.flush()
        overrides.write(overriding(files))
        overrides.flush()
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
        command += ["--python-version", python, "--python-platform", f"{ARCHITECTURE}-{SYSTEM}"]
        command += ["--only-binary", ":all:", *(f"--no-binary={package}" for package in OF_SOURCE)]
        command += ["--excludes", excluded.name, "--overrides", overrides.name]
        command += ["--output-file", str(output), *options]
        if cpu:
            command += [f"--find-links={place}" for place in os.environ.get("PIP_FIND_LINKS", "").split()]
        command += [str(file) for file in files]
        first = child = subprocess.run(command, capture_output=True, text=True)
        if child.returncode != 0 and cpu and "+cpu" in child.stderr:
            index = ["--index", PYTORCH_CPU_INDEX, "--index-strategy", "unsafe-best-match"]
            child = subprocess.run([*command, *index], capture_output=True, text=True)
        if child.returncode != 0:
            names = " ".join(file.name for file in files)
            raise SystemExit(f"no set fits {names} on Python {python}:\n{first.stderr}")


def overriding(files: Sequence[Path]) -> str:
    """Pins in requirement files that hold whatever the packages of OVERRIDDEN ask for, as requirements."""
    pins = {name: pin for file in files for name, pin in read_pins(file).items()}
    text = "\n".join(file.read_text() for file in files)
    wanted = [name for package, name in OVERRIDDEN.items() if re.search(rf"^{package}\b", text, re.MULTILINE)]
    return "".join(f"{name}=={pins[name].version}\n" for name in wanted if name in pins)


def resolve(kind: str, *options: str) -> dict[str, Pin]:
    """What KIND.in needs on this Python, with the versions of KIND.lock where they fit."""
    files = [FOLDER / f"{kind}.in", *([FOLDER / "cpu.lock"] if kind in ON_TOP else [])]
    left_out = [*LEFT_OUT.get(kind, {}), *(LEFT_OUT["cpu"] if kind in ON_TOP else [])]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "set.txt"
        output.write_text(lines_of(read_lock(kind)))
        compile_set(THIS, files, output, *options, leave_out=left_out, cpu=kind != "cuda")
        return read_pins(output)


def complete(pins: dict[str, Pin], python: str, *, cpu_torch: bool) -> dict[str, Package]:
    """What pins and all that they need are on a Python.

    With cpu_torch=False the CPU build of torch is left out: PyPI has none, and a folder of wheels may have it
    for one Python alone.
    """
    cpu_builds = [name for name, pin in pins.items() if pin.version.endswith("+cpu")]
    without = [] if cpu_torch else cpu_builds
    left_out = [name for of_kind in LEFT_OUT.values() for name in of_kind if name not in pins]
    return packages(
        lines_of(pins, without), python, leave_out=[*left_out, *without], cpu=cpu_torch and bool(cpu_builds)
    )


def packages(
    requirements: str, python: str, *options: str, leave_out: Iterable[str] = (), cpu: bool = False
) -> dict[str, Package]:
    """The packages that fit requirements, with their files."""
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder) / "requirements.txt", Path(folder) / "pylock.toml"
        file.write_text(requirements)
        compile_set(python, [file], output, *options, leave_out=leave_out, cpu=cpu)
        found = tomllib.loads(output.read_text())["packages"]
        return {package["name"]: _package(package, output.parent) for package in found}


def _package(package: dict[str, Any], folder: Path) -> Package:
    """A package of a pylock.toml in `folder`, which lists the wheels that fit, or the source."""
    files = package.get("wheels") or [package["sdist"]]
    file = max(files, key=lambda file: file.get("size", 0))
    url = file.get("url") or (folder / file["path"]).resolve().as_uri()
    size = file["size"] if "size" in file else path_of(url).stat().st_size  # none is noted of local files
    return Package(package["version"], url, size)


def write(kind: str, *options: str) -> None:
    """Write requirements/<kind>.lock."""
    left_out, below = LEFT_OUT.get(kind, {}), read_lock("cpu") if kind in ON_TOP else {}
    pins = resolve(kind, *options)
    for python in PYTHONS:
        for name, package in complete(pins, python, cpu_torch=False).items():
            if name not in pins:
                pins[name] = Pin(package.version, f'python_version == "{python}"')
            elif pins[name].marker and python not in pins[name].marker:
                pins[name] = Pin(package.version, f'{pins[name].marker} or python_version == "{python}"')
    text = f"# Written by `make lock` from {kind}.in. Installed with --no-deps: nothing else comes in.\n"
    for name, reason in left_out.items():
        text += f"# Left out: {name}, {reason} (tools/lock.py)\n"
    lines = lines_of({name: pin for name, pin in pins.items() if name not in below})
    if kind == "cuda":
        lines = lines.replace("\ntorch==", "\ntorch===")  # see cuda.in
    (FOLDER / f"{kind}.lock").write_text(text + lines)
    print(f"requirements/{kind}.lock: {len(lines.splitlines())} packages")
    if kind not in ON_TOP:
        write_facts(kind, complete(read_lock(kind), THIS, cpu_torch=True))


def write_facts(kind: str, packages: dict[str, Package]) -> None:
    """Note in locks.json what the set needs of a machine."""
    with ThreadPoolExecutor(8) as pool:
        unpacked = sum(pool.map(unpacked_size, packages.values()))
    runtime = packages.get("nvidia-cuda-runtime")
    facts = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    facts[kind] = {
        "pythons": list(PYTHONS),
        "platform": f"{SYSTEM}_{ARCHITECTURE}",
        "cuda": ".".join(runtime.version.split(".")[:2]) if runtime else "",
        "download_bytes": sum(package.size for package in packages.values()),
        "unpacked_bytes": unpacked,
        "digest": digest(read_lock(kind)),
    }
    FACTS.write_text(json.dumps(dict(sorted(facts.items())), indent=2) + "\n")


def unpacked_size(package: Package) -> int:
    """Bytes of a wheel's files, or of those of a source archive."""
    if package.url.endswith(".whl"):
        with open_zip(package.url) as wheel:
            return sum(file.file_size for file in wheel.infolist())
    with (
        urllib.request.urlopen(package.url, timeout=TIMEOUT_S) as source,
        tarfile.open(fileobj=source, mode="r|*") as archive,
    ):
        return sum(member.size for member in archive)


def check(kind: str) -> None:
    """Fail unless, on every Python, a lock and all that its packages need are exactly what it lists."""
    pins = read_lock(kind)
    if kind in ("cpu", "cuda"):
        pins = {name: pin for lock in (kind, *ON_TOP) for name, pin in read_lock(lock).items()}
    for python in PYTHONS:
        found = complete(pins, python, cpu_torch=False)
        listed = needed(pins, python) - {name for name, pin in pins.items() if pin.version.endswith("+cpu")}
        if differences := sorted(found.keys() ^ listed):
            raise SystemExit(
                f"{kind}.lock is not complete on Python {python}; `make lock` writes it again: {differences}"
            )
        print(f"requirements/{kind}.lock: {len(found)} packages on Python {python}, nothing missing")


def main() -> None:
    words = sys.argv[1:]
    options = [word for word in words if word == "--upgrade"]
    kinds = [word for word in words if word in KINDS]
    if words[:1] == ["check"] and len(kinds) == len(words) - 1:
        for kind in kinds or KINDS:
            if kind not in ON_TOP:  # they are checked on top of those that they are installed on
                check(kind)
    elif kinds and len(kinds) + len(options) == len(words):
        for kind in kinds:
            write(kind, *options)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
