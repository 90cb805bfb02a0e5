"""Servers that speak the protocols of OSWorld, OSGym and AndroidWorld, each with a small world behind it.

Written from the descriptions in docs/gui_remote.md. What OSWorld's runs, it truly runs: the same programs in
processes, where `pyautogui` is a stand-in that writes down what it is asked for.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from faulty_http import Asked, FaultyServer, HttpReply
from PIL import Image

WIDTH, HEIGHT = 64, 48

_PYAUTOGUI = """
import json, os
FAILSAFE, PAUSE = True, 0.1
def _note(name):
    def call(*positional, **arguments):
        assert not positional and not FAILSAFE
        with open(os.environ["PYAUTOGUI_LOG"], "a") as file:
            file.write(json.dumps([name, arguments]) + "\\n")
    return call
for _name in "moveTo mouseDown mouseUp click keyDown keyUp scroll hscroll write".split():
    globals()[_name] = _note(_name)
def position():
    return 12, 34
"""


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), shade, np.uint8)).save(out, "PNG")
    return out.getvalue()


def _json(value: Any, status: int = 200) -> HttpReply:
    return HttpReply(status, "application/json", json.dumps(value).encode())


class OSWorld:
    """The server inside a machine. `folder` stands for its disk: the mark is there, and home/user."""

    windows: tuple[str, ...] = ()
    tree = "<desktop-frame/>"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "log"
        (folder / "pyautogui.py").write_text(_PYAUTOGUI)
        self.log.touch()
        self.server = FaultyServer(self.answer)
        self.programs = set[str]()

    def calls(self) -> list[Any]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def answer(self, asked: Asked) -> HttpReply:
        if asked.path == "/screenshot":
            return HttpReply(200, "image/png", png(len(self.calls()) % 256))
        if asked.path == "/accessibility":
            return _json({"AT": self.tree})
        if asked.path == "/file":
            return self._file(self.disk(parse_qs(asked.body.decode())["file_path"][0]))
        if asked.path == "/setup/upload":
            return self._upload(asked)
        body = json.loads(asked.body)
        if asked.path in ("/execute", "/setup/execute"):
            return self._execute(body)
        if asked.path == "/setup/launch":
            return HttpReply(200, "text/html", b"launched successfully")
        if asked.path in ("/setup/activate_window", "/setup/close_window"):
            is_there = body["window_name"] in self.windows
            return HttpReply(200 if is_there else 404, "text/html", b"a window")
        return HttpReply(404, "text/html", b"not found")

    def disk(self, path: str) -> Path:
        """Where a path of the machine is; one that a command printed is already there."""
        return Path(path) if path.startswith(str(self.folder)) else self.folder / path.lstrip("/")

    def _file(self, path: Path) -> HttpReply:
        if not path.exists():
            return _json({"error": "File not found"}, 404)
        return HttpReply(200, "application/octet-stream", path.read_bytes())

    def _upload(self, asked: Asked) -> HttpReply:
        head = f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode()
        parts = message_from_bytes(head + asked.body).get_payload()
        assert isinstance(parts, list)
        path, data = (part.get_payload(decode=True) for part in parts)
        file = self.disk(path.decode())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return HttpReply(200, "text/html", b"File Uploaded")

    def _execute(self, body: Any) -> HttpReply:
        command, shell = body["command"], body["shell"]
        if command[0] == "python":
            assert not shell
            self.programs.add(command[2])
            given = []
            if command[3:]:
                asked = json.loads(command[3])
                asked["file"] = str(self.folder / "mark")
                given = [json.dumps(asked)]
            command = [sys.executable, "-S", "-c", command[2], *given]
        path = {"PYTHONPATH": str(self.folder), "PYAUTOGUI_LOG": str(self.log), "PATH": os.environ["PATH"]}
        path["HOME"] = str(self.folder / "home" / "user")
        try:
            done = subprocess.run(command, shell=shell, env=path, capture_output=True, text=True, timeout=20)
        except OSError as error:
            return _json({"status": "error", "message": str(error)}, 500)
        said = {"output": done.stdout, "error": done.stderr, "returncode": done.returncode}
        return _json({"status": "success", **said})


class OSGym:
    """Its actions are read as OSGym reads them: split at &, then name(arguments)."""

    def __init__(self) -> None:
        self.server = FaultyServer(self.answer)
        self.done: list[tuple[str, str]] = []
        self.vm = 2
        self.reward: Any = 1.0
        self.active = False

    def answer(self, asked: Asked) -> HttpReply:
        body = json.loads(asked.body)
        if asked.path == "/reset":
            self.done, self.active = [], True
            problem = body["task_config"]["instruction"]
            return _json({"screenshot": self._shot(), "problem": problem, "vm_id": self.vm})
        if not self.active or body["vm_id"] != self.vm:
            return _json({"message": f"VM ID {body['vm_id']} not available"}, 400)
        if asked.path == "/shutdown":
            self.active = False
            return _json({"vm_id": self.vm})
        action = body["action"]
        for each in [part.strip() for part in action.split("&")] if "&" in action else [action]:
            match = re.match(r"^(\w+)\(([^)]*)\)$", each)
            if match is None:
                return _json({"message": f"Invalid action format: {each}"}, 400)
            self.done.append((match[1], match[2]))
        over = self.done[-1][0] in ("finish", "call_user")
        self.active = not over
        reward = self.reward if over else 0
        return _json({"screenshot": self._shot(), "is_finish": over, "reward": reward})

    def _shot(self) -> str:
        return base64.b64encode(png(len(self.done))).decode()


class AndroidWorld:
    """A phone whose one task is done when "home" has been pressed."""

    KINDS = ("click", "double_tap", "scroll", "swipe", "input_text", "navigate_home", "navigate_back")
    KINDS += ("keyboard_enter", "open_app", "status", "wait", "long_press", "answer", "unknown")

    def __init__(self) -> None:
        self.server = FaultyServer(self.answer)
        self.actions: list[dict[str, Any]] = []
        self.start()
        self.score: Any = None

    def start(self) -> None:
        """Start as its server does: a suite of two of each task, of the seed 42."""
        self.seed, self.length, self.task = 42, 2, ""

    def answer(self, asked: Asked) -> HttpReply:
        query = asked.query
        match asked.method, asked.path:
            case "GET", "/health":
                return _json({"status": "success"})
            case "GET", "/suite/reinitialize":
                self.seed, self.length = int(query["seed"]), int(query["n_task_combinations"])
            case "GET", "/suite/task_length":
                return _json({"length": self.length})
            case "POST", "/reset":
                assert query["go_home"] == "true"
                self.actions = []
            case "GET", "/screenshot":
                assert query["wait_to_stabilize"] == "true"
                pixels = np.full((HEIGHT, WIDTH, 3), len(self.actions))
                return _json({"pixels": pixels.tolist()})
            case "POST", "/execute_action":
                action = json.loads(asked.body)
                assert action["action_type"] in self.KINDS
                self.actions.append(action)
            case "POST", "/task/initialize":
                self.task = query["task_type"]
            case "GET", "/task/goal":
                return _json({"goal": f"{query['task_type']} {self.seed}"})
            case "GET", "/task/score":
                is_home = any(each["action_type"] == "navigate_home" for each in self.actions)
                return _json({"score": float(is_home) if self.score is None else self.score})
            case "POST", "/task/tear_down":
                self.task = ""
            case _:
                return _json({"detail": "Not Found"}, 404)
        return _json({"status": "success"})
