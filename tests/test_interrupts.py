"""The first signal finishes the step, the second does not wait."""

from __future__ import annotations

import os
import signal

import pytest

from vlrl.interrupts import Interrupts

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


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
        assert not interrupts.requested


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
