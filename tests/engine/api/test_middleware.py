"""What stands before vLLM's API: limits, token, stop tokens, and images as training resizes them."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image
from tiny_families import build_qwen2_5_vl

from vlrl.engine.api.arguments import server_arguments
from vlrl.engine.api.middleware import RequestGuard, TokenGuard
from vlrl.engine.api.options import TOKEN_VARIABLE, ModelServerOptions


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> ModelServerOptions:
    path = build_qwen2_5_vl(tmp_path_factory.mktemp("model"))
    config = {
        "model": {"path": str(path)},
        "processor": {"max_pixels": 112 * 112},
        "rollout": {"max_tokens": 24},
    }
    return ModelServerOptions("tiny", config, max_images=2, timeout_s=5.0, max_body_mib=1)


def image_part(width: int, height: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "PNG")
    return {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"},
    }


def question(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": "what is it?"}]}]}


class Answered:
    """What the application behind the guard was given, and what the client got."""

    def __init__(
        self,
        guard: RequestGuard | TokenGuard,
        body: Any,
        headers: dict[str, str] | None = None,
        path: str = "/v1/chat/completions",
    ) -> None:
        self.seen: dict[str, Any] = {}
        self.status, self.headers, self.text = 0, {}, b""
        guard._app = self.application
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
        }
        messages = [{"type": "http.request", "body": text, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return messages.pop()

        asyncio.run(guard(scope, receive, self.send))

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        text = (await receive())["body"]
        self.seen = json.loads(text)
        assert dict(scope["headers"])[b"content-length"] == str(len(text)).encode()
        await asyncio.sleep(self.seen.get("slow", 0))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.text += message["body"]


@pytest.fixture
def guard(options: ModelServerOptions) -> RequestGuard:
    return RequestGuard(lambda *_: asyncio.sleep(0), options)


def test_images_are_resized_as_in_training_and_stop_tokens_are_the_models(guard: RequestGuard) -> None:
    answered = Answered(guard, question(image_part(224, 224), image_part(60, 30)))
    assert answered.status == 200 and answered.headers[b"x-vlrl-image-sizes"] == b"112x112,84x56"
    assert answered.headers[b"x-vlrl-coordinate-frame"] == b"resized_pixels"
    urls = [p["image_url"]["url"] for p in answered.seen["messages"][0]["content"] if "image_url" in p]
    images = [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls]
    assert [image.size for image in images] == [(112, 112), (84, 56)]
    assert images[0].getpixel((5, 5)) == (255, 0, 0)
    assert answered.seen["stop_token_ids"] == list(guard._processor.stop_token_ids)
    assert answered.seen["ignore_eos"] and answered.seen["max_completion_tokens"] == 24


def test_a_clients_own_limits_stay(guard: RequestGuard) -> None:
    answered = Answered(guard, question() | {"max_tokens": 3, "stop_token_ids": [7]})
    assert "max_completion_tokens" not in answered.seen and answered.seen["stop_token_ids"][-1] == 7


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (question(*[image_part(28, 28)] * 3), 400, "has 3 images, 2 are allowed"),
        (
            question({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}),
            400,
            "with a data: URL",
        ),
        (question({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}), 400, "request"),
        (question({"type": "image_url", "image_url": {"url": "http://10.0.0.1/a"}}), 400, "allowed_hosts"),
        (question({"type": "video_url", "video_url": {"url": "data:,"}}), 400, "videos are not served"),
        (question() | {"mm_processor_kwargs": {"do_resize": True}}, 400, "leave it out"),
        (b"{", 400, "is not JSON"),
        ({"messages": "hello"}, 400, "needs a list of messages"),
        (b" " * (2**20 + 1), 413, "longer than 1 MiB"),
    ],
)
def test_what_breaks_a_limit_is_refused(guard: RequestGuard, body: Any, status: int, words: str) -> None:
    answered = Answered(guard, body)
    assert (answered.status, answered.seen) == (status, {})
    assert words in json.loads(answered.text)["error"]["message"]


def test_other_ways_to_the_engine_are_closed(guard: RequestGuard) -> None:
    for path in ("/v1/responses", "/v1/messages", "/v1/completions", "/tokenize"):
        assert Answered(guard, question(), path=path).status == 404
    length = {"content-length": str(len(json.dumps(question())))}
    assert Answered(guard, question(), length, "/v1/models").status == 200


def test_an_engine_s_server_does_nothing_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is called: by these calls weights are replaced."""
    monkeypatch.setenv(TOKEN_VARIABLE, "a secret")
    guard = TokenGuard(lambda *_: asyncio.sleep(0))
    for headers in ({}, {"authorization": "Bearer another"}):
        for path in ("/collective_rpc", "/health", "/inference/v1/generate"):
            answered = Answered(guard, {}, headers, path)
            assert answered.status == 401 and not answered.seen and b"VLRL_SERVE_TOKEN" in answered.text
    headers = {"authorization": "Bearer a secret", "content-length": "16"}
    assert Answered(guard, {"passed": "on"}, headers).status == 200


def test_without_the_token_nothing_is_read(
    options: ModelServerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "a secret of the server")
    guard = RequestGuard(lambda *_: asyncio.sleep(0), options)
    for headers in ({}, {"authorization": "Bearer wrong"}):
        assert Answered(guard, question(), headers).status == 401
    assert Answered(guard, question(), {"authorization": "Bearer a secret of the server"}).status == 200


def test_an_answer_that_takes_too_long_is_given_up(options: ModelServerOptions) -> None:
    quick = ModelServerOptions(options.name, options.config, timeout_s=0.2)
    guard = RequestGuard(lambda *_: asyncio.sleep(0), quick)
    answered = Answered(guard, question() | {"slow": 60})
    assert answered.status == 504 and b"--timeout-s" in answered.text


def test_the_servers_command_line_has_the_engines_arguments(options: ModelServerOptions) -> None:
    given = server_arguments(options, on_gpu=False, extra=["--max-model-len", "512"])
    assert given[1:3] == ["-m", "vllm.entrypoints.openai.api_server"] and given[-1] == "512"
    values = dict(pairwise(given))
    assert values["--dtype"] == "float32" and values["--served-model-name"] == "tiny"
    assert json.loads(values["--limit-mm-per-prompt"]) == {"image": 2, "video": 0}
    assert json.loads(values["--mm-processor-kwargs"])["images_kwargs"]["do_resize"] is False
    assert len(json.loads(values["--additional-config"])["banned_token_ids"]) == 5
    assert "--no-enable-chunked-prefill" in given and "--worker-extension-cls" not in given
    assert "--structured-outputs-config" not in given, "a client's schema may need another library"
