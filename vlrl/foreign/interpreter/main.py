"""Requests of vlrl as lines of JSON: python -P main.py FOLDER NAME ARGS LINGER_S.

The folder has episodes.py with `opened(name, args)`, an async context manager. It gives an object whose async
methods are the requests, and which says how many episodes are under way (`num_playing`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).parent))
from marked import VARIABLE, kill_marked  # the folder is not searched by itself: python -P


async def answer(episodes: Any, request: dict[str, Any], out: TextIO) -> None:
    """Call the method that a request names and write its answer."""
    number, method = request.pop("number"), request.pop("method")
    try:
        value = {} if method == "ping" else await getattr(episodes, method)(**request)
        reply = {"number": number, "value": value}
    except Exception as error:  # of the environment: it is for vlrl to count
        reply = {"number": number, "error": f"{type(error).__name__}: {error}"}
    with suppress(BrokenPipeError):  # vlrl is gone, and what it asked with it
        print(json.dumps(reply), file=out, flush=True)


def read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str], patience_s: float = 5.0) -> None:
    """Pass lines on to the loop; when vlrl is gone, end, even if the loop does not answer any more."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, "")
    time.sleep(patience_s)
    kill_marked(os.environ[VARIABLE])
    os._exit(1)


async def run(name: str, args: dict[str, Any], linger_s: float, out: TextIO) -> None:
    """Load the environment and serve until the input ends, or nothing is played for `linger_s`."""
    from episodes import opened

    lines: asyncio.Queue[str] = asyncio.Queue()
    running: set[asyncio.Task[None]] = set()
    async with opened(name, args) as episodes:
        threading.Thread(target=read, args=(asyncio.get_running_loop(), lines), daemon=True).start()
        print(json.dumps({"ready": True}), file=out, flush=True)
        while True:
            try:
                line = await asyncio.wait_for(lines.get(), linger_s)
            except TimeoutError:
                if running or episodes.num_playing:
                    continue
                break
            if not line:
                break
            task = asyncio.create_task(answer(episodes, json.loads(line), out))
            running.add(task)
            task.add_done_callback(running.discard)


def main() -> None:
    """Keep the answers' stream for answers: whatever an environment prints goes to the standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    folder, name, args, linger_s = sys.argv[1:]
    sys.path.insert(0, folder)
    try:
        asyncio.run(run(name, json.loads(args), float(linger_s), out))
    except Exception as error:
        print(json.dumps({"ready": False, "error": f"{type(error).__name__}: {error}"}), file=out, flush=True)
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
