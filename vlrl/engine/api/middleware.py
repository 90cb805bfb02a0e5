"""What stands before vLLM's API in its process: token, limits, and images as the model saw them in training.

Images are resolved by the model's own processor (size limits, resizing), and handed on as PNGs of the pixels
that training and `vlrl eval` use; stop tokens are the processor's. Coordinates in an answer are in the
resized image, whose size the response's header x-vlrl-image-sizes has.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from vlrl.engine.api.options import FRAME_HEADER, SIZES_HEADER, TOKEN_VARIABLE, ModelServerOptions
from vlrl.errors import DataError, VlrlError
from vlrl.processors.auto import open_processor
from vlrl.tracking.rollouts.records import encoded_images

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
ReceiveFn = Callable[[], Awaitable[Message]]
SendFn = Callable[[Message], Awaitable[None]]
AppFn = Callable[[Scope, ReceiveFn, SendFn], Awaitable[None]]

CHAT = "/v1/chat/completions"
OPEN_PATHS = ("/health", "/ping", "/version")
"""What answers without a token."""
OTHER_PATHS = ("/v1/models", "/metrics")
"""What answers beside CHAT; all else of vLLM's would take images that nobody has looked at."""
NOT_TAKEN = ("mm_processor_kwargs", "media_io_kwargs")
"""Fields by which a request would have its images prepared otherwise than in training."""
URLS = ("data:", "http://", "https://")


class Refusal(Exception):
    """A request that is not passed on: an HTTP status and what to do."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class RequestGuard:
    """An ASGI middleware; vLLM makes it with the application that it guards."""

    def __init__(self, app: AppFn, options: ModelServerOptions | None = None) -> None:
        self._app = app
        self._options = options or ModelServerOptions.from_environment()
        self._token = os.environ.get(TOKEN_VARIABLE, "").encode()
        config = self._options.read_config()
        self._max_tokens = config.rollout.max_tokens
        media = config.media.model_copy(update={"cache_gib": 0.0})  # what users send is not kept
        self._processor = open_processor(config.model_copy(update={"media": media}))

    async def __call__(self, scope: Scope, receive: ReceiveFn, send: SendFn) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            _require_token(scope, self._token)
            async with asyncio.timeout(self._options.timeout_s):
                await self._passed_on(scope, receive, noting)
        except Refusal as refusal:
            await _refuse(send, refusal.status, str(refusal))
        except TimeoutError:
            if has_begun:  # of a stream: its end without [DONE] says that it is not whole
                raise
            await _refuse(
                send, 504, f"the answer took longer than {self._options.timeout_s:g} s (--timeout-s)"
            )

    async def _passed_on(self, scope: Scope, receive: ReceiveFn, send: SendFn) -> None:
        if scope["path"] in OTHER_PATHS:
            await self._app(scope, receive, send)
            return
        if scope["method"] != "POST" or scope["path"] != CHAT:
            raise Refusal(404, f"nothing is served here; there is {', '.join((CHAT, *OTHER_PATHS))}")
        body, about_images = await asyncio.to_thread(self.prepared, await self._read(receive))
        text = json.dumps(body).encode()
        headers = [(k, v) for k, v in scope["headers"] if k not in (b"content-length", b"transfer-encoding")]
        scope = {**scope, "headers": [*headers, (b"content-length", str(len(text)).encode())]}
        first: list[Message] = [{"type": "http.request", "body": text, "more_body": False}]

        async def again() -> Message:
            return first.pop() if first else await receive()

        async def with_sizes(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *about_images]}
            await send(message)

        await self._app(scope, again, with_sizes)

    def prepared(self, text: bytes) -> tuple[dict[str, Any], list[tuple[bytes, bytes]]]:
        """(a chat request as vLLM is to have it, headers about its images for the answer).

        Raises:
            Refusal: for a request that breaks a limit, or whose images cannot be used.
        """
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the request's body is not JSON: {error}") from error
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            raise Refusal(400, "the request needs a list of messages")
        if given := [name for name in NOT_TAKEN if body.get(name)]:
            raise Refusal(400, f"{given[0]} is not taken: images are prepared as in training; leave it out")
        images = [part for message in body["messages"] for part in _image_parts(message)]
        about_images = self._resolve(images)
        if body.get("max_tokens") is None and body.get("max_completion_tokens") is None:
            body["max_completion_tokens"] = self._max_tokens
        asked = [token for token in body.get("stop_token_ids") or [] if isinstance(token, int)]
        body |= {"stop_token_ids": [*self._processor.stop_token_ids, *asked], "ignore_eos": True}
        body.setdefault("skip_special_tokens", False)  # marks around boxes are part of what a model says
        return body, about_images

    def _resolve(self, images: list[dict[str, Any]]) -> list[tuple[bytes, bytes]]:
        """Put resized pixels in the places of images' URLs."""
        limit = self._options.max_images
        if len(images) > limit:
            raise Refusal(400, f"the request has {len(images)} images, {limit} are allowed (--max-images)")
        if not images:
            return []
        parts = [{"type": "image", "image": part["image_url"]["url"]} for part in images]
        try:
            media = self._processor.message("user", parts, "the request").media
        except DataError as error:
            raise Refusal(400, str(error)) from error
        except VlrlError as error:
            raise Refusal(500, str(error)) from error
        encoded = {name.split("/")[-1].split(".")[0]: png for name, png in encoded_images(media).items()}
        for part, medium in zip(images, media, strict=True):
            png = base64.b64encode(encoded[medium.sha256]).decode()
            part["image_url"] = {"url": f"data:image/png;base64,{png}"}
        sizes = ",".join(f"{medium.size[1]}x{medium.size[0]}" for medium in media)
        found = {SIZES_HEADER: sizes, FRAME_HEADER: media[0].coordinate_frame}
        return [(name.encode(), value.encode()) for name, value in found.items()]

    async def _read(self, receive: ReceiveFn) -> bytes:
        limit, read = self._options.max_body_mib * 2**20, bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(499, "the client has gone")
            read += message.get("body", b"")
            if len(read) > limit:
                raise Refusal(413, f"the request is longer than {self._options.max_body_mib} MiB")
            if not message.get("more_body", False):
                return bytes(read)


class TokenGuard:
    """An ASGI middleware that lets nobody in who does not know the token, whatever is asked for."""

    def __init__(self, app: AppFn) -> None:
        self._app = app
        self._token = os.environ.get(TOKEN_VARIABLE, "").encode()

    async def __call__(self, scope: Scope, receive: ReceiveFn, send: SendFn) -> None:
        """Pass on one request, or refuse it."""
        try:
            if scope["type"] != "lifespan":
                _require_token(scope, self._token)
        except Refusal as refusal:
            return await _refuse(send, refusal.status, str(refusal))
        await self._app(scope, receive, send)


def _require_token(scope: Scope, token: bytes) -> None:
    given = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
    if token and not hmac.compare_digest(given, token):
        raise Refusal(401, f"no API key, or a wrong one; it is the server's {TOKEN_VARIABLE}")


def _image_parts(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    found = []
    for part in content if isinstance(content, list) else []:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            continue
        url = part.get("image_url") if kind == "image_url" else None
        part["image_url"] = {"url": url} if isinstance(url, str) else url
        given = part["image_url"].get("url") if isinstance(part["image_url"], Mapping) else None
        if not isinstance(given, str) or not given.startswith(
            URLS
        ):  # else it might name a file of the server
            raise Refusal(
                400,
                "a part is {'type': 'text', …}, or {'type': 'image_url', 'image_url': {'url': …}} with a "
                "data: URL, or an http(s) one of a host in media.allowed_hosts; videos are not served",
            )
        found.append(part)
    return found


async def _refuse(send: SendFn, status: int, words: str) -> None:
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error", "code": status}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
