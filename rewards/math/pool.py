"""Ask processes of their own about expressions; see `vlrl.rewards.math.worker`."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys

_CRASHES = {-signal.SIGPROF, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE}
"""Ends that an expression can bring about; SIGPROF is the limit on processor time."""
_START_S, _WALL_FACTOR = 60.0, 20.0


def same_value(answer: str, said: str | None, unevaluated: bool, limit_s: float) -> bool:
    """Whether an expression has the answer's value; False if it takes too long, too much, or is None.

    From any thread: a process is started only when all others are busy, and kept for the next call.

    Args:
        answer: LaTeX.
        said: LaTeX, from a model.
        unevaluated: also accept an expression of a plain number's value.
        limit_s: processor time for each of the two.

    Raises:
        ValueError: if the answer cannot be read within its limits.
        TimeoutError: if the machine gave the process next to no time.
        RuntimeError: if something else ended the process.
    """
    request = {"answer": answer, "said": said, "unevaluated": unevaluated, "limit_s": limit_s}
    line = json.dumps(request).encode() + b"\n"
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    replies = worker.ask(line, limit_s)
    if not replies and worker.ended_in_peace():  # it had used much memory, and left after its last reply
        worker = _Worker()
        replies = worker.ask(line, limit_s)
    if len(replies) == 2 or replies == [b"unread"]:
        _idle.append(worker)
    if replies[:1] == [b"read"]:
        return replies[-1] == b"same"
    raise ValueError(f"the sample's answer {answer!r:.60} cannot be read as an expression within its limits")


class _Worker:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vlrl.rewards.math.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # It must find what this process finds.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._process.stdin and self._process.stdout
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self._buffer = b""

    def ask(self, line: bytes, limit_s: float) -> list[bytes]:
        """Its replies: all of them, or those before what it was asked ended it."""
        try:
            while line:
                line = line[self._requests.write(line) :]
        except BrokenPipeError:
            pass  # it has ended; the next read finds out
        replies: list[bytes] = []
        while len(replies) < 2 and replies != [b"unread"]:
            reply = self._reply(_START_S + _WALL_FACTOR * limit_s)
            if reply is None:
                code = self._process.wait()
                if code not in _CRASHES | {0}:
                    raise RuntimeError(f"the process that reads expressions ended with exit status {code}")
                break
            replies.append(reply)
        return replies

    def ended_in_peace(self) -> bool:
        """Whether it has ended of its own will."""
        return self._process.poll() == 0

    def _reply(self, wall_s: float) -> bytes | None:
        """The next line; None if it ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(wall_s):
                    self._process.kill()
                    self._process.wait()
                    raise TimeoutError(f"no reply about an expression in {wall_s:.0f} s: a busy machine?")
                data = os.read(self._replies.fileno(), 4096)
                if not data:
                    return None
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


_idle: list[_Worker] = []
os.register_at_fork(
    after_in_child=_idle.clear
)  # a forked process has pipes to them, but they are not its own
