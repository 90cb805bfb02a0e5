"""Python in a sandbox: what programs can do, and what they cannot. Without bubblewrap: that it is refused."""

import os
import platform
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_files import left_open, open_files
from PIL import Image

from vlrl.envs.tools import sandbox
from vlrl.envs.tools.declare import Given, Tool, ToolResult
from vlrl.envs.tools.open import open_tools
from vlrl.envs.tools.sandbox import Limits, run_python
from vlrl.errors import ConfigError

BWRAP = shutil.which("bwrap")
PROBE = ["bwrap", "--unshare-user", "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "true"]
SANDBOXED = BWRAP is not None and subprocess.run(PROBE, capture_output=True).returncode == 0
"""`make test` installs bubblewrap where it may. Where it may not, or the kernel gives it no namespaces, there
is left to prove that nothing runs."""


def opened(**options: Any) -> Tool:
    (made,) = open_tools(["python"], {"python": options})
    return made


def refused() -> None:
    with pytest.raises(ConfigError, match=r"tool 'python': .*Install it \(Debian: bubblewrap\)"):
        opened()


def only_sandboxed(test: Callable[..., None]) -> Callable[..., None]:
    return test if SANDBOXED else refused


@pytest.fixture(scope="module")
def python() -> Tool:
    return opened(time_limit_s=2, sandbox="required" if SANDBOXED else "unsafe_subprocess")


def said(result: ToolResult, *, failed: bool = False) -> str:
    assert result.failed == failed, result
    return "\n".join(part for part in result.parts if isinstance(part, str))


def left_running(mark: str) -> list[int]:
    """Processes with a text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


@pytest.fixture
def nothing_is_left() -> Iterator[str]:
    """Seconds for sleep, like no others; no process may have them in its command line afterwards."""
    mark = f"86400.{os.getpid()}{time.monotonic_ns()}"
    yield mark
    deadline = time.monotonic() + 30
    while left_running(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_running(mark) == []


def test_it_computes(python: Tool) -> None:
    assert said(python.run({"code": "import math\nprint(math.comb(10, 3))"})) == "120"
    assert said(python.run({"code": "x = 1"})) == "(nothing was printed)"
    assert "ZeroDivisionError" in said(python.run({"code": "print('before')\n1 / 0"}))
    assert said(python.run({"code": "import sys; sys.exit(3)"})) == "(nothing was printed)"
    assert "SyntaxError" in said(python.run({"code": "if"}))
    assert said(python.run({"code": "print(input())"})).endswith("EOFError: EOF when reading a line")


def test_the_same_program_prints_the_same(python: Tool) -> None:
    code = "print(set('abcdefgh'), sorted(__import__('os').listdir('.')))"
    assert said(python.run({"code": code})) == said(python.run({"code": code}))


def test_images_go_in_and_out(python: Tool) -> None:
    code = (
        "from PIL import Image\nimport numpy as np\n"
        "one, two = Image.open('image_1.png'), Image.open('image_2.png')\n"
        "print(one.size, np.asarray(two).mean())\none.rotate(180).save('out.png')"
    )
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    result = python.run({"code": code}, Given([Image.fromarray(pixels), Image.new("RGB", (5, 5), (9, 9, 9))]))
    printed, turned = result.parts
    assert printed == "(30, 20) 9.0"
    np.testing.assert_array_equal(np.asarray(turned), pixels[::-1, ::-1])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("open('out.png', 'w').write('no image')", "(out.png cannot be read as a PNG image)"),
        (
            "from PIL import Image; Image.new('1', (9000, 9000)).save('out.png')",
            "(out.png has more than 16777216 pixels and is not shown)",
        ),
        ("from PIL import Image; Image.new('L', (9, 9)).save('out.png', 'BMP')", "(out.png cannot be read"),
        ("import os; os.mkfifo('out.png')", "(nothing was printed)"),
        ("import os; os.symlink('/etc/passwd', 'out.png')", "(nothing was printed)"),
        ("import os; os.mkdir('out.png')", "(nothing was printed)"),
        ("open('out.png', 'wb').truncate(9 << 20)", "(nothing was printed)"),
    ],
)
def test_what_is_saved_as_an_image_is_not_trusted(python: Tool, code: str, expected: str) -> None:
    assert expected in said(python.run({"code": code}))


def test_much_output_is_cut(python: Tool) -> None:
    printed = said(python.run({"code": "print('a' * 10**6)\nprint('b' * 10**6)"}))
    assert printed.startswith("aaa") and printed.endswith("bbb") and "left out" in printed
    assert len(printed) < 4200


def test_an_endless_program_is_ended(python: Tool, nothing_is_left: str) -> None:
    # -c, so that the mark is on the command line of a process inside.
    code = (
        f"import os, sys; os.execv(sys.executable, ['python', '-c', 'while True: pass', '{nothing_is_left}'])"
    )
    assert "the program ran longer than 2 s" in said(python.run({"code": code}), failed=True)


def test_an_idle_program_is_ended(nothing_is_left: str) -> None:
    ended = run_python(
        f"import subprocess\nprint('before')\nsubprocess.run(['sleep', '{nothing_is_left}'])",
        {},
        Limits(time_s=0.5),
        sandboxed=SANDBOXED,
    )
    assert ended.out_of_time and ended.status is None and ended.output.startswith(b"before")


def test_endless_output_is_ended(python: Tool) -> None:
    result = python.run({"code": "while True: print('x' * 1000)"})
    assert "the program ran longer than 2 s" in said(result, failed=True)
    assert len(said(result, failed=True)) < 4300


def test_a_memory_bomb_is_ended(python: Tool) -> None:
    assert "MemoryError" in said(python.run({"code": "x = [bytes(10**7) for _ in range(10**6)]"}))


HOARDERS = {
    "memfd": "f = os.memfd_create('x')",
    "System V segment": "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.shmget(0, 1 << 20, 0o1600) == -1: raise OSError(ctypes.get_errno(), '')",
    "message queue": "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.msgget(0, 0o1600) == -1: raise OSError(ctypes.get_errno(), '')",
}
if platform.machine() == "x86_64":
    HOARDERS["i386 call"] = (
        "import ctypes, mmap\n"  # mov eax, 356 (memfd_create); int 0x80; ret
        "page = mmap.mmap(-1, 4096, prot=7); page.write(b'\\xb8\\x64\\x01\\x00\\x00\\xcd\\x80\\xc3')\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "raised = ctypes.CFUNCTYPE(ctypes.c_int)(at)()\n"
        "if raised < 0: raise OSError(-raised, '')"
    )


@only_sandboxed
@pytest.mark.parametrize("hoarder", HOARDERS)
def test_memory_that_no_process_is_charged_for_is_not_given(python: Tool, hoarder: str) -> None:
    code = f"import os\ntry:\n{textwrap.indent(HOARDERS[hoarder], '    ')}\n    print('given')\n"
    code += "except OSError as error:\n    print(os.strerror(error.errno))"
    assert said(python.run({"code": code})) == "Function not implemented"


@only_sandboxed
@pytest.mark.parametrize(("kind", "memory_mib"), [("private", 400), ("shared", 400), ("put away", 180)])
def test_memory_is_bounded_in_sum(kind: str, memory_mib: int) -> None:
    """Four processes, each within its limit; the pages of the third kind are in no page table any more."""
    takes = {
        "private": "x = bytearray(b'x') * (150 << 20)",
        "shared": "m = mmap.mmap(-1, 150 << 20); m.write(b'x' * len(m))",
        "put away": "m = mmap.mmap(-1, 150 << 20)\nfor _ in range(150): m.write(bytes(1 << 20))",
    }
    code = f"import mmap, os, time\nos.fork(), os.fork()\n{takes[kind]}\n"
    code += "m.madvise(mmap.MADV_DONTNEED)\n" if kind == "put away" else ""
    result = opened(memory_mib=memory_mib, time_limit_s=2).run(
        {"code": code + "time.sleep(3); print('held')"}
    )
    assert f"more than {memory_mib} MiB" in said(result, failed=True)


@only_sandboxed
def test_a_flood_of_files_is_ended(python: Tool) -> None:
    code = "for n in range(10**7): open(str(n), 'w').close()"
    assert "files" in said(python.run({"code": code}), failed=True)


@only_sandboxed
def test_a_fork_bomb_is_bounded(python: Tool, nothing_is_left: str) -> None:
    code = (
        "import os, time\nnumber = 1\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        if os.fork() == 0:\n"
        f"            os.execvp('sleep', ['sleep', '{nothing_is_left}'])\n"
        "        number += 1\n"
        "    except BlockingIOError:\n"
        "        break\n"
        "print(number)"
    )
    assert 1 < int(said(python.run({"code": code}))) <= Limits().num_processes
    said(python.run({"code": "import os\nwhile True: os.fork()"}))


@only_sandboxed
def test_what_is_started_in_the_background_ends_with_the_program(python: Tool, nothing_is_left: str) -> None:
    code = (
        "import subprocess\n"
        f"subprocess.Popen(['sleep', '{nothing_is_left}'], start_new_session=True)\nprint('done')"
    )
    assert said(python.run({"code": code})) == "done"


@only_sandboxed
def test_there_is_no_network(python: Tool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # this machine's, and listening
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            f"for place in [('127.0.0.1', {port}), ('192.0.2.1', 80), ('::1', {port})]:\n"
            "    try:\n"
            "        socket.create_connection(place, timeout=2)\n"
            "        print('connected')\n"
            "    except OSError as error:\n"
            "        print(error.strerror)\n"
            "print(socket.if_nameindex())"
        )
        printed = said(python.run({"code": code})).splitlines()
    assert len(printed) == 4 and "connected" not in printed
    assert printed[3] == "[(1, 'lo')]"


@only_sandboxed
def test_nothing_of_the_machine_is_written_or_seen(python: Tool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("for nobody")
    places = ["/x", "/usr/x", "/dev/x", "/dev/shm/x", "/etc/x", "/proc/x", "/tmp/x", str(tmp_path / "x")]
    places.append(f"{sys.prefix}/x")
    hidden = [str(secret), "/etc/passwd", "/etc/shadow", str(Path(__file__))]
    code = (
        "import os\n"
        f"for place in {places}:\n"
        "    try:\n"
        "        open(place, 'w')\n"
        "        print('written', place)\n"
        "    except OSError:\n"
        "        pass\n"
        f"print(*map(os.path.exists, {hidden}))\n"
        "print(os.listdir('/home'), os.getuid() != 0)\n"
        "print(sorted(os.environ))\n"
        "print(len([name for name in os.listdir('/proc') if name.isdigit()]) < 10)\n"
    )
    printed = said(python.run({"code": code})).splitlines()
    assert printed[:2] == ["False False False False", "['model'] True"]
    assert "PYTHONPATH" not in printed[2] and "XDG_CACHE_HOME" not in printed[2]
    assert printed[3] == "True"


@only_sandboxed
def test_a_program_cannot_gain_what_it_was_not_given(python: Tool) -> None:
    code = (
        "import ctypes, os, signal, subprocess\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.unshare(0x10000000))\n"  # a user namespace, in which to mount what has no limit
        "print(libc.mount(b'none', b'/home/model', b'tmpfs', 0, None))\n"
        "print([line for line in open('/proc/self/status') if line.startswith(('CapEff', 'NoNewPrivs'))])\n"
        "import resource\n"
        "try:\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n"
        "except ValueError as error:\n"
        "    print(error)\n"
        "total = 0\n"
        "try:\n"
        "    for number in range(20):\n"
        "        with open(f'{number}', 'wb') as file:\n"
        "            total += file.write(bytes(10 << 20))\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
        "print(total <= 64 << 20)\n"
    )
    printed = said(python.run({"code": code})).splitlines()
    assert printed[:2] == ["-1", "-1"]
    assert printed[2] == r"['CapEff:\t0000000000000000\n', 'NoNewPrivs:\t1\n']"
    assert printed[3:] == ["not allowed to raise maximum limit", "No space left on device", "True"]


@only_sandboxed
def test_the_program_that_watches_can_be_killed_and_nothing_else(python: Tool) -> None:
    result = python.run({"code": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"})
    assert "the program was killed" in said(result, failed=True)
    code = f"import os\ntry:\n    os.kill({os.getpid()}, 0)\nexcept OSError as e:\n    print(e.strerror)"
    assert said(python.run({"code": code})) == "No such process"


@only_sandboxed
@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.05, 1.0])
def test_it_ends_with_the_process_that_started_it(delay_s: float) -> None:
    """Killed before, while or after the sandbox is laid out."""
    mark = f"86400.{os.getpid()}{time.monotonic_ns()}"
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from vlrl.envs.tools.sandbox import Limits, run_python; print(flush=True)\n"
            'code = f\'import subprocess; subprocess.run(["sleep", "{sys.stdin.read()}"])\'\n'
            "run_python(code, {}, Limits(time_s=1000), sandboxed=True)",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert starter.stdin is not None and starter.stdout is not None
    starter.stdin.write(mark.encode())
    starter.stdin.close()
    assert starter.stdout.readline() == b"\n"
    time.sleep(delay_s)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    time.sleep(0.5)  # what was being laid out is laid out by then, and would run on
    ours = {*left_running("--disable-userns"), *left_running(mark)}
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{process}") for process in ours) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{process}") for process in ours)
    assert left_running(mark) == []


def test_programs_run_side_by_side(python: Tool) -> None:
    results: list[str] = []

    def run(number: int) -> None:
        results.append(said(python.run({"code": f"print({number})"})))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    before = open_files()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [str(number) for number in range(6)]
    assert left_open(before) == {}


def test_without_a_sandbox_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.check_sandbox.cache_clear()
    with pytest.raises(ConfigError, match=r"bwrap, .* is missing\. Install it .*unsafe_subprocess"):
        opened()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace'\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(ConfigError, match=r"does not start here: No permissions to create new namespace\. "):
        opened()


def test_the_unsafe_way_must_be_asked_for() -> None:
    python = opened(sandbox="unsafe_subprocess", time_limit_s=1)
    assert said(python.run({"code": "print(6 * 7)"})) == "42"
    assert "ran longer than 1 s" in said(python.run({"code": "while True: pass"}), failed=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sandbox": "none"}, "sandbox='none' is not one of required, unsafe_subprocess"),
        ({"time_limit_s": 0}, "time_limit_s=0 must be above 0"),
        ({"num_processes": 1}, "num_processes=1 must be at least 4"),
        ({"memory": 1}, "does not take the options"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(**options)
