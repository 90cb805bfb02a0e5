"""What an agent with a terminal tries: the network, this machine's files, other desktops, the verifier."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from x11_traces import MACHINE

from vlrl.envs.gui.actions import OpenApp, TypeText
from vlrl.envs.gui.x11.desktop import Desktop
from vlrl.envs.gui.x11.sandbox.home import OTHER, read_home

InTerminal = Callable[[str], str]


def test_there_is_no_network(in_shared_terminal: InTerminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "refused" in in_shared_terminal(f"echo hello > /dev/tcp/127.0.0.1/{port}")
        assert "unreachable" in in_shared_terminal("echo hello > /dev/tcp/192.0.2.1/80")
    devices = in_shared_terminal("cat /proc/net/dev")
    assert [line.split(":")[0].strip() for line in devices.splitlines()[2:]] == ["lo"]


def test_this_machines_files_are_not_there(in_shared_terminal: InTerminal, tmp_path: Path) -> None:
    secret = tmp_path / "answer.txt"
    secret.write_text("the answer")
    assert "No such file" in in_shared_terminal(f"cat {secret}")
    assert "No such file" in in_shared_terminal(f"cat {Path(__file__).resolve()}")
    assert "No such file" in in_shared_terminal("ls /root /home/user/../../etc/shadow")
    assert set(in_shared_terminal("ls /home").split()) == {"user"}


def test_nothing_but_home_and_tmp_can_be_written(in_shared_terminal: InTerminal) -> None:
    places = ("/usr/bin", "/etc", "/srv/desktop", "/tmp/.X11-unix", "/proc/sys/kernel", "/", "/run/desktop")
    for place in places:
        assert "cannot touch" in in_shared_terminal(f"touch {place}/x"), place


def test_the_agent_has_no_rights(in_shared_terminal: InTerminal) -> None:
    assert in_shared_terminal("id -u").strip() == "1000"
    status = in_shared_terminal("cat /proc/self/status")
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


def test_no_other_process_is_seen(in_shared_terminal: InTerminal) -> None:
    seen = set(in_shared_terminal("cat /proc/[0-9]*/comm").split())
    assert not seen & {"Xvfb", "icewm", "python", "python3"} and "bash" in seen


def test_another_desktop_is_not_reached(in_shared_terminal: InTerminal) -> None:
    other = Desktop(MACHINE)
    try:
        assert in_shared_terminal("ls /tmp/.X11-unix").split() == ["X0"]
        before = other.look().pixels
        in_shared_terminal("DISPLAY=:0 xterm -e true; DISPLAY=:1 xterm -e true")
        assert other.windows() == [] and (other.look().pixels == before).all()
    finally:
        other.close()


def test_the_screens_memory_and_the_launcher_are_hidden(in_shared_terminal: InTerminal) -> None:
    assert in_shared_terminal("ls -A /run").strip() == ""
    assert "Xvfb_screen0" not in in_shared_terminal("find / -name 'Xvfb_screen0' -not -path '/proc/*'")


def test_a_line_that_lost_its_end_stops_no_later_command(desktop: Desktop, in_terminal: InTerminal) -> None:
    """The fixture's own: keys are lost while no window has the focus."""
    desktop.perform(TypeText("{ ls > .part; echo 'half\n"))
    assert in_terminal("echo whole") == "whole\n"


def test_an_app_cannot_be_killed_from_the_terminal(desktop: Desktop, in_terminal: InTerminal) -> None:
    desktop.perform(OpenApp("mousepad"))
    desktop.perform(OpenApp("xterm"))
    desktop.perform(TypeText("kill -9 -1\n"))
    desktop.check()
    assert "Mousepad" in [window.app for window in desktop.windows()]


def test_links_planted_in_the_home_are_not_followed(
    desktop: Desktop, in_terminal: InTerminal, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    in_terminal(
        f"ln -s {secret} a; ln -s /etc/passwd b; ln -s / c; ln -s ../../.. d; mkfifo e; mkdir f; ln -s / f/g;"
        " ln -s f h; ln -s i i; truncate -s 1G j; touch k; ln k l"
    )
    tree = read_home(desktop.home)
    assert {name: tree[name] for name in "abcdehij"} == dict.fromkeys("abcdehij", OTHER)
    assert tree["f/g"] == OTHER and tree["k"] == tree["l"] == b""
    assert not [path for path in tree if path.startswith(("c/", "d/", "h/", "f/g/"))]


def test_the_home_may_be_moved_under_the_verifier(desktop: Desktop, in_terminal: InTerminal) -> None:
    in_terminal("mkdir deep; cd deep; mkdir a; touch a/b; cd ..; mv deep/a .; rm -r deep; ln -s / deep")
    tree = read_home(desktop.home)
    assert tree["deep"] == OTHER and "a/b" in tree


def test_much_in_the_home_is_read_in_bounds(desktop: Desktop, in_terminal: InTerminal) -> None:
    in_terminal("for i in {1..3000}; do : > f$i; done; p=.; for i in {1..40}; do p=$p/d; done; mkdir -p $p")
    assert len(read_home(desktop.home)) <= 2000


def test_a_full_disk_and_many_processes_stay_inside(desktop: Desktop, in_terminal: InTerminal) -> None:
    assert "No space left" in in_terminal("x=$(head -c 100M /dev/zero 2>&1 > big); rm big; echo $x")
    in_terminal("perl -e 'for (1 .. 400) { fork // next or do { sleep 100; exit } }'")
    assert len(desktop.processes()) < 300


@pytest.mark.parametrize("path", ["../out.txt", "/tmp/vlrl-out.txt"])
def test_files_of_a_task_stay_in_the_home(desktop: Desktop, path: str) -> None:
    with pytest.raises(ValueError):
        desktop.write({path: b"x"})
