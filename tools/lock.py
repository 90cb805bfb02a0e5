"""Write the locks: every package of the set, pinned, from one dry run of pip's resolver.

    python tools/lock.py cpu|cuda|dev

The .in files in requirements/ hold what vlrl needs directly; a lock holds everything those need in turn.
A lock is installed with ``--no-deps``, so what it lists is exactly what a machine gets.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"

# vLLM's metadata asks for these, its code for images and video does not. Their wheels on PyPI are linked
# against CUDA libraries; where those are missing, `import transformers` fails on them.
LEFT_OUT = {"cpu": {"torchaudio", "torchcodec"}}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, str]:
    """Package name to pinned version."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def resolve(arguments: list[str]) -> dict[str, str]:
    """The set pip would install into an empty environment; PyTorch's CPU index is asked only on failure."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--only-binary=:all:", "--no-binary=deepspeed", "--report", "-", *arguments]  # DeepSpeed ships as source
    first = subprocess.run(command, capture_output=True, text=True)
    result = first
    if first.returncode != 0:
        command += ["--extra-index-url", PYTORCH_CPU_INDEX, "--timeout", "15", "--retries", "1"]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        errors = [line for line in first.stderr.splitlines() if line.startswith("ERROR")]
        raise SystemExit("pip found no set that fits:\n" + "\n".join(errors or [first.stderr]))
    installs = json.loads(result.stdout)["install"]
    return {canonical(item["metadata"]["name"]): item["metadata"]["version"] for item in installs}


def main(kind: str) -> None:
    arguments = ["-r", str(FOLDER / f"{kind}.in")]
    left_out = set(LEFT_OUT.get(kind, ()))
    if kind == "dev":  # goes on top of either lock: agree with it, and do not repeat it
        base = read_lock(FOLDER / "cpu.lock")
        constraints = FOLDER / "cpu.lock"
        arguments += ["-c", str(constraints)]
        left_out |= set(base)
    pins = {name: version for name, version in resolve(arguments).items() if name not in left_out}
    head = f"# Written by `make lock` from {kind}.in. Installed with --no-deps: nothing else comes in.\n"
    for name in sorted(LEFT_OUT.get(kind, ())):
        head += f"# Left out on purpose, see tools/lock.py: {name}\n"
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    (FOLDER / f"{kind}.lock").write_text(head + "".join(lines))
    print(f"requirements/{kind}.lock: {len(pins)} packages")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("cpu", "cuda", "dev"):
        raise SystemExit("usage: python tools/lock.py cpu|cuda|dev")
    main(sys.argv[1])
