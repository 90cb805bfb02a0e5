"""A conversation in the terminal and on the page, with a server that streams, and rewards beside it."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from browser_page import BrowserPage
from rich.console import Console

from vlrl.chat.conversation import Conversation, ModelAddress, content_of, first_model
from vlrl.chat.page import PageServer
from vlrl.chat.reward_view import RewardView
from vlrl.chat.terminal import TerminalChat
from vlrl.errors import ConfigError, DataError
from vlrl.process.serving import serve_until
from vlrl.scoring.functions import find_reward

ANSWER = ["<think>1+9</think>", "<answer>10", "</answer>"]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)

DROP = """(() => {{
    const bytes = Uint8Array.from(atob("{png}"), c => c.charCodeAt(0)), carried = new DataTransfer();
    carried.items.add(new File([bytes], "digits.png", {{ type: "image/png" }}));
    document.body.dispatchEvent(new DragEvent("drop", {{ dataTransfer: carried, bubbles: true }}));
}})()"""


class ToldServer:
    """Answers every question alike; breaks off or refuses if the question says so."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.stopped: Future[None] = Future()
        self.app = web.Application(client_max_size=2**24)
        self.app.router.add_post("/v1/chat/completions", self.chat)
        self.app.router.add_get("/v1/models", self.models)
        self.endpoint = ModelAddress(f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1", "tiny", "secret")

    async def models(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer secret":
            return web.json_response({"error": {"message": "no API key"}}, status=401)
        return web.json_response({"data": [{"id": "tiny"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        text = json.dumps(body["messages"][-1])
        if "refuse" in text:
            return web.json_response({"error": {"message": "3 images, 2 are allowed"}}, status=400)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in ANSWER[:1] if "break" in text else ANSWER:
            event = {"choices": [{"delta": {"content": piece}}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        if "break" not in text:
            await response.write(b"data: [DONE]\n\n")
        return response


@pytest.fixture
def server() -> Iterator[ToldServer]:
    told = ToldServer()
    thread = threading.Thread(
        target=lambda: asyncio.run(serve_until(told.app, told.socket, told.stopped)), daemon=True
    )
    thread.start()
    yield told
    told.stopped.set_result(None)
    thread.join(10)


def talk(server: ToldServer, lines: list[str], rewards: RewardView | None = None) -> tuple[str, Conversation]:
    said, left = io.StringIO(), iter(lines)
    conversation = Conversation(server.endpoint, {"temperature": 0.0})

    def read(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    TerminalChat(conversation, rewards, Console(file=said, width=200), read).run()
    return said.getvalue(), conversation


def test_images_history_and_errors_in_the_terminal(server: ToldServer, tmp_path: Path) -> None:
    image = tmp_path / "two digits.png"
    image.write_bytes(PNG)
    text, conversation = talk(
        server, [f'add "{image}" these', "please refuse", "please break off", "again", "/undo", "more"]
    )
    assert text.count("".join(ANSWER)) == 3
    assert "3 images, 2 are allowed" in text and "broke off in the middle" in text
    first, *_, last = server.asked
    kinds = [part["type"] for part in first["messages"][0]["content"]]
    assert kinds == ["text", "image_url", "text"] and first["temperature"] == 0.0
    url = first["messages"][0]["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == PNG
    texts = [m["content"][-1]["text"] for m in last["messages"] if m["role"] == "user"]
    assert texts == ["these", "more"]  # what failed and what was undone is no history
    assert len(conversation.messages) == 4


def test_words_that_name_no_image_stay_words(tmp_path: Path) -> None:
    [part] = content_of("it's in missing.png or don't")
    assert part == {"type": "text", "text": "it's in missing.png or don't"}
    with pytest.raises(DataError, match="No such file"):
        content_of(f"look at @{tmp_path}/missing.png")


def test_rewards_are_shown_with_their_components(server: ToldServer, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def both(completion, answer):\n    return {'right': float('10' in completion), 'short': 0.5}\n"
    )
    functions = [find_reward("answer_exact"), find_reward(f"{file}:both")]
    with RewardView(functions) as rewards:
        text, _ = talk(server, ["/answer 10", "add", "/answer 11", "add"], rewards)
    assert "answer_exact: 1" in text and "answer_exact: 0" in text
    assert "right 1, short 0.5" in text


def test_the_page_streams_an_answer_and_judges_it(server: ToldServer) -> None:
    with RewardView([find_reward("answer_exact")]) as rewards:
        page = PageServer(Conversation(server.endpoint), rewards)
        thread = threading.Thread(target=page.serve_forever, daemon=True)
        thread.start()
        with httpx2.Client(base_url=page.url, trust_env=False, timeout=60.0) as client:
            assert 'id="answer"' in client.get("").text
            sent = {"text": "add", "images": [f"data:image/png;base64,{base64.b64encode(PNG).decode()}"]}
            answer = client.post("ask", json={**sent, "answer": "10"})
            events = [json.loads(line) for line in answer.text.splitlines()]
            assert "".join(event.get("text", "") for event in events) == "".join(ANSWER)
            assert events[-2]["rewards"][0]["value"] == 1.0 and events[-1] == {"done": True}
            [failed] = client.post("ask", json={"text": "x", "images": ["/etc/passwd"]}).text.splitlines()
            assert "data: URL" in json.loads(failed)["error"]
            assert client.post("clear").status_code == 200
            port = page.url.split("/")[2]
            assert client.get(f"http://{port}/guess/").status_code == 404
            assert client.get("", headers={"Host": "evil.example:80"}).status_code == 404
        page.shutdown()
        thread.join(10)


def test_a_question_with_an_image_is_answered_and_judged(server: ToldServer, tmp_path: Path) -> None:
    with RewardView([find_reward("answer_exact")]) as rewards:
        page = PageServer(Conversation(server.endpoint), rewards)
        thread = threading.Thread(target=page.serve_forever, daemon=True)
        thread.start()
        with BrowserPage(page.url, tmp_path / "browser", (900, 700)) as browser:
            browser.until("document.getElementById('text') !== null && typeof take === 'function'")
            browser.value(DROP.format(png=base64.b64encode(PNG).decode()))
            browser.until("document.querySelectorAll('#images img').length === 1")
            browser.value("document.getElementById('answer').value = '10'")
            browser.value("document.getElementById('text').focus()")
            browser.call("Input.insertText", text="Add them")
            browser.key("Enter", "\r")
            browser.until("document.querySelector('.rewards') !== null")
            said = browser.value("document.getElementById('talk').textContent")
            assert "Add them" in said and "".join(ANSWER) in said and "answer_exact: 1" in said
            assert browser.value("document.querySelector('.asked img').naturalWidth") == 1
            browser.screenshot(tmp_path / "chat.png")
            browser.value("document.getElementById('clear').click()")
            browser.until("document.getElementById('talk').childElementCount === 0")
            assert not browser.errors
        page.shutdown()
        thread.join(10)
    [asked] = server.asked
    assert [part["type"] for part in asked["messages"][-1]["content"]] == ["image_url", "text"]


def test_a_token_that_is_wrong_or_a_server_that_is_gone(server: ToldServer) -> None:
    assert first_model(server.endpoint.url, "secret") == "tiny"
    with pytest.raises(ConfigError, match="no API key"):
        first_model(server.endpoint.url, "")
    with pytest.raises(ConfigError, match="no server answers"):
        first_model("http://127.0.0.1:9/v1", "")
