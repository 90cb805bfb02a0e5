"""The program inside the sandbox: sets limits, runs the code that it reads, hands back the picture it saved.

Its source is given to Python with -c, so nothing of vlrl can be imported here. Its standard input holds a
line of JSON, see `sandbox._header`, then the files that its `sizes` names. On the pipe whose number is its
argument it answers with the code's exit status as a line, then the picture.
"""

import json
import os
import resource
import stat
import subprocess
import sys


def main() -> None:
    """Do so."""
    with os.fdopen(int(sys.argv[1]), "wb") as reply:
        header = json.loads(sys.stdin.buffer.readline())
        for name, size in header["sizes"].items():
            with open(name, "wb") as file:
                file.write(sys.stdin.buffer.read(size))
        for name, (soft, hard) in header["limits"].items():
            resource.setrlimit(getattr(resource, name), (soft, hard))
        # -s and -P: nothing of the user's own folders, and no file of the working folder, shadows a module.
        command = [sys.executable, "-s", "-P", "-B", header["code"]]
        try:
            status = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
        except OSError as error:
            print(error, flush=True)
            status = 1
        reply.write(b"%d\n" % status)
        reply.write(saved_picture(header["picture"], header["most_bytes"]))


def saved_picture(name: str, most_bytes: int) -> bytes:
    """A file's bytes; nothing if it is missing, no plain file, or too large."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= most_bytes else b""


if __name__ == "__main__":
    main()
