"""An agent plays an emulated desktop by a server's answers; it is asked, paused, stopped, and replayed."""

from __future__ import annotations

import asyncio
import base64
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from browser_page import BrowserPage
from PIL import Image

from vlrl.chat.agent import AgentRun
from vlrl.chat.agent_page import AgentPage, Decisions
from vlrl.chat.agent_session import AgentOptions, work
from vlrl.chat.conversation import ModelAddress
from vlrl.env_play.game import PlayedGame
from vlrl.env_play.replay import replay_all
from vlrl.process.serving import serve_until

ENV, OPTIONS, SEED = "gui/emu", {}, 3


def right_actions(env: str, options: dict[str, Any]) -> list[str]:
    """What the environment's own oracle does."""
    game, actions = PlayedGame(env, options, {}, SEED), []
    while not game.is_over:
        actions.append(game.hint())
        game.act(actions[-1])
    game.close()
    return actions


class ActingServer:
    """Answers the n-th request with the n-th action, and keeps what it was shown."""

    def __init__(self, actions: list[str]) -> None:
        self.actions, self.asked = actions, list[dict[str, Any]]()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.stopped: Future[None] = Future()
        self.endpoint = ModelAddress(f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1", "acting")

    def serve(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self.answer)
        asyncio.run(serve_until(app, self.socket, self.stopped))

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        count = sum(message["role"] == "assistant" for message in body["messages"])
        said = {"choices": [{"message": {"content": self.actions[count]}}]}
        sizes = ",".join(f"{image.width}x{image.height}" for image in images_of(body))
        headers = {"x-vlrl-image-sizes": sizes, "x-vlrl-coordinate-frame": "resized_pixels"}
        return web.json_response(said, headers=headers)


def images_of(body: dict[str, Any]) -> list[Image.Image]:
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls]


@contextmanager
def acting_in(env: str, options: dict[str, Any]) -> Iterator[ActingServer]:
    acting = ActingServer(right_actions(env, options))
    thread = threading.Thread(target=acting.serve, daemon=True)
    thread.start()
    yield acting
    acting.stopped.set_result(None)
    thread.join(10)


@pytest.fixture(scope="module")
def server() -> Iterator[ActingServer]:
    with acting_in(ENV, OPTIONS) as acting:
        yield acting


def until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_episode_is_solved_recorded_and_replayed(server: ActingServer, tmp_path: Path) -> None:
    server.asked.clear()
    said: list[str] = []
    result = work(server.endpoint, AgentOptions(ENV, OPTIONS, seed=SEED, out=tmp_path), said.append)
    assert (result["state"], result["success"], result["num_turns"]) == ("over", True, len(server.actions))
    assert len(images_of(server.asked[-1])) == len(server.actions)  # the whole history
    replayed = replay_all(Path(result["recording"]))
    assert replayed["ok"] and replayed["num_same"] == 1, replayed
    assert replayed["episodes"][0]["pixels"] == "same"


@pytest.mark.parametrize(
    ("env", "options"),
    [("gui/miniwob", {"tasks": ["click-button"]}), ("gui/x11", {})],
    ids=["miniwob", "x11"],
)
def test_real_pages_and_programs_are_worked_on_too(env: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Nothing can be taken back in a browser or an X desktop; with confirm=never nobody is asked."""
    asked = AgentOptions(env, options, seed=SEED, confirm="never", out=tmp_path)
    with acting_in(env, options) as server:
        result = work(server.endpoint, asked, lambda words: None)
    assert (result["state"], result["success"]) == ("over", True)
    replayed = replay_all(Path(result["recording"]))
    assert replayed["ok"] and replayed["episodes"][0]["pixels"] == "same"


def test_a_person_decides_pauses_and_stops_on_the_page(server: ActingServer, tmp_path: Path) -> None:
    decisions, game = Decisions(), PlayedGame(ENV, OPTIONS, {}, SEED)
    agent = AgentRun(
        game, server.endpoint, {}, max_turns=9, confirm=lambda text: decisions.wait(lambda: agent.is_stopped)
    )
    page = AgentPage(agent, decisions)
    with httpx2.Client(base_url=page.url, trust_env=False) as client:
        assert "Refuse and stop" in client.get("").text
        agent.pause()
        thread = threading.Thread(target=agent.run)
        thread.start()
        until(lambda: client.get("view").json()["state"] == "paused")
        client.post("resume")
        until(lambda: client.get("view").json()["state"] == "asking")
        view = client.get("view").json()
        assert view["proposed"] == server.actions[0] and view["turns"] == []
        client.post("allow")
        until(lambda: len(client.get("view").json()["turns"]) == 1 or not thread.is_alive())
        if thread.is_alive():
            until(lambda: client.get("view").json()["state"] in ("asking", "over"))
            client.post("refuse")
        thread.join(30)
        assert client.get("view").json()["state"] in ("stopped", "over") and len(game.moves) == 1
        assert httpx2.post(f"{page.url.rsplit('/', 2)[0]}/guess/stop", trust_env=False).status_code == 404
    page.shutdown()
    path = agent.record(tmp_path)
    assert replay_all(path)["ok"]
    game.close()


def test_the_page_in_a_browser_asks_and_takes_the_answer(server: ActingServer, tmp_path: Path) -> None:
    decisions, game = Decisions(), PlayedGame(ENV, OPTIONS, {}, SEED)
    agent = AgentRun(
        game, server.endpoint, {}, max_turns=9, confirm=lambda text: decisions.wait(lambda: agent.is_stopped)
    )
    page = AgentPage(agent, decisions)
    thread = threading.Thread(target=agent.run)
    thread.start()
    with BrowserPage(page.url, tmp_path / "browser", (1100, 800)) as browser:
        browser.until(
            "!document.getElementById('asking')?.hidden && document.querySelector('#images img') !== null"
        )
        assert browser.value("document.getElementById('proposed').textContent") == server.actions[0]
        browser.screenshot(tmp_path / "asking.png")
        browser.value("document.getElementById('allow').click()")
        browser.until("document.getElementById('log').childElementCount > 0")
        if thread.is_alive():
            browser.value("document.getElementById('stop').click()")
        browser.until("/stopped|over/i.test(document.getElementById('state').textContent)")
        browser.screenshot(tmp_path / "stopped.png")
        assert not browser.errors
    thread.join(30)
    assert len(game.moves) == 1
    page.shutdown()
    game.close()


def test_what_cannot_be_taken_back_is_asked_for(
    server: ActingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(words: str, **_: Any) -> bool:
        asked.append(words)
        return False

    monkeypatch.setattr("typer.confirm", refuse)
    made = PlayedGame.__init__

    def without_undo(self: PlayedGame, *arguments: Any) -> None:
        made(self, *arguments)
        self.can_undo = False

    monkeypatch.setattr(PlayedGame, "__init__", without_undo)
    result = work(server.endpoint, AgentOptions(ENV, OPTIONS, seed=SEED, out=tmp_path), lambda words: None)
    assert len(asked) == 1 and server.actions[0] in asked[0]
    assert result["state"] == "stopped" and result["recording"] is None and not list(tmp_path.iterdir())
