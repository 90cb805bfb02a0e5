"""The first signal finishes the step, the second does not wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vlrl.process.interrupts import Interrupts, signals_while_starting

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def test_each_signal_says_what_it_does(capfd: pytest.CaptureFixture[str]) -> None:
    with Interrupts() as interrupts:
        interrupts.graceful, interrupts.step, interrupts.saved = True, 41, 40
        send(signal.SIGTERM)
        asked = capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)
        stopped = capfd.readouterr().err
        interrupts.closing = True
        send(signal.SIGTERM)
    assert asked == "\nfinishing step 41, then saving; again: stop now, losing the steps after 40\n"
    assert stopped == "\nstopping now: engines and processes are being closed\n"
    assert "stopping already" in capfd.readouterr().err


def test_without_a_checkpoint_all_steps_would_be_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with Interrupts() as interrupts:
        interrupts.graceful, interrupts.step = True, 3
        send(signal.SIGINT)
    assert "losing all steps: there is no checkpoint yet" in capfd.readouterr().err


def test_signals_are_left_alone_outside_the_main_thread() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    def run() -> list[object]:
        with signals_while_starting(), Interrupts():
            return [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(run).result() == before


@BOTH
def test_before_a_run_a_signal_is_an_exception_that_is_not_lost(number: int) -> None:
    with signals_while_starting():
        with pytest.raises(KeyboardInterrupt):
            send(number)
        with pytest.raises(KeyboardInterrupt), Interrupts():
            raise AssertionError("a run began though it had been asked to stop")
    with Interrupts():
        pass


IMPORTING = """
import os, signal, sys
from vlrl.process.interrupts import signals_while_starting
with signals_while_starting(as_json="--json" in sys.argv):
    import swallows
    print("went on")
"""
SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
except BaseException:
    pass
"""


def test_a_signal_in_the_middle_of_an_import_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTING, "--json"], env=env, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, json.loads(ended.stdout)["kind"]) == (130, "Interrupted")
    assert ended.stderr == "\nerror: interrupted while the command was starting; nothing was changed\n"


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@BOTH
def test_a_signal_in_a_step_only_asks(number: int) -> None:
    with Interrupts() as interrupts:
        interrupts.graceful = True
        assert not interrupts.requested
        send(number)
        assert interrupts.requested


@BOTH
def test_the_second_signal_does_not_wait(number: int) -> None:
    with Interrupts() as interrupts:
        interrupts.graceful = True
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(number)


@BOTH
def test_without_a_step_to_finish_the_first_does_not_wait(number: int) -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            send(number)
        with pytest.raises(KeyboardInterrupt):  # where the first one was swallowed
            interrupts.check()


@BOTH
def test_while_closing_signals_are_ignored(number: int) -> None:
    with Interrupts() as interrupts:
        interrupts.closing = True
        send(number)
        send(number)


def test_the_handlers_before_are_given_back() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(RuntimeError), Interrupts():
        assert signal.getsignal(signal.SIGTERM) not in before
        raise RuntimeError
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
