"""A conversation with a model behind OpenAI's API: images in lines, answers as they come, history."""

from __future__ import annotations

import base64
import json
import mimetypes
import shlex
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vlrl.engine.api.options import FRAME_HEADER, SIZES_HEADER
from vlrl.errors import ConfigError, DataError, EngineError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
MAX_IMAGE_BYTES = 32 * 2**20
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """Where a model answers.

    Attributes:
        url: ends in /v1.
        model: its name there.
        token: API key; "" sends none.
    """

    url: str
    model: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that came at once.

    Attributes:
        text: of the model.
        image_sizes: (height, width) of each image of the request as the model saw it; empty if another server
            than `vlrl serve` answered.
        coordinate_frame: of places in the text; "" likewise.
    """

    text: str
    image_sizes: tuple[tuple[int, int], ...] = ()
    coordinate_frame: str = ""


async def complete(endpoint: ModelAddress, fields: Mapping[str, Any]) -> WholeAnswer:
    """Have one request answered.

    Args:
        endpoint: that answers.
        fields: of the request, messages among them.

    Raises:
        EngineError: if the server refuses, or is gone.
    """
    import httpx2

    asked = {**fields, "model": endpoint.model}
    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            answer = await client.post(
                f"{endpoint.url}/chat/completions", json=asked, headers=endpoint.headers
            )
    except httpx2.HTTPError as error:
        raise EngineError(f"{endpoint.url}: {type(error).__name__} {error}") from error
    if answer.status_code != 200:
        raise EngineError(f"the server refused: {_reason(answer.text)}")
    sizes = [size.split("x") for size in answer.headers.get(SIZES_HEADER, "").split(",") if size]
    return WholeAnswer(
        str(answer.json()["choices"][0]["message"]["content"] or ""),
        tuple((int(height), int(width)) for width, height in sizes),
        answer.headers.get(FRAME_HEADER, ""),
    )


@dataclass(slots=True)
class Conversation:
    """Messages so far, in OpenAI's format; images are data: URLs.

    Attributes:
        endpoint: that answers.
        options: fields of every request, such as temperature.
        messages: the history; a question without an answer is not kept.
    """

    endpoint: ModelAddress
    options: Mapping[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, content: list[dict[str, Any]]) -> AsyncIterator[str]:
        """Send a question with the history; pieces of the answer as they come, which then is history too.

        Raises:
            EngineError: if the server refuses, breaks off, or is gone; the history is as it was.
        """
        import httpx2

        question = {"role": "user", "content": content}
        asked = {
            **self.options,
            "model": self.endpoint.model,
            "messages": [*self.messages, question],
            "stream": True,
        }
        pieces: list[str] = []
        is_whole = False
        try:
            async with (
                httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream(
                    "POST",
                    f"{self.endpoint.url}/chat/completions",
                    json=asked,
                    headers=self.endpoint.headers,
                ) as response,
            ):
                if response.status_code != 200:
                    await response.aread()
                    raise EngineError(f"the server refused: {_reason(response.text)}")
                async for line in response.aiter_lines():
                    text = line.removeprefix("data:").strip()
                    if text == "[DONE]":
                        is_whole = True
                    elif text and (piece := _piece(text)):
                        pieces.append(piece)
                        yield piece
        except httpx2.HTTPError as error:
            raise EngineError(f"{self.endpoint.url}: {type(error).__name__} {error}") from error
        if not is_whole:
            raise EngineError("the server broke off in the middle of the answer; ask again")
        self.messages += [question, {"role": "assistant", "content": "".join(pieces)}]

    def undo(self) -> None:
        """Forget the last question and its answer."""
        del self.messages[-2:]


def content_of(line: str) -> list[dict[str, Any]]:
    """The parts of a line: each word that is a path or URL of an image becomes that image, in its place.

    A path with spaces stands in quotes; a word after @ is an image whatever its name ends in.

    Raises:
        DataError: for an image that cannot be read, or is too large.
    """
    parts: list[dict[str, Any]] = []
    text: list[str] = []
    for word, bare in _words(line):
        if not _is_image(bare):
            text.append(word)
            continue
        if text:
            parts.append({"type": "text", "text": " ".join(text)})
            text = []
        parts.append({"type": "image_url", "image_url": {"url": data_url(bare.removeprefix("@"))}})
    return parts + ([{"type": "text", "text": " ".join(text)}] if text else [])


def data_url(place: str) -> str:
    """An image's content as a data: URL, from a path or an http(s) URL.

    Raises:
        DataError: if it cannot be read, or is too large.
    """
    if place.startswith("data:"):
        return place
    content = _download(place) if _is_url(place) else _read(Path(place).expanduser())
    if len(content) > MAX_IMAGE_BYTES:
        raise DataError(f"{place} is larger than {MAX_IMAGE_BYTES // 2**20} MiB; give a smaller image")
    kind = mimetypes.guess_type(urlsplit(place).path if _is_url(place) else place)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def first_model(endpoint_url: str, token: str) -> str:
    """The name of the first model that a server has.

    Raises:
        ConfigError: if there is no server, or it refuses the token.
    """
    import httpx2

    headers = ModelAddress(endpoint_url, "", token).headers
    try:
        answer = httpx2.get(f"{endpoint_url}/models", headers=headers, timeout=30.0, trust_env=False)
    except httpx2.HTTPError as error:
        raise ConfigError(f"{endpoint_url}: no server answers ({error})") from error
    if answer.status_code != 200:
        raise ConfigError(f"{endpoint_url}: {_reason(answer.text)}")
    return str(answer.json()["data"][0]["id"])


def _words(line: str) -> list[tuple[str, str]]:
    """(as written, without quotes) of each word; a line whose quotes do not match is taken as it is."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        words = line.split(" ")
    return [(word, word.strip("\"'") if word[:1] in "\"'" else word) for word in words]


def _is_image(word: str) -> bool:
    if word.startswith("@") and len(word) > 1:
        return True
    path = urlsplit(word).path if _is_url(word) else word
    has_suffix = path.lower().endswith(IMAGE_SUFFIXES)
    return has_suffix and (_is_url(word) or Path(word).expanduser().is_file())


def _is_url(word: str) -> bool:
    return word.startswith(("http://", "https://"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


def _download(url: str) -> bytes:
    import httpx2

    try:
        answer = httpx2.get(url, timeout=60.0, follow_redirects=True)
        answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise DataError(f"{url}: {error}") from error
    return bytes(answer.content)


def _piece(event: str) -> str:
    try:
        found = json.loads(event)
    except ValueError as error:
        raise EngineError(f"the server sent what is no event: {event[:200]}") from error
    if "error" in found:
        raise EngineError(f"the server failed: {_reason(event)}")
    choices = found.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("content") or "")


def _reason(text: str) -> str:
    try:
        said = json.loads(text)["error"]
        return str(said["message"] if isinstance(said, dict) else said)
    except (ValueError, KeyError, TypeError):
        return text[:500]
