"""tools/slow_proofs.py: what it collects, in which order, when it stops, what it leaves and records."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pytest

FILE = Path(__file__).parent.parent.parent / "tools" / "slow_proofs.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slow_proofs", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["slow_proofs"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


slow_proofs = load()
LastPass = slow_proofs.LastPass


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A function that makes a folder with one file of tests, without this project's conftest and plug-ins."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_timeout")

    def write(text: str) -> Path:
        (tmp_path / "tests").mkdir()
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: x\n")
        (tmp_path / "tests" / "test_it.py").write_text(
            "import os, pathlib, subprocess, time\nimport pytest\n" + text
        )
        return tmp_path

    return write


def recorded(root: Path) -> dict[str, dict[str, object] | None]:
    return json.loads((root / "tests" / "slow_ledger.json").read_text())  # type: ignore[no-any-return]


def passed(day: str, seconds: float = 1) -> object:
    return LastPass(f"{day}T00:00:00Z", "abc", seconds)


def test_the_ledger_names_every_slow_test_and_no_other(
    root: Path, slow_items: list[pytest.Item] | None
) -> None:
    proofs = slow_proofs.collect(root) if slow_items is None else slow_proofs.proofs_of(slow_items)
    ledger = slow_proofs.read_ledger(root / slow_proofs.LEDGER)
    hint = "run `.venv/bin/python tools/slow_proofs.py --sync` and commit tests/slow_ledger.json"
    assert sorted(ledger) == sorted(proofs), hint


def test_oldest_first_and_unknown_ones_before_all() -> None:
    ledger = {"a": passed("2026-03-02"), "b": passed("2026-03-01"), "c": None}
    assert slow_proofs.order(["a", "b", "c"], ledger, "f00")[1:] == ["b", "a"]
    assert set(slow_proofs.order(["a", "b", "c", "d"], ledger, "f00")[:2]) == {"c", "d"}


def test_commits_start_with_different_proofs_of_one_day() -> None:
    names = [f"test_{number}" for number in range(20)]
    ledger = {name: LastPass(f"2026-03-01T{hour:02}:00:00Z", "abc", 1) for hour, name in enumerate(names)}
    orders = [slow_proofs.order(names, ledger, commit) for commit in map(str, range(200))]
    assert {first for first, *_ in orders} == set(names)
    assert orders[0] == slow_proofs.order(reversed(names), ledger, "0")


def test_a_proof_is_a_test_or_a_file_whose_slow_tests_run_together(checkout: Callable[[str], Path]) -> None:
    root = checkout(
        "@pytest.mark.slow\n@pytest.mark.parametrize('x', ['both, and', 'b'])\ndef test_a(x): pass\n"
        "def test_quick(): pass\n"
    )
    together = "pytestmark = pytest.mark.slow(together=True)\ndef test_a(): pass\ndef test_b(): pass\n"
    (root / "tests" / "test_together.py").write_text(f"import pytest\n{together}")
    assert list(slow_proofs.collect(root)) == [
        "tests/test_it.py::test_a[both, and]",
        "tests/test_it.py::test_a[b]",
        "tests/test_together.py",
    ]
    assert list(slow_proofs.collect(root, ["tests/test_it.py::test_a[b]"])) == ["tests/test_it.py::test_a[b]"]
    assert slow_proofs.collect(root, ["tests/test_it.py::test_quick"]) == {}


def test_tests_that_give_a_name_are_a_proof_of_that_name(checkout: Callable[[str], Path]) -> None:
    """A model family, such as b beside bb, passes, fails and is recorded by itself."""
    root = checkout(
        "marked = [pytest.param(n, marks=pytest.mark.slow(together=n)) for n in ('b', 'bb')]\n"
        "@pytest.mark.parametrize('x', ['quick', *marked])\ndef test_a(x): pass\n"
        "@pytest.mark.parametrize('x', marked)\ndef test_c(x): assert x == 'b'\n"
    )
    assert slow_proofs.collect(root) == {
        "tests/test_it.py[b]": ["tests/test_it.py::test_a[b]", "tests/test_it.py::test_c[b]"],
        "tests/test_it.py[bb]": ["tests/test_it.py::test_a[bb]", "tests/test_it.py::test_c[bb]"],
    }
    assert list(slow_proofs.collect(root, ["tests/test_it.py[b]"])) == ["tests/test_it.py[b]"]
    assert slow_proofs.main(root, ["--record", "tests/test_it.py[b]"]) == 0
    assert slow_proofs.main(root, ["--record", "tests/test_it.py[bb]"]) == 1
    assert set(recorded(root)) == {"tests/test_it.py[b]"}


def test_a_failure_fails_the_run_which_goes_on_and_records_passes_alone(
    checkout: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    root = checkout(
        "pytestmark = pytest.mark.slow\ndef test_a(): assert 2 + 2 == 5\ndef test_b(): pass\n"
        "def test_c(): pytest.skip('no GPU')\n"
    )
    old = {"tests/test_it.py::test_a": passed("2026-01-01"), "tests/test_gone.py::test_x": None}
    slow_proofs.write_ledger(root / slow_proofs.LEDGER, old)
    assert slow_proofs.main(root, ["--record"]) == 1
    shown = capfd.readouterr().out
    assert "assert (2 + 2) == 5" in shown
    assert "1 passed, 1 failed, 1 skipped, 0 not started of 3 slow proofs" in shown
    ledger = recorded(root)
    assert set(ledger) == {*old, "tests/test_it.py::test_b"}
    assert ledger["tests/test_it.py::test_a"] == {
        "passed": "2026-01-01T00:00:00Z",
        "commit": "abc",
        "seconds": 1,
    }
    entry = ledger["tests/test_it.py::test_b"]
    assert entry is not None and entry["commit"] == "unknown" and entry["passed"] > "2026-11"  # type: ignore[operator]


def test_without_record_the_ledger_stays(checkout: Callable[[str], Path]) -> None:
    root = checkout("@pytest.mark.slow\ndef test_a(): pass\n")
    assert slow_proofs.main(root, ["tests/test_it.py"]) == 0
    assert not (root / slow_proofs.LEDGER).exists()


@pytest.fixture
def time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time box ends when the proof has made the file `begun`, however busy the machine is."""

    class Cut(subprocess.Popen[bytes]):
        was_cut = False

        def wait(self, timeout: float | None = None) -> int:
            if self.was_cut:
                return super().wait(timeout)
            self.was_cut = True
            while not (tmp_path / "begun").exists() and self.poll() is None:
                time.sleep(0.05)
            raise subprocess.TimeoutExpired("pytest", 0)

    monkeypatch.setattr(slow_proofs.subprocess, "Popen", Cut)


@pytest.mark.usefixtures("time_is_up")
def test_what_the_time_box_cuts_is_stopped_whole_and_does_not_fail(
    checkout: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its fixtures end in order; a daemon in its own session ends too, and so does what lost our mark."""
    root = checkout(
        "@pytest.fixture\ndef engine():\n    yield\n    pathlib.Path('stopped').touch()\n"
        "@pytest.mark.slow\ndef test_a(engine):\n"
        "    subprocess.Popen(['sh', '-c', 'setsid sleep 1234 & echo $! > daemon']).wait()\n"
        "    bare = subprocess.Popen(['env', '-i', 'sleep', '1234'])\n"
        "    pathlib.Path('bare').write_text(str(bare.pid))\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(1234)\n"
    )
    assert slow_proofs.run_proof(root, ["tests/test_it.py"], 600, tmp_path / "output", True) == "cut"
    assert (root / "stopped").exists()
    assert not runs(root / "daemon") and not runs(root / "bare")


@pytest.mark.usefixtures("time_is_up")
def test_what_ignores_the_interrupt_is_killed(
    checkout: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = checkout(
        "import signal\n@pytest.mark.slow\ndef test_a():\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    pathlib.Path('own').write_text(str(os.getpid()))\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(1234)\n"
    )
    monkeypatch.setattr(slow_proofs, "GRACE_SECONDS", 0.2)
    assert slow_proofs.run_proof(root, ["tests/test_it.py"], 600, tmp_path / "output", True) == "cut"
    assert not runs(root / "own")


def runs(file: Path) -> bool:
    """Whether the process whose id the file holds is there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(int(file.read_text())).status() != psutil.STATUS_ZOMBIE)
    return False


def test_nothing_starts_when_no_time_is_left_and_cuts_do_not_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    assert slow_proofs.run_all(tmp_path, {"a": ["a"], "b": ["b"]}, minutes=0, record=False) == 0
    monkeypatch.setattr(slow_proofs, "run_proof", lambda *_, **__: "cut")
    assert slow_proofs.run_all(tmp_path, {"a": ["a"], "b": ["b"]}, minutes=1, record=True) == 0
    assert not (tmp_path / slow_proofs.LEDGER).exists()
    shown = capsys.readouterr().out
    assert "2 not started of 2 slow proofs" in shown and "2 cut, 0 not started of 2" in shown


def test_a_proof_known_to_take_longer_than_what_is_left_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    ledger = {"long": passed("2026-01-01", seconds=3600), "short": passed("2026-02-01", seconds=3)}
    slow_proofs.write_ledger(tmp_path / slow_proofs.LEDGER, ledger)
    ran = []
    monkeypatch.setattr(slow_proofs, "run_proof", lambda _, tests, *__, **___: ran.extend(tests) or "passed")
    slow_proofs.run_all(tmp_path, {"long": ["long"], "short": ["short"]}, minutes=10, record=False)
    assert ran == ["short"]
    slow_proofs.run_all(tmp_path, {"long": ["long"], "short": ["short"]}, minutes=math.inf, record=False)
    assert ran == ["short", "long", "short"]


def test_in_a_time_box_a_failure_counts_before_the_cut(checkout: Callable[[str], Path]) -> None:
    root = checkout(
        "pytestmark = pytest.mark.slow(together=True)\ndef test_a(): assert False\n"
        "def test_b(): time.sleep(1234)\n"
    )
    assert slow_proofs.main(root, ["--minutes", "1"]) == 1


def test_a_passed_proof_leaves_no_process(checkout: Callable[[str], Path], tmp_path: Path) -> None:
    root = checkout(
        "@pytest.mark.slow\ndef test_a():\n"
        "    subprocess.Popen(['sh', '-c', 'setsid sleep 4321 & echo $! > left']).wait()\n"
    )
    run = slow_proofs.run_proof(root, ["tests/test_it.py"], math.inf, tmp_path / "output", False)
    assert run == "passed"
    assert not runs(root / "left")


def test_the_ledger_has_a_line_for_each_proof_and_reads_back(tmp_path: Path) -> None:
    ledger = {"b": passed("2026-01-02"), "a": None}
    slow_proofs.write_ledger(tmp_path / "ledger.json", ledger)
    assert (tmp_path / "ledger.json").read_text().splitlines() == [
        "{",
        '"a": null,',
        '"b": {"passed": "2026-01-02T00:00:00Z", "commit": "abc", "seconds": 1}',
        "}",
    ]
    assert slow_proofs.read_ledger(tmp_path / "ledger.json") == ledger
    assert slow_proofs.read_ledger(tmp_path / "none.json") == {}


def test_sync_drops_what_is_gone_and_adds_what_is_new(checkout: Callable[[str], Path]) -> None:
    root = checkout("pytestmark = pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass\n")
    kept = passed("2026-01-01")
    old = {"tests/test_it.py::test_a": kept, "tests/test_it.py::test_gone": kept}
    slow_proofs.write_ledger(root / slow_proofs.LEDGER, old)
    assert slow_proofs.main(root, ["--sync"]) == 0
    assert slow_proofs.read_ledger(root / slow_proofs.LEDGER) == {
        "tests/test_it.py::test_a": kept,
        "tests/test_it.py::test_b": None,
    }


def test_no_slow_test_under_a_name_is_an_error(checkout: Callable[[str], Path]) -> None:
    root = checkout("def test_a(): pass\n")
    with pytest.raises(SystemExit, match=r"no slow test in tests/test_it\.py"):
        slow_proofs.main(root, ["tests/test_it.py"])
    with pytest.raises(SystemExit, match="cannot collect"):
        slow_proofs.main(root, ["tests/test_other.py"])


def test_the_commit_of_a_changed_tree_says_so_unless_the_ledger_alone_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = {f"GIT_{role}_{key}": "x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        subprocess.run(
            ["git", *arguments], cwd=tmp_path, check=True, capture_output=True, env=os.environ | who
        )

    assert slow_proofs.head(tmp_path) == "unknown"
    (tmp_path / "tests").mkdir()
    for name in ("code.py", slow_proofs.LEDGER):
        (tmp_path / name).write_text("{}")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    commit = slow_proofs.head(tmp_path)
    assert len(commit) == 12
    (tmp_path / slow_proofs.LEDGER).write_text("{ }")
    (tmp_path / "untracked").touch()
    assert slow_proofs.head(tmp_path) == commit
    (tmp_path / "code.py").write_text("[]")
    assert slow_proofs.head(tmp_path) == f"{commit}+changes"


def test_ci_checks_runs_the_suite_and_then_a_share_of_the_slow_tests(root: Path, tmp_path: Path) -> None:
    """The `make` of this test only writes down what it is asked for, and fails where there is no network."""
    (tmp_path / "make").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncase $1 in vllm-*) exit 1; esac\n'
    )
    (tmp_path / "make").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = {
        key: value for key, value in os.environ.items() if key not in ("SLOW_MINUTES", "CI_MINUTES")
    } | {"PATH": path}
    subprocess.run([root / ".ci" / "run"], env=environment, check=True)
    subprocess.run([root / ".ci" / "run"], env=environment | {"SLOW_MINUTES": "3"}, check=True)
    subprocess.run([root / ".ci" / "run"], env=environment | {"CI_MINUTES": "7"}, check=True)
    asked = (tmp_path / "asked").read_text().splitlines()
    before = ["check", "docs", "vllm-source", "vllm-newest", "test"]
    assert asked[:6] == [*before, "test-slow-share SLOW_MINUTES=25"]
    assert asked[6:12] == [*before, "test-slow-share SLOW_MINUTES=3"]
    assert asked[12:] == [*before, "test-slow-share SLOW_MINUTES=7"]  # all that is left
