"""Whatever dies, at whatever moment, is told as a failure that names it; others go on; nothing stays."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from open_files import left_open, open_files
from x11_traces import MACHINE, descendants, traces

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.actions import Click, Key, OpenApp, TypeText
from vlrl.envs.gui.x11.backend import X11Backend
from vlrl.envs.gui.x11.desktop import Desktop
from vlrl.envs.gui.x11.pool import pool_of
from vlrl.envs.gui.x11.sandbox import shells
from vlrl.envs.gui.x11.sandbox.processes import name_of
from vlrl.envs.gui.x11.tasks import TASKS

VICTIMS = {"Xvfb": "Xvfb|X server", "icewm": "icewm", "mousepad": "mousepad"}


def kill(desktop: Desktop, name: str) -> None:
    [pid] = [pid for pid in desktop.processes() if name_of(pid) == name]
    os.kill(pid, signal.SIGKILL)


_made: list[X11Backend] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    """A test that fails must not leave desktops to the next."""
    yield
    while _made:
        _made.pop().close()


def backend_of(pool: int) -> X11Backend:
    _made.append(X11Backend(MACHINE, TASKS, pool))
    return _made[-1]


def backend_in_an_episode(opens: bool = True) -> X11Backend:
    backend = backend_of(pool=0)
    backend.reset({"name": "editor_note"}, 0)
    if opens:
        backend.perform(OpenApp("mousepad"))
    return backend


def its_desktop(backend: X11Backend) -> Desktop:
    assert backend._desktop is not None
    return backend._desktop


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("phase", ["step", "verdict", "close", "reset"])
def test_a_killed_process_ends_the_episode_as_a_failure(victim: str, phase: str) -> None:
    before = descendants()
    backend = backend_in_an_episode(opens=victim == "mousepad")
    kill(its_desktop(backend), victim)
    if phase == "step":
        with pytest.raises(EnvFailure, match=VICTIMS[victim]) as caught:
            for _ in range(20):  # an app's death is told by its parent, a moment later
                backend.perform(Click((300, 300)))
        assert caught.value.kind == "died"
    elif phase == "verdict":
        with pytest.raises(EnvFailure, match=VICTIMS[victim]):
            for _ in range(2000):
                backend.verdict()
                time.sleep(0.01)
    elif phase == "reset":
        assert backend.reset({"name": "editor_note"}, 0).settled
        assert backend.verdict().progress == 0.0
    backend.close()
    backend.close()
    assert descendants() <= before


@pytest.mark.parametrize("victim", ["Xvfb", "icewm"])
def test_a_desktop_that_died_in_the_pool_is_not_given_out(victim: str) -> None:
    backend = backend_of(pool=1)
    waiting = pool_of(MACHINE)._booting[0].result()
    kill(waiting, victim)
    with pytest.raises(EnvFailure, match=victim):
        for _ in range(2000):
            waiting.check()
            time.sleep(0.01)
    assert backend.reset({"name": "editor_note"}, 0).settled
    backend.close()


def test_the_whole_box_may_be_killed() -> None:
    before = descendants()
    backend = backend_in_an_episode()
    os.kill(its_desktop(backend).processes()[0], signal.SIGKILL)
    with pytest.raises(EnvFailure):
        for _ in range(20):
            backend.perform(TypeText("x"))
    backend.close()
    assert descendants() <= before


def test_others_are_untouched() -> None:
    one, other = backend_in_an_episode(), backend_in_an_episode()
    kill(its_desktop(one), "Xvfb")
    with pytest.raises(EnvFailure):
        for _ in range(20):  # a kill takes effect a moment later
            one.perform(Click((300, 300)))
    one.close()
    for action in list(TASKS["editor_note"].make(np.random.default_rng(0), 1).oracle)[1:]:
        other.perform(action)
    assert len(its_desktop(other).windows()) == 1
    other.close()


def test_an_app_that_is_closed_is_no_failure() -> None:
    backend = backend_in_an_episode()
    for action in (Key(("ctrl", "q")), Click((300, 300))):
        backend.perform(action)
    backend.verdict()
    backend.close()


def test_a_shell_that_is_killed_from_within_is_the_agents_doing() -> None:
    backend = backend_of(pool=0)
    backend.reset({"name": "terminal_count_lines"}, 0)
    backend.perform(OpenApp("xterm"))
    backend.perform(TypeText("kill -9 $PPID $$\n"))
    backend.perform(Click((300, 300)))
    assert its_desktop(backend).windows() == []
    backend.verdict()
    backend.close()


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def play(episodes: int) -> None:
    backend = backend_of(pool=1)
    for seed in range(episodes):
        backend.reset({}, seed)
        backend.perform(Click((300, 300)))
        backend.verdict()
    backend.close()


@pytest.mark.parametrize("episodes", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_resets_leave_nothing(episodes: int) -> None:
    play(3)
    processes, files, opened = descendants(), traces(), open_files()
    num_threads, begin_mib = threading.active_count(), resident_mib()
    play(episodes)
    assert descendants() <= processes
    assert traces() == files
    assert left_open(opened) == {}
    assert threading.active_count() <= num_threads
    assert resident_mib() < begin_mib + 32


def test_a_launcher_that_comes_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The X server may be up before the launcher on a busy machine."""
    late = shells._OUTER.replace("( {inner_box}", "( sleep 0.5; {inner_box}")
    assert late != shells._OUTER
    monkeypatch.setattr(shells, "_OUTER", late)
    Desktop(MACHINE).close()
