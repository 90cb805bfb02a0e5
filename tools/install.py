"""Make .venv with the locked set in it: run by the Makefile, with the machine's own Python.

    python3 tools/install.py [--dev] [--behind] [--venv DIR] [--lock auto|cpu|cuda|trl|ecosystem]

Stamps in the environment say what was installed, so a second run does nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # vlrl is not installed yet; of it, vlrl.machine needs nothing that is not

from vlrl.machine.checks import check_compiler, check_driver, check_python, check_space, check_system  # noqa: E402
from vlrl.machine.compiler import DISK_ACCESS, TRITON, compile_stub  # noqa: E402
from vlrl.machine.locks import LockFacts, lock_facts  # noqa: E402
from vlrl.machine.nvidia import driver_cuda, driver_version, has_gpu  # noqa: E402
from vlrl.machine.result import CheckResult  # noqa: E402

TOOLS, REQUIREMENTS = ROOT / "tools", ROOT / "requirements"
PYTORCH_CPU_INDEX = os.environ.get("PYTORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")

# Never imported by vlrl, or a few files of hundreds (the models of one family): their bytecode is not worth
# the seconds. If they are imported after all, Python compiles them then.
NOT_COMPILED = (
    r"/tests?/|/torch/testing/_internal/|/ray/(rllib|serve|tune|data|train|llm)/"
    r"|/(transformers|vllm/model_executor)/models/|/vllm/models/|/(openai|anthropic)/(resources|types)/"
    r"|/(matplotlib|fontTools|numba|pygments/lexers|sympy/physics)/"
)

IMPORTED_FIRST = ("torch", "transformers", "deepspeed", "ray", "vllm")
"""By a run, in that order, and with the most files."""
ALONE = ("trl", "ecosystem")
"""Sets without vlrl itself: the peer of the benchmarks, and what environments of others need."""

TESTED_WITH = {
    "bwrap": "bubblewrap",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "chromium-headless-shell": "chromium-headless-shell",  # gui/miniwob and gui/web; with what it needs 80 MB
    "/usr/share/fonts/truetype/liberation": "fonts-liberation",
    "/usr/share/fonts/opentype/ipafont-gothic": "fonts-ipafont-gothic",
    # gui/x11, with what they need 12 MB beside GTK
    "/usr/share/fonts/truetype/dejavu": "fonts-dejavu-core",
    **{
        program: program
        for program in ("icewm", "mousepad", "pcmanfm", "galculator", "gpicview", "mtpaint", "xterm")
    },
    "/usr/share/themes/Arc": "arc-theme",
    "dbus-daemon": "dbus-daemon",
    "/usr/libexec/at-spi2-registryd": "at-spi2-core",
    "/usr/share/doc/libatk-adaptor": "libatk-adaptor",
    "Xvfb": "xvfb",
    "promtool": "prometheus",  # 96 MB
}
"""A program, a file or a folder → Debian's package of it."""
LARGE_APPS = {
    "soffice": ("libreoffice-calc", "libreoffice-writer", "libreoffice-gtk3"),  # 106 MB to download
    "firefox-esr": ("firefox-esr",),  # 81 MB
    "claws-mail": ("claws-mail",),  # 2 MB
}
"""What slow tests of gui/x11 need as well: a program → Debian's packages of it."""

started = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - started:4.0f} s] {text}", flush=True)


def refuse(*checks: CheckResult) -> None:
    """End with one line for each check that failed."""
    if failed := [check for check in checks if check.status == "failed"]:
        raise SystemExit("\n".join(f"{check.name}: {check.found}\n  → {check.remedy}" for check in failed))


def require_machine(facts: LockFacts) -> None:
    """Refuse a machine on which the set would not run; a compiler that is missing is installed."""
    checks = [check_system(platform.libc_ver(), platform.machine(), facts)]
    if facts.cuda and has_gpu():  # an image may be built on a machine that has none
        checks.append(check_driver(driver_version(), driver_cuda(), facts.cuda))
    refuse(*checks)
    if facts.cuda and (failure := compile_stub(TRITON)):
        install_debian_packages(list(failure.packages))
        refuse(check_compiler(compile_stub(TRITON), on_gpu=True))


def missing_debian_packages(kind: str) -> list[str]:
    """Names of the packages without which the locked set cannot be installed or loaded here."""
    missing = []
    if importlib.util.find_spec("ensurepip") is None:  # Debian's Python comes without what makes environments
        missing.append(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")
    if kind == "cpu":
        try:
            ctypes.CDLL("libnuma.so.1")
        except OSError:
            missing.append("libnuma1")  # vLLM's CPU library is linked against it
    return missing


def missing_test_packages() -> list[str]:
    """Names of the packages that only tests need: sandboxes, and what environments run in them."""
    missing = [
        package
        for needed, package in TESTED_WITH.items()
        if shutil.which(needed) is None and not Path(needed).exists()
    ]
    failure = compile_stub(DISK_ACCESS)  # trainer.offload_dir
    return missing + list(failure.packages if failure else ())


def missing_large_apps() -> list[str]:
    """Names of the packages of the large apps that are not here."""
    return [name for program, names in LARGE_APPS.items() if shutil.which(program) is None for name in names]


def install_debian_packages(packages: list[str]) -> None:
    """apt-get, as root or through sudo; otherwise say what to type."""
    as_root = [] if os.geteuid() == 0 else ["sudo"] if shutil.which("sudo") else None
    by_hand = f"sudo apt-get install {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        raise SystemExit(
            f"System packages are missing; install them first. Debian's names: {' '.join(packages)}"
        )
    if as_root is None:
        raise SystemExit(f"System packages are missing; as root: {by_hand.removeprefix('sudo ')}")
    say(f"installing Debian packages: {' '.join(packages)}")
    if as_root and not sys.stdin.isatty():
        as_root.append("--non-interactive")
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    install = [*as_root, *environment, "apt-get", "install", "-qq", "--no-install-recommends", *packages]
    if (
        subprocess.run(install, capture_output=True).returncode != 0
    ):  # perhaps the package lists are not there yet
        subprocess.run([*as_root, "apt-get", "update", "-qq"], check=False)
        if subprocess.run(install).returncode != 0:
            raise SystemExit(f"apt-get could not install {' '.join(packages)}. By hand: {by_hand}")


def make_venv(venv: Path) -> Path:
    python = venv / "bin" / "python"
    if (
        python.exists()
        and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    ):
        return python
    say(f"making {venv.name} with Python {sys.version.split()[0]}")
    shutil.rmtree(venv, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
    if made.returncode != 0:
        shutil.rmtree(venv, ignore_errors=True)
        raise SystemExit(f"{sys.executable} -m venv failed:\n{made.stdout}{made.stderr}")
    return python


class PipError(Exception):
    """pip failed; the message is what it printed."""


def pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "-qq", "--no-deps", "--disable-pip-version-check"]
    command += ["--no-input", "--root-user-action=ignore", *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        raise PipError(f"pip install {' '.join(arguments)} failed:\n{result.stdout}{result.stderr}")


def install_torch(python: Path, torch: str, torchvision: str) -> None:
    """torch first where pip is configured to look, then, for its CPU build, in PyTorch's own index.

    Where that index answers, torchvision's CPU build is there too; PyPI's needs the repair below.
    """
    try:
        pip(python, "--no-compile", torch)
        return
    except PipError as error:
        if "+cpu" not in torch or "No matching distribution" not in str(error):
            raise
    index = ["--index-url", PYTORCH_CPU_INDEX, "--timeout", "15", "--retries", "1"]
    try:
        pip(python, "--no-compile", *index, torch)
    except PipError as error:
        raise PipError(
            f"There is no wheel of {torch} where pip is configured to look, nor at {PYTORCH_CPU_INDEX}. "
            f"If you have one in a folder: PIP_FIND_LINKS=/that/folder make install\n\n{error}"
        ) from None
    try:
        pip(python, "--no-compile", *index, torchvision)
    except PipError:
        say(f"no CPU build of {torchvision} there: taking PyPI's")


def install_lock(python: Path, lock: Path, *, behind: bool) -> None:
    """Everything in the lock: two pips at once (unpacking keeps one core busy), then the bytecode.

    With `behind` bytecode is made by a process that goes on after this one, on cores that nothing else needs.
    A process that imports a file before its turn compiles it itself, as Python always does.
    """
    pins = [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]
    torches = [pin for pin in pins if pin.startswith(("torch=", "torchvision="))]
    rest = [pin for pin in pins if pin not in torches]

    def with_torch() -> None:
        if torches:
            install_torch(python, *torches)
        pip(python, "--no-compile", *torches[1:], *rest[::2])

    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(with_torch), pool.submit(pip, python, "--no-compile", *rest[1::2])]
        while wait(jobs, timeout=20).not_done:
            say("downloading and unpacking")
    for job in jobs:
        job.result()
    if torches and torches[0].endswith("+cpu"):
        repair_torchvision(python)
    say("compiling to bytecode" + (", behind what follows" if behind else ""))
    site = site_packages(python)
    folders = [str(site / name) for name in IMPORTED_FIRST if (site / name).is_dir()]
    command = [str(python), "-m", "compileall", "-qq", "-j0", "-x", NOT_COMPILED, *folders, str(site)]
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}  # of what newer Pythons dislike in packages
    if behind:
        null, idle = subprocess.DEVNULL, partial(os.nice, 19)
        subprocess.Popen(
            command, stdin=null, stdout=null, stderr=null, env=quiet, start_new_session=True, preexec_fn=idle
        )
    else:
        subprocess.run(command, stdout=subprocess.DEVNULL, env=quiet)  # nor is a file of Python 2 a failure


def site_packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return Path(
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )


def repair_torchvision(python: Path) -> None:
    """Let PyPI's torchvision be imported on a CPU build of torch: see torchvision_on_cpu.py."""
    site = site_packages(python)
    shutil.copy(TOOLS / "torchvision_on_cpu.py", site)
    (site / "torchvision_on_cpu.pth").write_text("import torchvision_on_cpu; torchvision_on_cpu.install()\n")


def changed(stamp: Path, *files: Path) -> bool:
    """True if one of the files has changed since `stamp` was written for them."""
    return not stamp.exists() or stamp.read_text() != digest(*files)


def digest(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make .venv with the locked set in it.")
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    parser.add_argument(
        "--behind", action="store_true", help="make bytecode behind what follows, on idle cores"
    )
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--lock", choices=["auto", "cpu", "cuda", *ALONE], default="auto")
    parser.add_argument("--large-apps", action="store_true", help="only the large apps of gui/x11")
    options = parser.parse_args()
    if options.large_apps:
        if missing := missing_large_apps():
            install_debian_packages(missing)
        return
    kind = options.lock if options.lock != "auto" else ("cuda" if has_gpu() else "cpu")
    facts = lock_facts(kind)
    refuse(check_python(sys.version_info[:3], facts))
    lock, dev_lock = REQUIREMENTS / f"{kind}.lock", REQUIREMENTS / "dev.lock"
    hook, project = TOOLS / "torchvision_on_cpu.py", ROOT / "pyproject.toml"
    stamp = options.venv / "lock.stamp"
    if changed(stamp, lock, hook):
        require_machine(facts)
    if missing := missing_debian_packages(kind):
        install_debian_packages(missing)
    if options.dev and (missing := missing_test_packages()):
        try:
            install_debian_packages(missing)
        except SystemExit as error:
            say(f"{error} Without them the tests of sandboxes prove only that there are none; others fail.")
    which = options.venv / "which.lock"
    if which.exists() and which.read_text() != kind:  # both builds of vLLM own one folder: sets do not mix
        say(f"{options.venv.name} holds the {which.read_text()} set: making it again")
        shutil.rmtree(options.venv)
    if not which.exists():
        refuse(check_space(options.venv, facts))
    python = make_venv(options.venv)
    which.write_text(kind)

    if changed(stamp, lock, hook):
        say(f"installing requirements/{kind}.lock, {facts.download_bytes / 1e9:.1f} GB to download, once")
        install_lock(python, lock, behind=options.behind)
        stamp.write_text(digest(lock, hook))
    stamp = options.venv / "project.stamp"
    if kind not in ALONE and changed(stamp, project):
        pip(python, "--no-build-isolation", "--editable", str(ROOT))
        stamp.write_text(digest(project))
        say(f"{options.venv.name} is ready")
    stamp = options.venv / "dev.stamp"
    if options.dev and changed(stamp, dev_lock):
        say("installing requirements/dev.lock")
        pip(python, "-r", str(dev_lock))
        stamp.write_text(digest(dev_lock))
        say("tests and checks are ready")


if __name__ == "__main__":
    try:
        main()
    except PipError as error:
        raise SystemExit(f"\n{error}") from None
