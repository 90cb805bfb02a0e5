"""Code that draws: run in the sandbox, and its image compared with the one in the prompt."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from PIL import Image

from vlrl.envs.tools.sandbox import Limits, check_sandbox, run_python
from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, scored_text
from vlrl.rewards.images.similarity import Pixels, over_blank, ssim
from vlrl.scoring.author import Scored, reward
from vlrl.types import Media

Sandbox: TypeAlias = Literal["required", "unsafe_subprocess"]

MAX_PIXELS = 2**24
"""Of the image that the code saves: more is not an image, and none of it is decoded."""

# What the code has drawn is saved at the size of its own figure, if it has not saved an image itself.
_SAVE = """

import os as _os
import matplotlib.pyplot as _plt
if not _os.path.exists("out.png"):
    _plt.savefig("out.png", dpi=100)
"""


@reward(range=(0.0, 1.0))
def chart_code(
    completion: str,
    answer: object,
    *,
    media: Sequence[Media],
    media_index: int = 0,
    side: int = 256,
    sandbox: Sandbox = "required",
    time_limit_s: float = 10.0,
    memory_mib: int = 2048,
    part: Part = "answer",
) -> Scored:
    """SSIM of the chart that matplotlib code draws and the prompt's image, over that of a blank sheet.

    Range [0, 1]: `vlrl.rewards.images.similarity` has the formula, so that empty axes earn little and a blank
    figure nothing. Source: Plot2Code and ChartMimic compare what the code draws (arXiv 2405.07990,
    2406.09961), by judges or by the figures' elements; SSIM is what needs neither.

    The text is one program, in a ```python fence or bare. It runs in the sandbox of the tool python: no
    network, no files of this machine, limits on time, memory and processes. It cannot see the image it is
    compared with. What it saves as out.png counts, else the current figure. Code that fails, draws nothing,
    runs too long or saves what is not a PNG scores 0, as the note chart_code/ran shows.

    Args:
        completion: what the model wrote.
        answer: not looked at: the reference is the image.
        media: the sample's.
        media_index: which of them is the chart.
        side: the comparison's longer side in pixels.
        sandbox: "unsafe_subprocess" runs the code with this user's rights.
        time_limit_s: processor time; wall time is four times that.
        memory_mib: address space.
        part: "answer" or "whole".

    Raises:
        ConfigError: without a sandbox, or for wrong limits.
        ValueError: for a sample without that image, or a plain one.
        ResourceError: if no process can be started.
    """
    if sandbox not in ("required", "unsafe_subprocess") or time_limit_s <= 0 or memory_mib <= 0:
        raise ConfigError(
            f"chart_code: sandbox={sandbox!r} is required or unsafe_subprocess; time_limit_s={time_limit_s} "
            f"and memory_mib={memory_mib} must be above 0"
        )
    if not -len(media) <= media_index < len(media):
        raise ValueError(f"media_index={media_index}, but the sample has {len(media)} images and videos")
    reference = media[media_index].frames[-1]
    over_blank(None, reference, ssim, side)  # a sample that is unusable is so whatever was written (law 7)
    text = scored_text(completion, part)
    program = code_of(text, "python|py") if text else ""
    if not program:
        return Scored(0.0, {"chart_code/ran": 0.0})
    if sandbox == "required":
        check_sandbox()
    limits = Limits(time_limit_s, memory_mib)
    ended = run_python(program + _SAVE, {}, limits, sandboxed=sandbox == "required")
    image = decoded(ended.image)
    return Scored(over_blank(image, reference, ssim, side), {"chart_code/ran": float(image is not None)})


def code_of(text: str, languages: str) -> str:
    """The program of a text: its only fence, or all of it if there is none; "" for several.

    Args:
        text: what the model wrote.
        languages: a pattern of the fence's names for them; it may have none.
    """
    if "```" not in text:
        return text
    found = re.fullmatch(rf"```(?:{languages})?[ \t]*\n(.*?)\n?```", text.strip(), re.DOTALL)
    return found.group(1) if found and "```" not in found.group(1) else ""


def decoded(data: bytes) -> Pixels | None:
    """The pixels of a PNG that a model's program saved, over white; None for what is none."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            sheet = Image.new("RGBA", image.size, "white")
            sheet.alpha_composite(image.convert("RGBA"))
            found: Pixels = np.asarray(sheet.convert("RGB"))
            return found
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what Pillow raises
        return None
