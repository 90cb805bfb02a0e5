"""What an environment shows and answers, as bytes and back: exact, and nothing in it is ever executed.

4 bytes, the length of the JSON │ JSON: the value │ images, one after the other

The JSON says of every image how long it is and in which form: "raw" (an array's bytes) or "png".
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.images import MAX_PIXELS, image_of
from vlrl.protocols import Observation, StepResult, Video

Form = Literal["raw", "png"]
CONTENT_TYPE = "application/x-vlrl-env"
_HEAD = struct.Struct(">I")


def dumps(value: Any, form: Form) -> bytes:
    """An Observation, a StepResult, or a mapping of them by agent.

    Args:
        value: checked already; see `vlrl.environment.host.answers`.
        form: of arrays; PIL images that are more than arrays always go as PNG.

    Raises:
        EnvFailure: for a PIL image of a mode that PNG does not have.
    """
    buffers: list[bytes | memoryview] = []
    text = json.dumps(_packed(value, form, buffers)).encode()
    return b"".join([_HEAD.pack(len(text)), text, *buffers])


def loads(data: bytes, where: str) -> Any:
    """The value; raw images are read-only views of the data.

    Raises:
        EnvFailure: naming `where`, for bytes that are not a value.
    """
    try:
        (length,) = _HEAD.unpack_from(data)
        said = json.loads(data[_HEAD.size : _HEAD.size + length])
        return _Reader(memoryview(data)[_HEAD.size + length :], where).value(said)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvFailure(
            "raised", f"{where}: {len(data)} bytes that are not an answer: {type(error).__name__}: {error}"
        ) from error


def _packed(value: Any, form: Form, buffers: list[Any]) -> dict[str, Any]:
    match value:
        case Observation():
            images = [_image(image, form, buffers) for image in value.images]
            videos = [
                {"fps": video.fps, "frames": [_image(frame, form, buffers) for frame in video.frames]}
                for video in value.videos
            ]
            said: dict[str, Any] = {"text": value.text, "role": value.role, "summary": value.summary}
            if value.structured_outputs is not None:
                said["structured_outputs"] = dict(value.structured_outputs)
            return {"observation": {**said, "images": images, "videos": videos}}
        case StepResult():
            shown = _packed(value.observation, form, buffers)["observation"]
            flags = {"terminated": value.terminated, "truncated": value.truncated}
            return {"step": {**flags, "reward": value.reward, "info": dict(value.info), "shown": shown}}
        case _:
            return {"agents": {agent: _packed(of_one, form, buffers) for agent, of_one in value.items()}}


def _image(image: Any, form: Form, buffers: list[Any]) -> dict[str, Any]:
    is_array = isinstance(image, np.ndarray)
    if is_array and form == "raw":
        data: Any = np.ascontiguousarray(image).data.cast("B")
        said: dict[str, Any] = {"form": "raw", "shape": list(image.shape)}
    else:
        data, said = _png(image), {"form": "png", "is_array": is_array}
    buffers.append(data)
    return {**said, "num_bytes": len(data)}


def _png(image: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    encoded = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    extra = {key: encoded.info[key] for key in ("exif", "transparency") if key in encoded.info}
    try:
        encoded.save(out, "PNG", compress_level=1, **extra)
    except OSError as error:
        raise EnvFailure("raised", f"an image cannot be sent: {error}; give arrays or RGB images") from error
    return out.getvalue()


class _Reader:
    """Takes the images from behind the JSON, in order."""

    def __init__(self, rest: memoryview, where: str) -> None:
        self._rest, self._where = rest, where

    def value(self, said: Mapping[str, Any]) -> Any:
        if "observation" in said:
            return self._observation(said["observation"])
        if "step" in said:
            step = said["step"]
            shown = self._observation(step["shown"])
            reward = float(step["reward"])
            return StepResult(shown, reward, step["terminated"], step["truncated"], dict(step["info"]))
        return {str(agent): self.value(of_one) for agent, of_one in said["agents"].items()}

    def _observation(self, said: Mapping[str, Any]) -> Observation:
        images = self._images(said["images"])
        videos = tuple(Video(self._images(each["frames"]), each["fps"]) for each in said["videos"])
        form = said.get("structured_outputs")
        return Observation(said["text"], images, videos, said["role"], said["summary"], form)

    def _images(self, several: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
        return tuple(self._image(said) for said in several)

    def _image(self, said: Mapping[str, Any]) -> Any:
        length = int(said["num_bytes"])
        data, self._rest = self._rest[:length], self._rest[length:]
        if len(data) != length:
            raise ValueError(f"an image of {length} bytes is cut off after {len(data)}")
        if said["form"] == "raw":
            height, width, channels = map(int, said["shape"])
            if channels != 3 or not 0 < height * width <= MAX_PIXELS:
                raise ValueError(f"an image of the shape {said['shape']}")
            return np.frombuffer(data, np.uint8).reshape(height, width, 3)
        image = image_of(bytes(data), self._where)
        return np.array(image) if said["is_array"] else image
