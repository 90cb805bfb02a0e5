"""The program inside the sandbox: sets limits, runs the code that it reads, hands back the image it saved.

Its source is given to Python with -c, so nothing of vlrl can be imported here. Its standard input holds a
line of JSON, see `sandbox._header`, then the files that its `sizes` names. On the pipe whose number is its
argument it answers with the code's exit status as a line, then the image.
"""

import contextlib
import json
import os
import resource
import select
import signal
import stat
import subprocess
import sys


def main() -> None:
    """Do so."""
    header = json.loads(sys.stdin.buffer.readline())
    for name, size in header["sizes"].items():
        with open(name, "wb") as file:
            file.write(sys.stdin.buffer.read(size))
    for name, (soft, hard) in header["limits"].items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    with contextlib.suppress(BrokenPipeError), os.fdopen(int(sys.argv[1]), "wb") as reply:
        # -s and -P: nothing of the user's own folders, and no file of the working folder, shadows a module.
        process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-B", header["code"]], stdin=subprocess.DEVNULL
        )
        watch(process, reply.fileno(), header["wall_s"])
        process.kill()
        reply.write(b"%d\n" % process.wait())
        reply.write(saved_image(header["image"], header["most_bytes"]))
    if header["alone"]:
        os.kill(-1, signal.SIGKILL)  # everything in this namespace: nobody else may be left to end it


def watch(process: "subprocess.Popen[bytes]", reply: int, wall_s: float) -> None:
    """Wait until the process has ended, time is over, or nobody reads the reply any longer."""
    poller = select.poll()
    poller.register(os.pidfd_open(process.pid), select.POLLIN)
    poller.register(reply, 0)  # reports that its other end is closed, and nothing else
    poller.poll(wall_s * 1000)


def saved_image(name: str, most_bytes: int) -> bytes:
    """A file's bytes; nothing if it is missing, no plain file, or too large."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
            return b""
        with os.fdopen(handle, "rb") as file:
            return file.read(most_bytes)
    except OSError:
        return b""


if __name__ == "__main__":
    main()
