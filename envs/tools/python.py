"""A tool that runs Python in a sandbox."""

from __future__ import annotations

import io
from typing import Annotated, Literal

from PIL import Image
from pydantic import Field

from vlrl.envs.tools.declare import ToolError, shortened
from vlrl.envs.tools.images import MAX_PIXELS
from vlrl.envs.tools.sandbox import IMAGE, Limits, check_sandbox, run_python
from vlrl.errors import ConfigError


class Python:
    """Runs a model's program; see `vlrl.envs.tools.sandbox` for what it can reach."""

    def __init__(
        self,
        sandbox: Literal["required", "unsafe_subprocess"] = "required",
        time_limit_s: float = 5.0,
        memory_mib: int = 1024,
        num_processes: int = 8,
        max_output_chars: int = 4000,
    ) -> None:
        """Choose the sandbox and its limits.

        Args:
            sandbox: "required" needs bubblewrap; "unsafe_subprocess" is a plain process with this user's
                rights, network and files.
            time_limit_s: processor time of a process; wall time is four times that.
            memory_mib: address space of one process, and memory of all of them together.
            num_processes: processes and threads at once, two of them the sandbox's own.
            max_output_chars: longest output shown; of more, the beginning and the end.

        Raises:
            ConfigError: for a limit out of bounds, and if there is no sandbox here.
        """
        if sandbox not in ("required", "unsafe_subprocess"):
            raise ConfigError(f"tool 'python': sandbox={sandbox!r} is not one of required, unsafe_subprocess")
        numbers = {
            "time_limit_s": time_limit_s,
            "memory_mib": memory_mib,
            "max_output_chars": max_output_chars,
        }
        for key, value in numbers.items():
            if value <= 0:
                raise ConfigError(f"tool 'python': {key}={value} must be above 0")
        if num_processes < 4:
            raise ConfigError(f"tool 'python': num_processes={num_processes} must be at least 4")
        self._sandboxed, self._most_chars = sandbox == "required", max_output_chars
        self._limits = Limits(time_limit_s, memory_mib, num_processes)
        if self._sandboxed:
            check_sandbox()

    def __call__(
        self, code: Annotated[str, Field(max_length=20_000)], images: list[Image.Image]
    ) -> tuple[str | Image.Image, ...]:
        """Run a Python program and show what it prints; numpy and PIL are there, a network is not.

        Args:
            code: the program. The images seen so far are the files image_1.png, image_2.png and so on;
                an image that it saves as out.png is shown. Nothing else is kept.
            images: images seen so far.
        """
        files = {f"image_{number}.png": _png(image) for number, image in enumerate(images, 1)}
        ended = run_python(code, files, self._limits, sandboxed=self._sandboxed)
        output = shortened(ended.output.decode(errors="replace").strip(), self._most_chars)
        if ended.out_of_time:
            raise ToolError(f"the program ran longer than {self._limits.time_s:g} s. {output}".strip())
        if ended.exceeded:
            raise ToolError(f"the program was ended: it had {ended.exceeded}. {output}".strip())
        if ended.status is None or ended.status < 0:
            raise ToolError(f"the program was killed, perhaps for lack of memory. {output}".strip())
        shown = _image(ended.image)
        return (*([output] if output else []), *shown) or ("(nothing was printed)",)


def _png(image: Image.Image) -> bytes:
    written = io.BytesIO()
    image.save(written, "PNG", compress_level=1)
    return written.getvalue()


def _image(data: bytes) -> list[str | Image.Image]:
    """The image that a program saved: untrusted bytes."""
    if not data:
        return []
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.width * image.height > MAX_PIXELS:
                return [f"({IMAGE} has more than {MAX_PIXELS} pixels and is not shown)"]
            return [image.convert("RGB")]
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what Pillow raises
        return [f"({IMAGE} cannot be read as a PNG image)"]
