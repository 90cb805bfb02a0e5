"""The actor of a server elsewhere, against a small server that answers as vLLM's does."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from builders import make_config
from PIL import Image

from vlrl.engine.external import actor as actor_module
from vlrl.engine.external import connection
from vlrl.engine.external.actor import ServerActor
from vlrl.engine.external.requests import body_of, data_urls, generation_from
from vlrl.engine.external.same_engine import require_same_engine
from vlrl.engine.requests import EngineRequest
from vlrl.errors import ConfigError, EngineDied, EngineError
from vlrl.types import Generation, Media, Sampling, VersionSpan
from vlrl.weights.manifest import Manifest

PROMPT = (5, 6, 7)


def request(name: str, media: tuple[str, ...] = ()) -> EngineRequest:
    ids = np.asarray(PROMPT, np.int64)
    return EngineRequest(name, f"sample {name}", ids, ids, media, Sampling(0.7, 4, 11))


def answer(name: str, **changes: Any) -> dict[str, Any]:
    choice = {
        "token_ids": [1, 2],
        "logprobs": {"content": [{"token_id": 1, "logprob": -0.1}, {"token_id": 2, "logprob": -0.30000001}]},
        "finish_reason": "stop",
        "weight_versions": [{"version": "3", "start": 0, "end": 2}],
    }
    found = {"request_id": name, "prompt_token_ids": list(PROMPT), "choices": [choice | changes]}
    return found


class FakeServer:
    """Keeps what it was asked, in order, and answers as it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.healthy, self.paused, self.waiting = True, False, 0
        self.generate: Callable[[dict[str, Any]], Coroutine[Any, Any, web.Response]] = self.at_once
        self.collective_rpc_status = 200
        self.headers: list[Mapping[str, str]] = []

    async def at_once(self, body: dict[str, Any]) -> web.Response:
        return web.json_response(answer(body["request_id"]))

    async def handle(self, asked: web.Request) -> web.Response:
        body = await asked.json() if asked.can_read_body else None
        self.headers.append(asked.headers)
        if asked.path == "/health":
            return web.Response(status=200 if self.healthy else 503)
        if asked.path == "/server_info":
            return web.json_response({"vllm_config": {}})
        if asked.path == "/inference/v1/generate":
            return await self.generate(body)
        self.calls.append((asked.path_qs, body))
        if asked.path == "/collective_rpc":
            return web.Response(status=self.collective_rpc_status, text="no room for p1")
        return web.json_response({"success": True})


@asynccontextmanager
async def started(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, **sections: Any
) -> AsyncIterator[ServerActor]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [address] = runner.addresses
    monkeypatch.setattr(actor_module, "engine_arguments", lambda *given, **named: {})
    monkeypatch.setattr(actor_module, "require_same_engine", lambda *given: None)
    monkeypatch.setattr(connection, "HEALTH_EVERY_S", 0.05)
    monkeypatch.setattr(connection, "POLL_S", 0.05)
    config = make_config(
        generator={"servers": [f"http://127.0.0.1:{address[1]}"]}, ray={"start_timeout_s": 0.2}, **sections
    )
    made = ServerActor(config, (9,), (2,), {}, 0)
    try:
        await made.start()
        server.calls.clear()
        yield made
    finally:
        await made._server.close()
        await runner.cleanup()


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


async def streamed(made: ServerActor, requests: Sequence[EngineRequest]) -> dict[int, Any]:
    return {index: result async for index, result, _ in made.generate(requests, {})}


def test_a_batch_comes_back_in_the_order_of_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()

    async def last_first(body: dict[str, Any]) -> web.Response:
        await asyncio.sleep(0.1 if body["request_id"] == "a" else 0)
        return web.json_response(answer(body["request_id"], token_ids=[1, ord(body["request_id"])]))

    async def test() -> None:
        server.generate = last_first
        async with started(server, monkeypatch) as made:
            results = await made.generate_batch([request("a"), request("b")], {})
            assert [int(result.token_ids[1]) for result in results] == [ord("a"), ord("b")]

    in_loop(test)


def test_each_request_of_a_stream_is_answered_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is wrong, one is given up, and neither touches the third."""
    server = FakeServer()

    async def each(body: dict[str, Any]) -> web.Response:
        if body["request_id"] == "slow":
            await asyncio.sleep(20)
        if body["request_id"] == "wrong":
            return web.json_response({"error": "max_tokens is too large"}, status=400)
        return web.json_response(answer(body["request_id"]))

    async def test() -> None:
        server.generate = each
        async with started(server, monkeypatch) as made:
            asked = asyncio.create_task(streamed(made, [request("slow"), request("wrong"), request("good")]))
            await asyncio.sleep(0.3)
            await made.abort(["slow", "unknown"])
            results = await asked
            assert isinstance(results[2], Generation)
            assert "answered 400" in str(results[1]) and "max_tokens is too large" in str(results[1])
            assert "given up" in str(results[0])

    in_loop(test)


@pytest.mark.parametrize("whole", [True, False])
def test_a_server_that_does_not_answer_any_more_is_dead(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Its connection stays open, as that of a machine without power does."""
    server = FakeServer()

    async def never(body: dict[str, Any]) -> web.Response:
        server.healthy = False
        await asyncio.sleep(20)
        return web.json_response(answer(body["request_id"]))

    async def test() -> None:
        server.generate = never
        async with started(server, monkeypatch) as made:
            with pytest.raises(EngineDied, match="is not healthy"):
                await (made.generate_batch if whole else partial_stream(made))([request("a")], {})

    in_loop(test)


def partial_stream(made: ServerActor) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def stream(requests: Sequence[EngineRequest], references: Mapping[str, Any]) -> Any:
        return await streamed(made, requests)

    return stream


def test_who_is_not_there_is_waited_for_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    server.healthy = False

    async def test() -> None:
        with pytest.raises(EngineDied, match=r"did not answer for 0\.2 s .*vlrl engine CONFIG"):
            async with started(server, monkeypatch):
                pass

    in_loop(test)


def test_weights_are_loaded_while_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    manifest = Manifest("/dev/shm/somewhere", (), 0)

    async def test() -> None:
        async with started(server, monkeypatch) as made:
            await made.update(manifest, 4)
        assert [path for path, _ in server.calls] == [
            "/pause?mode=wait",
            "/collective_rpc",
            "/reset_prefix_cache",
            "/reset_encoder_cache",
            "/update_weight_version",
            "/resume",
        ]
        call = server.calls[1][1]
        assert call["method"] == "receive_weights_of" and Manifest.from_json(call["args"][0]) == manifest
        assert call["args"][1] == 1  # the trainer's rank 0 is the group's first member
        assert server.calls[4][1] == {"new_version": "4"}

    in_loop(test)


def test_weights_that_cannot_be_loaded_are_an_error_and_nothing_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = FakeServer()
    server.collective_rpc_status = 500

    async def test() -> None:
        async with started(server, monkeypatch) as made:
            with pytest.raises(EngineError, match="no room for p1"):
                await made.update(Manifest("/dev/shm/somewhere", (), 0), 4)
        assert server.calls[-1][0] == "/collective_rpc"

    in_loop(test)


def test_the_secret_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    monkeypatch.setenv("VLRL_SERVE_TOKEN", "it is secret")

    async def test() -> None:
        async with started(server, monkeypatch) as made:
            await made.generate_batch([request("a")], {})
        assert {headers["Authorization"] for headers in server.headers} == {"Bearer it is secret"}

    in_loop(test)


# Requests and answers.


def test_an_image_is_sent_exactly() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 12, 3), dtype=np.uint8)
    medium = Media("image", "one", pixels, (8, 12), (1, 8, 12), 1)
    urls = data_urls({"one": medium})
    sent = body_of(request("a", ("one", "one")), urls, (2,))
    assert sent["token_ids"] == list(PROMPT) and sent["return_token_ids"]
    sampling = sent["sampling_params"]
    assert (sampling["temperature"], sampling["seed"], sampling["max_tokens"]) == (0.7, 11, 4)
    assert [part["uuid"] for part in sent["content_parts"]] == ["one", "one"]
    png = base64.b64decode(sent["content_parts"][0]["url"].removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), pixels[0])


def test_a_video_is_refused() -> None:
    video = Media("video", "one", np.zeros((4, 8, 8, 3), np.uint8), (8, 8), (2, 8, 8), 1)
    with pytest.raises(EngineError, match="a video cannot be sent"):
        data_urls({"one": video})


def test_an_answer_has_the_sampled_logprobs_and_versions() -> None:
    found = generation_from(answer("a", finish_reason="length"), request("a"))
    assert found.sampler_logprobs.tolist() == np.asarray([-0.1, -0.30000001], np.float32).tolist()
    assert found.version_spans == (VersionSpan(3, 0, 2),) and not found.finished


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"prompt_token_ids": [5, 6]}, "the engine's prompt has 2 tokens, the processor's 3"),
        (answer("a", finish_reason="abort"), "ended the request with 'abort'"),
    ],
)
def test_an_answer_that_cannot_be_trained_on_is_an_error(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        generation_from(answer("a") | changed, request("a"))


ARGUMENTS = {
    "dtype": "bfloat16",
    "logits_processors": ["ours"],
    "logprobs_mode": "processed_logprobs",
    "mm_processor_kwargs": {},
    "tensor_parallel_size": 2,
    "worker_extension_cls": "ours",
    "additional_config": {"banned_token_ids": [9]},
    "max_model_len": 512,
}


def config_of_server(**changes: Any) -> dict[str, Any]:
    model = {name: ARGUMENTS[name] for name in ("logits_processors", "logprobs_mode", "max_model_len")}
    return {
        "model_config": model
        | {"dtype": "torch.bfloat16", "multimodal_config": {"mm_processor_kwargs": None}}
        | changes,
        "parallel_config": {"tensor_parallel_size": 2, "worker_extension_cls": "ours"},
        "additional_config": {"banned_token_ids": [9]},
    }


def test_a_server_of_the_same_config_is_taken() -> None:
    require_same_engine("http://there", config_of_server(max_model_len=1024), ARGUMENTS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "torch.float32"}, r"dtype is 'torch\.float32', the run's 'bfloat16'"),
        ({"logprobs_mode": "raw_logprobs"}, "logprobs_mode is 'raw_logprobs'"),
        ({"max_model_len": 256}, "max_model_len is 256, the run's 512"),
        ({"logits_processors": None}, r"logits_processors is None, the run's \['ours'\]"),
    ],
)
def test_another_server_is_refused_with_what_differs(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        require_same_engine("http://there", config_of_server(**changes), ARGUMENTS)
