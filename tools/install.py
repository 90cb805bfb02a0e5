"""Make .venv with the locked set in it: run by the Makefile, with the machine's own Python.

    python3 tools/install.py [--dev] [--venv DIR] [--lock auto|cpu|cuda]

A stamp in the environment names what was installed, so a second run does nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
started = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - started:5.0f} s] {text}", flush=True)


def has_nvidia_gpu() -> bool:
    if Path("/dev/nvidia0").exists():
        return True
    if shutil.which("nvidia-smi") is None:
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=60).returncode == 0


def make_venv(venv: Path) -> Path:
    python = venv / "bin" / "python"
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return python
    say(f"making {venv.name} with Python {sys.version.split()[0]}")
    shutil.rmtree(venv, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
    if made.returncode != 0:
        shutil.rmtree(venv, ignore_errors=True)
        raise SystemExit(f"python3 -m venv failed:\n{made.stdout}{made.stderr}")
    return python


def pip(python: Path, *arguments: str, check: bool = True) -> bool:
    command = [str(python), "-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=not check, text=True)
    if check and result.returncode != 0:
        raise SystemExit(f"pip failed (exit status {result.returncode}): {' '.join(arguments)}")
    return result.returncode == 0


def install_torch(python: Path, lock: Path) -> None:
    """The CPU build of torch is not on PyPI: pip's own configuration first, PyTorch's index second."""
    pin = next(line.strip() for line in lock.read_text().splitlines() if line.startswith("torch=="))
    say(f"installing {pin}")
    if pip(python, pin, check=False):
        return
    if "+cpu" not in pin or not pip(
        python, pin, "--index-url", PYTORCH_CPU_INDEX, "--timeout", "15", "--retries", "1", check=False
    ):
        raise SystemExit(
            f"pip found no wheel for {pin}, neither where it is configured to look nor at {PYTORCH_CPU_INDEX}.\n"
            f"Give it one: PIP_FIND_LINKS=/folder/with/the/wheel make install"
        )


def repair_torchvision(python: Path) -> None:
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    shutil.copy(ROOT / "tools" / "torchvision_on_cpu.py", site)
    (site / "torchvision_on_cpu.pth").write_text("import torchvision_on_cpu; torchvision_on_cpu.install()\n")


def fingerprint(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make .venv with the locked set in it.")
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--lock", choices=["auto", "cpu", "cuda"], default="auto")
    options = parser.parse_args()
    if sys.version_info < (3, 11):
        raise SystemExit(f"vlrl needs Python 3.11 or later; this is {sys.version.split()[0]}. Try: make PYTHON=python3.11")
    kind = options.lock if options.lock != "auto" else ("cuda" if has_nvidia_gpu() else "cpu")
    lock, dev = ROOT / "requirements" / f"{kind}.lock", ROOT / "requirements" / "dev.lock"
    python = make_venv(options.venv)
    stamp, dev_stamp = options.venv / "vlrl.stamp", options.venv / "vlrl-dev.stamp"

    wanted = fingerprint(lock, ROOT / "pyproject.toml", ROOT / "tools" / "torchvision_on_cpu.py", Path(__file__))
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing requirements/{kind}.lock, a few gigabytes, once")
        install_torch(python, lock)
        pip(python, "-r", str(lock))
        if kind == "cpu":
            repair_torchvision(python)
        pip(python, "--no-build-isolation", "--editable", str(ROOT))
        stamp.write_text(wanted)
        say(f"{options.venv.name} is ready")
    wanted = fingerprint(dev)
    if options.dev and (not dev_stamp.exists() or dev_stamp.read_text() != wanted):
        say("installing requirements/dev.lock")
        pip(python, "-r", str(dev))
        dev_stamp.write_text(wanted)
        say("tests and checks are ready")


if __name__ == "__main__":
    main()
