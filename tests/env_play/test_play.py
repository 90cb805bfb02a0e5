"""A person's play, driven over HTTP as the page drives it, and what is trained on what they save."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from browser_page import BrowserPage
from builders import make_config
from PIL import Image

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.env_play.game import PlayedGame
from vlrl.env_play.server import PlayServer
from vlrl.environment.observe import pixels_of
from vlrl.environment.plain import PlainEnv
from vlrl.errors import ConfigError, DataError, NoOracle, ResourceError
from vlrl.processors.auto import open_processor
from vlrl.protocols import Observation, StepResult, Video

ODD = str(Path(__file__).parents[2] / "examples" / "odd_one_out.py") + ":OddOneOut"
HERE = __file__


class Slow:
    """A video, no oracle, async; tells the thread that every call is made in, and breaks when told to."""

    tools = ({"type": "function", "function": {"name": "look"}},)

    def __init__(self) -> None:
        self.threads = {threading.get_ident()}

    async def reset(self, task: Any, seed: int) -> Observation:
        self.threads.add(threading.get_ident())
        frames = [np.full((4, 6, 3), 20 * i, np.uint8) for i in range(4)]
        return Observation(videos=[Video(frames, 2.0)])

    async def step(self, action: str) -> StepResult:
        self.threads.add(threading.get_ident())
        if action == "break":
            raise ZeroDivisionError("by zero")
        info = {"threads": len(self.threads), "speed": np.float32(0.5), "where": (1, 2)}
        return StepResult(Observation("done", role="tool"), 0.5, action == "end", False, info)

    async def close(self) -> None:
        """Nothing is held."""


class Client:
    """What the page does, without the page."""

    def __init__(self, server: PlayServer) -> None:
        self.server, self.place = server, urlsplit(server.url)

    def raw(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.place.hostname or "", self.place.port, timeout=20)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def ask(self, what: str, **asked: Any) -> tuple[int, Any]:
        status, content = self.raw("POST", self.place.path + what, json.dumps(asked).encode())
        return status, json.loads(content)

    def __call__(self, what: str, **asked: Any) -> Any:
        status, value = self.ask(what, **asked)
        assert status == 200, value
        return value


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Any]:
    """`play(name, option=…)`: a client of a server that plays the environment."""
    opened: list[tuple[PlayServer, threading.Thread]] = []

    def start(name: str = ODD, seed: int = 0, **options: Any) -> Client:
        server = PlayServer(name, options, {}, seed=seed, out=tmp_path / "out")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        opened.append((server, thread))
        return Client(server)

    yield start
    for server, thread in opened:
        server.shutdown()
        thread.join()
        server.__exit__()


def right(view: Any, **options: Any) -> str:
    with PlainEnv(ODD, options) as env:
        env.reset({}, int(view["seed"]))
        return str(env.call("oracle"))


def wrong(view: Any) -> str:
    """A click on a disc that is not the one."""
    corner, other = "<action>28, 28</action>", "<action>84, 84</action>"
    return corner if right(view) != corner else other


def test_an_episode_is_played_and_seen(play: Any) -> None:
    client = play(seed=4)
    view = client("view")
    assert (view["name"], view["seed"], view["tag"]) == (ODD, "4", "action")
    assert "Click it" in view["system_prompt"]
    (image,) = view["observation"]["images"]
    assert (image["width"], image["height"]) == (224, 224)
    assert image["uri"].startswith("data:image/png;base64,")
    view = client("act", text="that one")
    assert view["turns"] == [
        {
            "action": "that one",
            "reward": 0.0,
            "invalid": True,
            "reply": "That is no click. Write, for instance, <action>30, 112</action>.",
        }
    ]
    view = client("act", text=right(view))
    assert (view["is_over"], view["success"], view["total"], len(view["turns"])) == (True, True, 1.0, 2)
    status, value = client.ask("act", text="more")
    assert status == 409
    assert "begin a new one" in value["error"]


def test_arrow_keys_move_where_moves_have_their_names(play: Any, tmp_path: Path) -> None:
    assert play()("view")["arrows"] == {}  # clicks only
    client = play("visual/frozen_lake")
    view = client("view")
    assert set(view["arrows"].values()) == {"up", "down", "left", "right"}
    with BrowserPage(client.server.url, tmp_path / "profile") as page:
        page.until("typeof view !== 'undefined' && view && !document.getElementById('send').disabled")
        for key, code in (("ArrowDown", 40), ("ArrowRight", 39)):
            count = page.value("view.turns.length")
            named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            page.call("Input.dispatchKeyEvent", type="rawKeyDown", **named)
            page.call("Input.dispatchKeyEvent", type="keyUp", **named)
            page.until(f"view.turns.length === {count + 1} && !document.getElementById('send').disabled")
        assert page.value("view.turns.map(turn => turn.action).join(' ')") == (
            "<action>down</action> <action>right</action>"
        )
        page.value(
            "document.getElementById('action').value = 'le'; document.getElementById('action').focus()"
        )
        page.call("Input.dispatchKeyEvent", type="rawKeyDown", **named)  # moves the caret of what is written
        assert page.value("view.turns.length") == 2 and page.errors == []


def test_a_new_episode_has_the_next_seed_or_the_one_given(play: Any) -> None:
    client = play(seed=2**40)
    assert client("new")["seed"] == str(2**40 + 1)
    assert client("new", seed="9007199254740993")["seed"] == "9007199254740993"  # no float holds it
    for seed in ("-1", "abc", "1.5", "9" * 30, "²"):
        assert client.ask("new", seed=seed)[0] == 409
    assert client("view")["seed"] == "9007199254740993"
    assert client.server.num_episodes == 3


def test_a_move_can_be_taken_back(play: Any) -> None:
    client = play()
    before = client("view")
    after = client("act", text=wrong(before))
    assert after["observation"] != before["observation"]
    assert after["can_undo"]
    again = client("undo")
    assert again["observation"] == before["observation"]
    assert again["turns"] == []
    assert client.ask("undo")[0] == 409
    assert client("act", text=wrong(before)) == after


def test_there_is_no_hint_where_the_oracle_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_a_loss(self: Any) -> str:
        raise NoOracle("it has no rule for this task")

    game = PlayedGame("visual/mazes", {"level": 1}, {}, 0)
    assert game.hint()
    monkeypatch.setattr(type(game.env.env), "oracle", at_a_loss)
    with pytest.raises(DataError, match="there is no hint: it has no rule for this task"):
        game.hint()
    game.close()


def test_a_hint_is_a_right_action(play: Any) -> None:
    client = play()
    view = client("act", text=client("hint")["text"])
    assert view["success"] is True
    assert not view["can_hint"]
    assert client.ask("hint")[0] == 409


def test_a_video_an_async_environment_and_odd_values(play: Any) -> None:
    client = play(f"{HERE}:Slow")
    view = client("view")
    (video,) = view["observation"]["videos"]
    assert (video["fps"], len(video["frames"]), video["frames"][0]["width"]) == (2.0, 4, 6)
    assert (view["tag"], view["tools"], view["can_undo"], view["can_hint"]) == ("", ["look"], False, False)
    for _ in range(4):  # each request comes in a thread of its own
        view = client("act", text="go")
    assert view["info"] == {"threads": 1, "speed": 0.5, "where": "(1, 2)"}
    status, value = client.ask("act", text="break")
    assert status == 500
    assert "ZeroDivisionError: by zero" in value["error"]
    assert client("new")["turns"] == []


def test_only_whoever_has_the_address_is_let_in(play: Any) -> None:
    client = play()
    path, host = client.place.path, client.place.netloc
    assert client.raw("GET", path)[0] == 200
    assert client.raw("GET", path, Host=f"localhost:{client.place.port}")[0] == 200
    another_first = "y" if path[1] == "x" else "x"
    for wrong_path in ("/", "/view", f"/{another_first}{path[2:]}", "//", "/" + "a" * 32 + "/"):
        assert client.raw("GET", wrong_path)[0] == 404
        assert client.raw("POST", wrong_path + "view", b"{}")[0] == 404
    assert client.raw("GET", path, Host="evil.example:80")[0] == 404
    assert client.raw("POST", path + "view", b"{}", Host="evil.example")[0] == 404
    assert host.startswith("127.0.0.1:")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[1]", b"null", b'"a"'])
def test_odd_requests_are_answered(play: Any, body: bytes) -> None:
    client = play()
    assert client.raw("POST", client.place.path + "act", body)[0] in (200, 400)
    assert client.ask("nonsense")[0] == 409
    assert client.raw("POST", client.place.path + "act", b"", **{"Content-Length": "x"})[0] == 400
    assert client.raw("POST", client.place.path + "act", b"", **{"Content-Length": "9999999999"})[0] == 404
    assert client("view")["seed"] == "0"


def test_the_page_runs_its_own_script_alone(play: Any) -> None:
    client = play()
    first, second = (client.raw("GET", client.place.path)[1].decode() for _ in range(2))
    nonce = first.partition("script-src 'nonce-")[2].partition("'")[0]
    assert f'<script nonce="{nonce}">' in first
    assert nonce not in second
    assert "default-src 'none'" in first
    assert "http://" not in first
    assert "https://" not in first


def test_a_demonstration_is_a_row_of_what_was_seen_and_done(play: Any, tmp_path: Path) -> None:
    client = play(seed=7)
    assert client.ask("save")[0] == 409
    view = client("view")
    texts = ["which?", wrong(view), right(view)]
    for text in texts:
        client("act", text=text)
    saved = client("save")
    assert (saved["num_rows"], saved["is_new"]) == (1, True)
    again = client("save")
    assert (again["num_rows"], again["is_new"], again["id"]) == (1, False, saved["id"])
    (row,) = open_dataset(DatasetConfig(name=saved["path"]), "data.train")
    assert [m["role"] for m in row["messages"]] == ["system", "user", *["assistant", "user"] * 2]
    said = [m["content"][0]["text"] for m in row["messages"] if m["role"] == "assistant"]
    assert [*said, row["target"]] == texts
    assert row["env"] == {"name": ODD, "options": {}, "task": {}, "seed": 7}
    kept = row["metadata"]
    assert (kept["return"], kept["success"], kept["num_turns"]) == (1.0, True, 3)
    assert kept["rewards"] == [0.0, 0.0, 1.0]
    with PlainEnv(ODD, {}) as env:
        shown = [env.reset({}, 7), *(env.step(text).observation for text in texts[:-1])]
    images = [m["content"][0]["image"] for m in row["messages"] if m["role"] == "user"]
    for observation, image in zip(shown, images, strict=True):
        np.testing.assert_array_equal(pixels_of(observation.images[0]), np.asarray(Image.open(image)))
    assert len(list((tmp_path / "out" / "media").iterdir())) == 2  # the first two turns showed the same


def test_videos_and_tools_are_saved(play: Any) -> None:
    client = play(f"{HERE}:Slow")
    client("act", text="end")
    (row,) = open_dataset(DatasetConfig(name=client("save")["path"]), "data.train")
    (part,) = row["messages"][0]["content"]
    assert (part["type"], part["fps"], len(part["video"])) == ("video", 2.0, 4)
    assert all(Path(frame).is_file() for frame in part["video"])
    assert row["tools"] == [{"type": "function", "function": {"name": "look"}}]


def test_supervised_training_reads_every_action_of_it(play: Any, tiny_model: Path) -> None:
    client = play(seed=3, image_size=96, tries=5)
    view = client("view")
    texts = ["<action>1, 1</action>", "<action>2, 2</action>", right(view, image_size=96, tries=5)]
    for text in texts:
        view = client("act", text=text)
    assert view["is_over"]
    (row,) = open_dataset(DatasetConfig(name=client("save")["path"]), "data.train")
    processor = open_processor(make_config(tiny_model))
    turns = processor.reference_turns(processor.sample(row))
    assert [processor.decode(turn.action_ids) for turn in turns] == texts
    assert [len(turn.media) for turn in turns] == [1, 1, 1]


def test_what_cannot_be_played_is_said_before_the_page(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cells=1 must be"):
        PlayServer(ODD, {"cells": 1}, {}, out=tmp_path)
    with pytest.raises(ConfigError, match="unknown task key"):
        PlayServer(ODD, {}, {"level": 1}, out=tmp_path)
    with PlayServer(ODD, {}, {}, out=tmp_path) as server, pytest.raises(ResourceError, match="--port 0"):
        PlayServer(ODD, {}, {}, out=tmp_path, port=server.port)


def test_the_command_ends_with_ctrl_c(tmp_path: Path) -> None:
    code = "from vlrl.cli.main import main; main()"
    command = [sys.executable, "-c", code, "env", "play", ODD, "cells=3", "--no-open", "--json"]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.split()[2]
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
        connection.request("POST", place.path + "view", b"{}")
        assert json.loads(connection.getresponse().read())["options"] == {"cells": 3}
        connection.close()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1]) == {
        "url": url,
        "num_episodes": 1,
        "num_saved": 0,
        "out": str(tmp_path),
    }
