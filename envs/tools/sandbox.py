"""Run a model's Python without network, without the machine's files, and within limits: by bubblewrap.

Inside there are /usr, this Python and its packages, all read-only, a home of 64 MiB that is forgotten,
processes of its own, and no network device. Ending bubblewrap ends everything that was started inside.

Started by root, the code runs as a user without name: the kernel does not limit root's number of processes.
That takes two of them: the outer one lays out the files with root's rights, the inner one gives them up.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vlrl.envs.process_tree import num_files, tree, usage_of
from vlrl.envs.syscall_filter import syscall_filter
from vlrl.errors import ConfigError, ResourceError

HOME = "/home/model"
IMAGE = "out.png"
"""What the code saves for the model to see."""

_CODE = "code.py"
_NOBODY = "61873"  # an id that no user of this machine has
_WALL_FACTOR = 4.0
_KEPT_BYTES = 1 << 16
_MOST_IMAGE_BYTES = 1 << 23
_FILE_BYTES = 1 << 25
_TMPFS_BYTES = 1 << 26
_NUM_FILES = 64
_MOST_FILES = 20_000  # each costs the kernel a kilobyte that no limit on bytes of a file system counts
_LOOK_S = 0.05
_ADDRESS_FACTOR = 3
"""Address spaces of all processes together over `Limits.memory_mib`: a child has its parent's again."""
_PLACES = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/etc/ld.so.cache")
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of a set is part of what the model sees (law 8)
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "TMPDIR": HOME,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the code may use.

    Attributes:
        time_s: processor time of one process; wall time is four times that, so that a busy machine ends no
            code that computes.
        memory_mib: address space of one process, and memory of all of them together.
        num_processes: processes and threads at once, the sandbox's own two included.
    """

    time_s: float = 5.0
    memory_mib: int = 1024
    num_processes: int = 8


@dataclass(frozen=True, slots=True)
class Ended:
    """How the code ended.

    Attributes:
        output: what it printed, errors too; of much, the beginning and the end.
        status: its exit status, the negative number of the signal that ended it, None if it ran out of wall
            time or ended the program that watches it.
        image: bytes of the file IMAGE, empty if there is none.
        out_of_time: whether a limit on time ended it.
        exceeded: what it had too much of when it was ended for that, in words.
    """

    output: bytes
    status: int | None
    image: bytes
    out_of_time: bool
    exceeded: str = ""


@functools.cache  # of success alone: what is raised is not kept
def check_sandbox() -> None:
    """Try the sandbox, once a process.

    Raises:
        ConfigError: if that does not work here, saying what is missing.
    """
    remedy = (
        "Install it (Debian: bubblewrap), with user namespaces allowed to it; or, where the whole machine "
        "may be lost to a model's code, set the tool's option sandbox: unsafe_subprocess"
    )
    if shutil.which("bwrap") is None:
        raise ConfigError(
            f"tool 'python': the program bwrap, of the sandbox bubblewrap, is missing. {remedy}"
        )
    ended = run_python("print(6 * 7)", {}, Limits(), sandboxed=True)
    if ended.status != 0 or ended.output != b"42\n":
        said = ended.output.decode(errors="replace").strip() or f"exit status {ended.status}"
        raise ConfigError(f"tool 'python': the sandbox does not start here: {said:.300}. {remedy}")


def run_python(code: str, files: Mapping[str, bytes], limits: Limits, *, sandboxed: bool) -> Ended:
    """Run a program in a process of its own.

    Args:
        code: the program.
        files: plain name → content, in its working folder.
        limits: see `Limits`.
        sandboxed: False is a plain process in an empty folder, with this user's rights.

    Raises:
        ResourceError: if no process can be started.
    """
    source, program = Path(__file__).with_name("sandbox_runner.py").read_text(), sys.executable
    reading, writing = os.pipe()
    with (
        tempfile.TemporaryFile() as request,
        tempfile.TemporaryFile() as filtered,
        tempfile.TemporaryDirectory(prefix="vlrl-python-") as folder,
        os.fdopen(reading, "rb", buffering=0) as reply,
    ):
        contents = {_CODE: code.encode(), **files}
        request.write(_header({name: len(content) for name, content in contents.items()}, limits, sandboxed))
        request.writelines(contents.values())
        request.seek(0)
        filtered.write(syscall_filter() or b"")
        filtered.seek(0)
        command = [
            *(_bubblewrap(filtered.fileno()) if sandboxed else []),
            program,
            "-s",
            "-P",
            "-c",
            source,
            str(writing),
        ]
        try:
            process = subprocess.Popen(
                command,
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writing, filtered.fileno()),
                start_new_session=True,
                cwd=folder,
                env=_ENVIRONMENT if sandboxed else {**_ENVIRONMENT, "HOME": folder, "TMPDIR": folder},
            )
        except OSError as error:
            raise ResourceError(f"tool 'python': no process can be started: {error}") from error
        finally:
            os.close(writing)
        return _watch(process, reply.fileno(), limits, HOME if sandboxed else "")


def _header(sizes: Mapping[str, int], limits: Limits, sandboxed: bool) -> bytes:
    cpu_s, memory = max(1, round(limits.time_s)), limits.memory_mib << 20
    rlimits = {
        "RLIMIT_CPU": (cpu_s, cpu_s + 1),
        "RLIMIT_AS": (memory, memory),
        "RLIMIT_FSIZE": (_FILE_BYTES, _FILE_BYTES),
        "RLIMIT_NOFILE": (_NUM_FILES, _NUM_FILES),
        "RLIMIT_CORE": (0, 0),
    }
    if sandboxed:  # elsewhere it would count all of this user's processes
        rlimits["RLIMIT_NPROC"] = (limits.num_processes, limits.num_processes)
    said = {
        "limits": rlimits,
        "sizes": sizes,
        "code": _CODE,
        "image": IMAGE,
        "most_bytes": _MOST_IMAGE_BYTES,
        "wall_s": _WALL_FACTOR * limits.time_s + 5,  # should nobody be left to end it
        "alone": sandboxed,
    }
    return json.dumps(said).encode() + b"\n"


def _watch(process: subprocess.Popen[bytes], reply: int, limits: Limits, home: str) -> Ended:
    """Read both pipes until the program that watches the code closes its own, then end whatever is left."""
    assert process.stdout is not None
    printed, replied, exceeded = process.stdout.fileno(), b"", ""
    output, deadline = _Kept(), time.monotonic() + _WALL_FACTOR * limits.time_s
    with selectors.DefaultSelector() as selector, process.stdout:
        selector.register(printed, selectors.EVENT_READ)
        selector.register(reply, selectors.EVENT_READ)
        look_at = time.monotonic() + _LOOK_S
        while reply in selector.get_map() and not exceeded and (now := time.monotonic()) < deadline:
            if now >= look_at:
                exceeded, look_at = _excess(process.pid, limits, home), time.monotonic() + _LOOK_S
            for key, _ in selector.select(min(deadline - now, _LOOK_S)):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fd)
                elif key.fd == printed:
                    output.add(data)
                elif len(replied) <= _MOST_IMAGE_BYTES + 16:
                    replied += data
        late = reply in selector.get_map() and not exceeded
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.set_blocking(printed, False)
        with suppress(BlockingIOError):  # a process that has left the group, without a sandbox
            while data := os.read(printed, 1 << 16):
                output.add(data)
    line, _, image = replied.partition(b"\n")
    status = int(line) if line.removeprefix(b"-").isdigit() else None
    return Ended(output.bytes(), status, image, late or status == -signal.SIGXCPU, exceeded)


def _excess(root: int, limits: Limits, home: str) -> str:
    """What its processes together have too much of; empty if they keep their limits; `home` is a box's."""
    pids, most = tree(root), limits.memory_mib << 20
    usage = usage_of(pids)
    if usage.memory > most or usage.address > _ADDRESS_FACTOR * most:
        return f"more than {limits.memory_mib} MiB of memory"
    if home and num_files(f"/proc/{pids[-1]}/root{home}") > _MOST_FILES:
        return f"more than {_MOST_FILES} files"
    return ""


class _Kept:
    """The beginning and the end of what is added."""

    def __init__(self) -> None:
        self._head, self._tail, self._num_bytes = b"", b"", 0

    def add(self, data: bytes) -> None:
        self._num_bytes += len(data)
        taken = data[: _KEPT_BYTES - len(self._head)]
        self._head += taken
        self._tail = (self._tail + data[len(taken) :])[-_KEPT_BYTES:]

    def bytes(self) -> bytes:
        left_out = self._num_bytes - len(self._head) - len(self._tail)
        between = b"\n(%d bytes left out)\n" % left_out if left_out else b""
        return self._head + between + self._tail


def _bubblewrap(filtered: int) -> tuple[str, ...]:
    """The command that runs the command after it in the sandbox; a descriptor has the filter of its calls."""
    apart = ("--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    bwrap = shutil.which("bwrap") or "bwrap"
    outside = (bwrap, *apart, "--die-with-parent", "--new-session", *_system(), "--proc", "/proc")
    inside = (
        *("--unshare-user", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL"),
        *("--dev", "/dev", "--remount-ro", "/dev"),
        *("--size", str(_TMPFS_BYTES), "--tmpfs", HOME, "--remount-ro", "/", "--chdir", HOME),
        *(("--seccomp", str(filtered)) if syscall_filter() else ()),
        "--",
    )
    if os.geteuid() != 0:
        return (*outside, *inside)
    # Bubblewrap itself needs a /tmp to start from.
    folders = ("--dev", "/dev", "--perms", "0755", "--dir", HOME, "--perms", "0755", "--dir", "/tmp")
    drop = ("setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups")
    return (*outside, *folders, "--", *drop, bwrap, "--ro-bind", "/", "/", *inside)


@functools.cache
def _system() -> Sequence[str]:
    """The files inside: Debian's, and this Python with its packages."""
    # A virtual environment's Python is a link, perhaps by way of others.
    roots = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    roots = {root for root in roots if Path("/usr") not in (root, *root.parents)}
    arguments: list[str] = []
    # Bubblewrap would shut the folders above to all but their owner.
    for above in sorted({str(above) for path in (*roots, Path(HOME)) for above in path.parents} - {"/"}):
        arguments += ["--perms", "0755", "--dir", above]
    for place in _PLACES:
        link = os.path.islink(place)
        arguments += ["--symlink", os.readlink(place), place] if link else ["--ro-bind-try", place, place]
    for root in sorted(roots):
        arguments += ["--ro-bind", str(root), str(root)]
    return arguments
