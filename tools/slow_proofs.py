"""Run the slow tests, those that have gone longest without passing first, each in its own pytest process.

    python tools/slow_proofs.py [--minutes M] [--record] [PROOF ...]   run all of them, or those named
    python tools/slow_proofs.py --list                                 show the order
    python tools/slow_proofs.py --sync                                 update the names in the ledger

A proof is one test marked `slow`, or all slow tests of a file that says `slow(together=True)` because they
share engines, or FILE[NAME], those of a file that say `slow(together="NAME")`. tests/slow_ledger.json holds
when each last passed, on which commit, and how long it took; --record keeps it up to date. With --minutes, a
proof that is known to take longer than what is left is passed over, and the one that runs when the time is up
is stopped, which is not a failure.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent
LEDGER = Path("tests", "slow_ledger.json")
FOUND = "SLOW_PROOFS_FOUND"
"""The environment variable that names the file for what `pytest_collection_finish` found."""
OWNER = "SLOW_PROOF"
"""The environment variable by which a proof's processes are recognized, whoever their parent is by now."""
TEST_SECONDS = 1800
"""The limit for a test whose `timeout` mark sets none."""
PROOF_SECONDS = 7200
"""The limit for a whole proof, for what hangs where pytest's own limits do not reach."""
GRACE_SECONDS = 60.0
"""Time for fixtures to stop engines, Ray and browsers before they are killed."""


@dataclass(frozen=True)
class LastPass:
    """When a proof last passed (UTC), on which commit, and how long it took."""

    passed: str
    commit: str
    seconds: float


Ledger = dict[str, LastPass | None]
"""The last pass of each proof by its name, None where it never passed."""
Proofs = dict[str, list[str]]
"""What pytest runs of each proof: node ids, or the path of a file."""
Outcome = Literal["passed", "failed", "skipped", "cut"]


def read_ledger(file: Path) -> Ledger:
    """The ledger's entries, none if there is no file."""
    entries = json.loads(file.read_text()) if file.exists() else {}
    return {proof: LastPass(**entry) if entry else None for proof, entry in entries.items()}


def write_ledger(file: Path, ledger: Ledger) -> None:
    """Write one line per proof, so that git merges what two checkouts recorded."""
    lines = (
        f"{json.dumps(proof)}: {json.dumps(entry and asdict(entry))}"
        for proof, entry in sorted(ledger.items())
    )
    fresh = file.with_suffix(".new")
    fresh.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    fresh.replace(file)


def order(proofs: Iterable[str], ledger: Ledger, commit: str) -> list[str]:
    """Sort proofs by the day of their last pass, those that never passed first, and within a day by commit.

    The ledger changes only when someone commits it: without the commit, each run would start with the same
    proofs.
    """

    def place(proof: str) -> tuple[str, bytes]:
        last = ledger.get(proof)
        return last.passed[:10] if last else "", hashlib.sha256(f"{commit} {proof}".encode()).digest()

    return sorted(proofs, key=place)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the proofs among the collected tests for `collect`, which loads this file as a plug-in."""
    Path(os.environ[FOUND]).write_text(json.dumps(proofs_of(session.items)))


def proofs_of(items: Iterable[pytest.Item]) -> Proofs:
    """Find the proofs among tests."""
    slow = [(item, mark) for item in items if (mark := item.get_closest_marker("slow"))]
    files = {item.nodeid.split("::")[0] for item, mark in slow if mark.kwargs.get("together") is True}
    proofs: Proofs = {}
    for item, mark in slow:
        file, group = item.nodeid.split("::")[0], mark.kwargs.get("together")
        if isinstance(group, str):
            proofs.setdefault(f"{file}[{group}]", []).append(item.nodeid)
        elif file in files:
            proofs[file] = [file]
        else:
            proofs[item.nodeid] = [item.nodeid]
    return proofs


def collect(root: Path, names: Sequence[str] = ()) -> Proofs:
    """The proofs in the named files, folders and tests (default: all), or those named themselves."""
    texts = (root / "tests").rglob("test_*.py")
    groups = [name for name in names if ".py[" in name]
    names = [name.partition("[")[0] if name in groups else name for name in names]
    names = names or sorted(str(file.relative_to(root)) for file in texts if "slow" in file.read_text())
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "proofs.json")
        paths = filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
        environment = os.environ | {FOUND: str(found), "PYTHONPATH": os.pathsep.join(paths)}
        # Rewriting the assertions of all files would take most of the time.
        options = "-p slow_proofs -m slow --collect-only -qq --assert=plain"
        command = [sys.executable, "-m", "pytest", *options.split()]
        done = subprocess.run([*command, *names], cwd=root, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"pytest cannot collect the slow tests:\n{done.stdout}{done.stderr}")
        proofs: Proofs = json.loads(found.read_text())
    whole = [name for name in names if not any(group.startswith(f"{name}[") for group in groups)]
    return {
        proof: tests
        for proof, tests in proofs.items()
        if not groups or proof in groups or any(proof.startswith(name) for name in whole)
    }


def head(root: Path) -> str:
    """The checked-out commit, with `+changes` if tracked files differ from it, or `unknown` without git."""
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{LEDGER}")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}+changes" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run_proof(root: Path, tests: Sequence[str], seconds: float, output: Path, first_failure: bool) -> Outcome:
    """Run one proof, for `seconds` at most, and end whatever it leaves running.

    Args:
        root: the folder pytest starts in.
        tests: the proof's, see `Proofs`.
        seconds: after these it is cut.
        output: the file for what it prints.
        first_failure: end with its first failing test: one that fails and is cut afterwards has failed.
    """
    owner = uuid.uuid4().hex
    limits = [f"--timeout={TEST_SECONDS}", "-o", f"faulthandler_timeout={PROOF_SECONDS}"]
    command = [sys.executable, "-m", "pytest", "-m", "slow", *limits, *["-x"] * first_failure, *tests]
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=root, env=os.environ | {OWNER: owner}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        code = process.wait(min(seconds, PROOF_SECONDS))
    except subprocess.TimeoutExpired:
        return "cut" if seconds < PROOF_SECONDS else "failed"
    finally:
        _stop(process, owner)
    if code != 0:
        return "failed"
    # Not the last line: engines may print as the process ends.
    summary = re.findall(r"^.*\d+ passed.* in [\d.]+s.*$", output.read_text(errors="replace"), re.MULTILINE)
    return "passed" if summary and not re.search("skipped|xfailed", summary[-1]) else "skipped"


def _stop(process: subprocess.Popen[bytes], owner: str) -> None:
    """Interrupt pytest alone, so that its fixtures stop what they started, then kill what is left.

    Its descendants are noted first: those that a program starts without our environment lack the mark.
    """
    started = []
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    process.kill()
    process.wait()
    for _ in range(100):  # one that is being killed can still have started another
        if not (left := [*filter(_runs, started), *owned(owner)]):
            break
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        time.sleep(0.1)


def owned(owner: str) -> list[psutil.Process]:
    """The running processes that inherited the mark of this proof."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            if process.environ().get(OWNER) == owner and _runs(process):
                found.append(process)
    return found


def _runs(process: psutil.Process) -> bool:
    """Whether a process is there; what has ended and waits for its parent is not."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def run_all(root: Path, proofs: Proofs, minutes: float, record: bool) -> int:
    """Run the proofs in their order until the time is up, report each, and return how many failed."""
    started = time.monotonic()
    deadline = started + minutes * 60
    ledger = read_ledger(root / LEDGER)
    outcomes: dict[str, Outcome] = {}
    for proof in order(proofs, ledger, head(root)):
        begun = time.monotonic()
        left = deadline - begun
        if left <= 0 or ((last := ledger.get(proof)) and last.seconds > left):
            continue
        print(f"[{(begun - started) / 60:3.0f} min] {proof}", flush=True)
        commit = head(root)
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "output")
            outcome = run_proof(root, proofs[proof], left, output, first_failure=minutes < math.inf)
            if outcome == "failed":
                print(output.read_text(errors="replace"))
        seconds = time.monotonic() - begun
        print(f"{outcome:>9} after {seconds:.0f} s", flush=True)
        outcomes[proof] = outcome
        if record and outcome == "passed":
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            # Read again: another run may have written meanwhile.
            ledger = read_ledger(root / LEDGER) | {proof: LastPass(now, commit, round(seconds, 1))}
            write_ledger(root / LEDGER, ledger)
    _report(proofs, outcomes)
    return sum(outcome == "failed" for outcome in outcomes.values())


def _report(proofs: Proofs, outcomes: dict[str, Outcome]) -> None:
    counts = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped", "cut")}
    parts = [f"{number} {kind}" for kind, number in counts.items() if number]
    print(", ".join([*parts, f"{len(proofs) - len(outcomes)} not started"]), "of", len(proofs), "slow proofs")
    for proof, outcome in outcomes.items():
        if outcome != "passed":
            print(f"{outcome:>9} {proof}")


def main(root: Path = ROOT, arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="the time box (default: none)")
    parser.add_argument("--record", action="store_true", help="write passes into the ledger")
    parser.add_argument("--list", action="store_true", help="show the order and run nothing")
    parser.add_argument("--sync", action="store_true", help="name in the ledger exactly the proofs there are")
    parser.add_argument(
        "proofs", nargs="*", metavar="PROOF", help="files, folders, tests or FILE[NAME] (default: all)"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    proofs = collect(root, options.proofs)
    ledger = read_ledger(root / LEDGER)
    if options.sync:
        write_ledger(root / LEDGER, {proof: ledger.get(proof) for proof in collect(root)})
    elif options.list:
        for proof in order(proofs, ledger, head(root)):
            last = ledger.get(proof)
            print(f"{last.passed} {last.seconds:5.0f} s" if last else f"{'never':28}", proof)
    elif not proofs:
        raise SystemExit(f"no slow test in {' '.join(options.proofs)}")
    else:
        return int(run_all(root, proofs, options.minutes, options.record) > 0)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit("interrupted; what ran was stopped") from None
