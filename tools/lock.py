"""Write the locks: every package of the set, pinned, from one dry run of pip's resolver.

    python tools/lock.py KIND         write KIND.lock from KIND.in: cpu, cuda, dev, cluster, trl or ecosystem
    python tools/lock.py check-cuda   resolve cuda.lock with its dependencies, without installing it

The .in files hold what vlrl needs directly; a lock holds everything those need in turn. A lock is installed
with ``--no-deps``, so what it lists is exactly what a machine gets.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
PYTORCH_CPU_INDEX = os.environ.get("PYTORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")

ON_TOP = ("dev", "cluster")
"""Locks that go on top of cpu.lock or cuda.lock, agree with it and omit what it has."""

LEFT_OUT = {
    "cpu": {
        # vLLM's metadata asks for these two, its code for images and video does not. Their wheels on PyPI are
        # linked against CUDA libraries; where those are missing, `import transformers` fails on them.
        "torchaudio": "needs CUDA libraries",
        "torchcodec": "needs CUDA libraries",
        # xgrammar's metadata asks for it, for kernels on a GPU. A gigabyte.
        "triton": "compiles for GPUs only",
    },
    "cuda": {},
    # gui/miniwob reads the pages of miniwob; its Python, which drives Selenium, is never imported.
    "dev": {
        name: "miniwob's Python needs it, its pages do not"
        for name in (
            *("selenium", "trio", "trio-websocket", "websocket-client"),
            *("outcome", "pysocks", "wsproto"),
        )
    },
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, str]:
    """Package name to pinned version."""
    return dict(re.findall(r"^([\w.-]+)={2,3}(\S+)$", path.read_text(), flags=re.MULTILINE))


def resolve(*arguments: str) -> dict[str, str]:
    """The set pip would install into an empty environment; PyTorch's CPU index is asked only on failure."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-qq",
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
    ]
    command += ["--only-binary=:all:", "--no-binary=deepspeed,docopt", *arguments]  # they ship as source
    first = subprocess.run(command, capture_output=True, text=True)
    result = first
    if "No matching distribution found for torch==" in first.stderr:
        command += ["--extra-index-url", PYTORCH_CPU_INDEX, "--timeout", "15", "--retries", "1"]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"pip found no set that fits {' '.join(arguments)}:\n{first.stderr}")
    installs = json.loads(result.stdout)["install"]
    return {canonical(item["metadata"]["name"]): item["metadata"]["version"] for item in installs}


def write(kind: str) -> None:
    """Write requirements/<kind>.lock."""
    left_out = LEFT_OUT.get(kind, {})
    arguments = ["-r", str(FOLDER / f"{kind}.in")]
    if kind in ON_TOP:
        arguments += ["-c", str(FOLDER / "cpu.lock")]
        pins = resolve(*arguments)
        pins = {name: pins[name] for name in pins.keys() - read_lock(FOLDER / "cpu.lock").keys()}
    else:
        pins = resolve(*arguments)
    pins = {name: pins[name] for name in pins.keys() - left_out.keys()}
    text = f"# Written by `make lock` from {kind}.in. Installed with --no-deps: nothing else comes in.\n"
    for name, reason in left_out.items():
        text += f"# Left out: {name}, {reason} (tools/lock.py)\n"
    for name, version in sorted(pins.items()):
        sign = "===" if (kind, name) == ("cuda", "torch") else "=="  # see cuda.in
        text += f"{name}{sign}{version}\n"
    (FOLDER / f"{kind}.lock").write_text(text)
    print(f"requirements/{kind}.lock: {len(pins)} packages")


def check_cuda() -> None:
    """Fail unless pip, following every dependency, arrives at exactly what cuda.lock and ON_TOP list."""
    locks = [FOLDER / f"{kind}.lock" for kind in ("cuda", *ON_TOP)]
    listed = {name: version for lock in locks for name, version in read_lock(lock).items()}
    found = resolve(*(part for lock in locks for part in ("-r", str(lock))))
    found = {name: found[name] for name in found.keys() - LEFT_OUT["dev"].keys()}
    differences = sorted(found.items() ^ listed.items())
    if differences:
        raise SystemExit(f"cuda.lock is not complete; `make lock` writes it again: {differences}")
    print(f"cuda.lock, dev.lock and cluster.lock install together: {len(found)} packages, nothing missing")


if __name__ == "__main__":
    if sys.argv[1:] == ["check-cuda"]:
        check_cuda()
    elif len(sys.argv) == 2 and sys.argv[1] in ("cpu", "cuda", *ON_TOP, "trl", "ecosystem"):
        write(sys.argv[1])
    else:
        raise SystemExit(__doc__)
