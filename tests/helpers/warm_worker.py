"""Starts Ray's workers in the tests: a rank or an engine is a fork of a process that has its imports.

    raylet ──► this file ──► template of the same variables ──► fork: Ray's default_worker.py
                 ▲  waits for its exit code                        │
                 └─────────────────────────────────────────────────┘

Ray runs this file in the place of its own setup_worker.py. A template is an ordinary process that has
imported what such a worker imports, with exactly the environment variables that the worker would be started
with. Ranks and engines have two for each set of variables, taken in turn, so that ranks of one group, and a
run and its resumption, have their sets in different orders, as processes that are started have. All other
workers are forks of one that has imported Ray, and get their variables after it.
"""

from __future__ import annotations

import array
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

FOLDER_VARIABLE = "VLRL_TEST_WARM_WORKERS"
"""Names the folder that templates live in, and for as long as it is there."""
RAYLET_VARIABLE = "RAY_RAYLET_PID"
"""Ray's library keeps it from when it is imported."""
IMPORTS = {
    "other": ("ray", "vlrl.cluster"),
    "rank": ("warm_rank",),
    "engine": (
        "vlrl.engine.engine",
        "vllm.v1.engine.llm_engine",
        "vllm.v1.worker.cpu_worker",
        "vllm.model_executor.models.registry",
    ),
}
CHUNK = 1 << 20


@contextmanager
def warm_workers() -> Iterator[None]:
    """Every Ray that starts in the block starts its workers so; their templates end with it."""
    from ray._private import ray_constants

    folder = tempfile.mkdtemp(prefix="vlrl-warm-")  # not pytest's: a socket's path is short
    try:
        with (
            patch.dict(os.environ, {FOLDER_VARIABLE: folder}),
            patch.object(ray_constants, "SETUP_WORKER_FILENAME", __file__),
        ):
            yield
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Be the worker's stand-in: have it forked, and exit as it does."""
    if sys.argv[1:2] == ["--template"]:
        serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[3], Path(os.environ[FOLDER_VARIABLE]))
        return
    context, rest = ray_arguments(sys.argv[1:])
    variables = context.get("env_vars") or {}
    code = forked(kind_of(variables), variables, rest)
    if code < 0:  # as the signal that ended the worker would end this
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def ray_arguments(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The runtime environment that Ray asks for, and what is the worker's own."""
    context: dict[str, Any] = {}
    rest = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name == "--serialized-runtime-env-context":
            context = json.loads(value)
        elif name != "--language":
            rest.append(argument)
    return context, rest


def kind_of(variables: dict[str, str]) -> str:
    """What a worker with these variables will be; one that has a GPU imports for itself."""
    if variables.get("CUDA_VISIBLE_DEVICES"):
        return "other"
    if "DS_ACCELERATOR" in variables:
        return "rank"
    return "engine" if any(name.startswith("VLLM_") for name in variables) else "other"


def forked(kind: str, variables: dict[str, str], arguments: list[str]) -> int:
    """The exit code of a worker that a template forks."""
    import fcntl

    folder = Path(os.environ[FOLDER_VARIABLE])
    before, num_templates = ({}, 1) if kind == "other" else (variables, 2)
    same = json.dumps([kind, os.environ.get(RAYLET_VARIABLE), sorted(before.items())])
    key = hashlib.sha256(same.encode()).hexdigest()[:12]
    os.environ.update(before)
    with open(folder / key, "a+") as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        turns.write("x")
        turns.flush()
        address = str(folder / f"{key}-{turns.tell() % num_templates}")
        channel = socket.socket(socket.AF_UNIX)
        try:
            channel.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):  # none yet, or it was killed
            Path(address).unlink(missing_ok=True)
            start_template(address, kind)
            channel.connect(address)
    os.environ.update(variables)
    with channel:
        request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
        files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        channel.sendmsg([len(request).to_bytes(8, "little")], files)
        channel.sendall(request)
        child = int.from_bytes(channel.recv(8), "little")
        if not child:  # the template could not import, see its log
            return 1

        def hand_on(number: int, frame: object) -> None:
            os.kill(child, number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, hand_on)
        return int.from_bytes(channel.recv(8) or b"\1", "little", signed=True)


def start_template(address: str, kind: str) -> None:
    """Start a template that listens there; whoever connects waits until it has imported."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    with open(f"{address}.log", "wb") as log:
        subprocess.Popen(
            [sys.executable, __file__, "--template", str(listener.fileno()), kind],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def serve(listener: socket.socket, kind: str, folder: Path) -> None:
    """Import, then fork a worker for each connection, and tell it how the worker ended."""
    import gc
    import importlib

    for name in IMPORTS[kind]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    waiting: dict[int, socket.socket] = {}
    watched: list[Any] = [listener, woken]
    while folder.exists():
        ready, _, _ = select.select(watched, [], [], 1.0)
        if woken in ready:
            os.read(woken, CHUNK)
        while waiting:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            with waiting.pop(child) as channel:
                reply(channel, os.waitstatus_to_exitcode(status))
        if listener in ready:
            channel, _ = listener.accept()
            request, files = received(channel)
            child = os.fork()
            if not child:
                listener.close()
                channel.close()
                become(request, files)
                return
            for file in files:
                os.close(file)
            waiting[child] = channel
            reply(channel, child)


def reply(channel: socket.socket, number: int) -> None:
    """Tell who waits, if it is still there."""
    try:
        channel.sendall(number.to_bytes(8, "little", signed=True))
    except OSError:
        return


def received(channel: socket.socket) -> tuple[Any, list[int]]:
    """A request and its files."""
    head, ancillary, _, _ = channel.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    files = array.array("i")
    files.frombytes(ancillary[0][2])
    missing, data = int.from_bytes(head, "little"), bytearray()
    while len(data) < missing:
        data += channel.recv(missing - len(data))
    return json.loads(data), list(files)


def become(request: Any, files: list[int]) -> None:
    """Run Ray's worker in this fork, with the environment, folder and streams that it would have."""
    import random
    import runpy

    import numpy as np

    arguments, environment, folder = request
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.setsid()  # who ends its group ends no template
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    random.seed()
    np.random.seed()
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(arguments[0])
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
