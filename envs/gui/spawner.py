"""Start processes from one thread that lives as long as this process.

Linux kills a child that asked to die with its parent when the *thread* that started it ends; environments run
in threads that come and go.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Order = tuple[Sequence[str], dict[str, Any], "Future[Any]"]


class _Spawner:
    def __init__(self) -> None:
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        threading.Thread(target=self._serve, name="vlrl-spawner", daemon=True).start()

    def __call__(self, argv: Sequence[str], options: dict[str, Any]) -> subprocess.Popen[bytes]:
        future: Future[Any] = Future()
        self._orders.put((argv, options, future))
        process: subprocess.Popen[bytes] = future.result()
        return process

    def _serve(self) -> None:
        while True:
            argv, options, future = self._orders.get()
            try:
                future.set_result(subprocess.Popen(argv, **options))
            except Exception as error:  # raised again where the process was asked for
                future.set_exception(error)


_lock = threading.Lock()
_spawner: _Spawner | None = None


def _forget() -> None:
    """Forget the spawner in a forked child, where there is no such thread."""
    global _spawner, _lock
    _spawner, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def spawn(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """subprocess.Popen, by that thread.

    Raises:
        OSError: if no process can be started.
    """
    global _spawner
    with _lock:
        if _spawner is None:
            _spawner = _Spawner()
    return _spawner(argv, options)
