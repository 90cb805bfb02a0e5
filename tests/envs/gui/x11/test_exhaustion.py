"""What an agent with a terminal does to the machine's memory, and to the desktop itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from x11_traces import MACHINE, descendants

from vlrl.envs.gui.actions import Click, OpenApp, TypeText
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.x11 import wire
from vlrl.envs.gui.x11.backend import X11Backend
from vlrl.envs.gui.x11.desktop import Desktop
from vlrl.envs.gui.x11.sandbox import guard, home
from vlrl.envs.gui.x11.sandbox.home import MOST_BYTES_IN_ALL, OTHER, read_home
from vlrl.envs.gui.x11.sandbox.processes import name_of
from vlrl.envs.gui.x11.tasks import TASKS
from vlrl.protocols import StepResult

InTerminal = Callable[[str], str]

AS_A_CLIENT = (
    'perl -MSocket -e \'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un("/tmp/.X11-unix/X0"));'
    ' syswrite(S, pack("CxSSSSxx", 108, 11, 0, 0, 0)); sysread(S, $_, 8); sysread(S, $_, 1e5);'
    " %s; sleep 600' &"
)
"""A program of its own that speaks to the X server."""
BREAKERS = {
    "the window manager replaced": "icewm --replace &",
    "every client's connection cut": AS_A_CLIENT  # KillClient
    % 'for $c (0 .. 9) { syswrite(S, pack("CCSL", 113, 0, 2, $c << 21 | $_)) for 1 .. 99 }',
    "the server taken": AS_A_CLIENT % 'syswrite(S, pack("CCS", 36, 0, 1))',  # GrabServer
}


@pytest.fixture
def env() -> Iterator[GuiEnv]:
    made = GuiEnv(X11Backend(MACHINE, TASKS, pool=0), reward="progress", max_steps=1000)
    yield made
    made.close()


def typed(env: GuiEnv, text: str) -> StepResult:
    return env.step(env.codec.format(TypeText(text), env.view))


def broken_by(env: GuiEnv, command: str) -> StepResult:
    """The step that ends an episode in whose terminal a command is typed."""
    env.reset({"name": "terminal_sort_out"}, 0)
    env.step(env.codec.format(OpenApp("xterm"), env.view))
    result = typed(env, f"{command}\n")
    while not result.terminated:
        time.sleep(0.02)
        result = env.step(env.codec.format(Click((700, 500)), env.view))
    return result


def test_sparse_files_are_read_in_bounds(desktop: Desktop, in_terminal: InTerminal) -> None:
    in_terminal("for i in {1..300}; do truncate -s 4M s$i; done")
    tree = read_home(desktop.home)
    assert sum(len(content) for content in tree.values()) <= MOST_BYTES_IN_ALL + 300 * len(OTHER)
    assert len([path for path in tree if path.startswith("s")]) == 300  # none of them is overlooked


def test_a_folder_of_many_names_is_read_in_bounds(
    desktop: Desktop, in_terminal: InTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_terminal("touch a; perl -e 'for (1 .. 3000) { open F, \">.f$_\" }'")
    monkeypatch.setattr(home, "MOST_LOOKED_AT", 1000)
    assert read_home(desktop.home) == {}  # the newest come first; what is not seen counts as removed


def test_devices_and_run_are_no_place_to_keep_things(in_shared_terminal: InTerminal) -> None:
    for place in ("/dev", "/run", "/dev/pts"):
        assert "cannot touch" in in_shared_terminal(f"touch {place}/x"), place
    sizes = in_shared_terminal("df --output=target,size -B1 /dev/shm /tmp /home/user | tail -n 3")
    assert all(int(size) <= 1 << 26 for _, size in map(str.split, sizes.splitlines())), sizes


def test_a_process_has_a_limit(in_shared_terminal: InTerminal) -> None:
    assert "Out of memory" in in_shared_terminal("perl -e '$x = \"a\" x 1.5e9; print length $x'")
    shared = in_shared_terminal("python3 -c 'import mmap; mmap.mmap(-1, 3 << 29); print(\"given\")'")
    assert "given" not in shared


@pytest.mark.parametrize("number", [319, 29, 68], ids=["memfd_create", "shmget", "msgget"])
def test_memory_that_no_process_is_charged_for_is_not_given(
    in_shared_terminal: InTerminal, number: int
) -> None:
    said = in_shared_terminal(f"perl -e 'print syscall({number}, 0, 0, 01600), \" $!\"'")
    assert "-1 Function not implemented" in said


def test_a_shell_makes_no_namespaces(in_shared_terminal: InTerminal) -> None:
    assert "unshare failed" in in_shared_terminal("unshare --user true")
    assert "uid_map" in in_shared_terminal("cat /proc/self/uid_map && echo uid_map")
    assert "namespace" in in_shared_terminal("bwrap --ro-bind / / true && echo made")


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ("MOST_MEMORY", "perl -e 'fork; fork; $x = \"a\" x 5e7; sleep 600' &"),
        ("MOST_FILES", "perl -e 'open F, \">/tmp/f$_\" for 1 .. 8000' &"),
        ("MOST_FILES", "perl -e 'open F, \">/dev/shm/f$_\" for 1 .. 8000' &"),
    ],
)
def test_too_much_in_all_ends_the_episode_as_the_agents_failure(
    env: GuiEnv, limit: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, limit, {"MOST_MEMORY": 160 << 20, "MOST_FILES": 5000}[limit])
    before = descendants()
    result = broken_by(env, command)
    assert result.info["agent_error"] is True and result.info["success"] is False
    assert env.backend.verdict().progress == 0.0
    env.reset({"name": "editor_note"}, 0)  # the next episode is none the worse
    assert typed(env, "x").info["agent_error"] is False
    env.close()
    assert descendants() <= before


@pytest.mark.parametrize("how", BREAKERS)
def test_who_breaks_the_desktop_has_failed(env: GuiEnv, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "REPLY_S", 2.0)
    result = broken_by(env, BREAKERS[how])
    assert result.info["agent_error"] is True and result.terminated
    assert result.observation.images[0].shape == (600, 800, 3)


def test_an_app_that_crashes_is_gone_and_nothing_more(env: GuiEnv) -> None:
    """Its bugs are there for the agent to find: they are not a failure of the environment."""
    env.reset({"name": "editor_note"}, 0)
    env.step(env.codec.format(OpenApp("mousepad"), env.view))
    desktop = env.backend._desktop  # type: ignore[attr-defined]
    [pid] = [pid for pid in desktop.processes() if name_of(pid) == "mousepad"]
    os.kill(pid, signal.SIGSEGV)
    for _ in range(50):
        result = env.step(env.codec.format(Click((300, 300)), env.view))
        assert not result.terminated
        if not desktop.windows():
            break
        time.sleep(0.02)
    assert desktop.windows() == []
