"""Code of a page: rendered by the web environments' browser, and compared with the image in the prompt."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.render import Rendered, render
from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.rewards.images.rendered import code_of
from vlrl.rewards.images.similarity import over_blank, ssim
from vlrl.rewards.text.ocr import word_accuracy
from vlrl.scoring.author import Scored, reward
from vlrl.types import Media

_TAG = re.compile(r"<[A-Za-z]")


@reward(range=(0.0, 1.0))
def page_code(
    completion: str,
    answer: object,
    *,
    media: Sequence[Media],
    media_index: int = 0,
    size: Sequence[int] | None = None,
    side: int = 256,
    text_share: float = 0.0,
    time_limit_s: float = 10.0,
    sandbox: Sandbox = "require",
    part: Part = "answer",
) -> Scored:
    """SSIM of the page that HTML shows and the prompt's image, over that of a blank sheet; with its text.

    (1 − text_share)·image + text_share·text, in [0, 1]. image: `vlrl.rewards.images.similarity` has the
    formula, so that an empty page earns nothing. text: `word_accuracy` of the two pages' text. Source:
    Design2Code compares what pages show and say (Si et al. 2024, arXiv 2403.03163, section 3); SSIM needs no
    network of its own.

    The text is one document, in a ```html fence or bare, with its styles and scripts in it. It is rendered by
    the browser of the web environments: no network, no files of this machine, nothing else to load, no other
    page to go to. It cannot see the image that it is compared with. What does not fit the size is cut off. A
    page that does not load or draw in time, or ends its process, scores 0, as the note page_code/shown shows.

    Args:
        completion: what the model wrote.
        answer: looked at for a text share only: the reference page's HTML or its plain text.
        media: the sample's.
        media_index: which of them shows the page.
        size: [width, height] of the page in pixels; None for the image's own.
        side: the comparison's longer side in pixels.
        text_share: of the value, from 0 to 1.
        time_limit_s: real seconds that loading, and drawing, may take.
        sandbox: "warn" goes on without bubblewrap where it cannot run, loudly.
        part: "answer" or "whole".

    Raises:
        ConfigError: without a browser or a sandbox, or for a wrong option.
        ValueError: for a sample without that image, a plain one or one of a wrong size; or without a text.
        BrowserFailure: if the browser cannot show a blank page either.
    """
    shape = _checked(size, text_share, time_limit_s, sandbox)
    if not -len(media) <= media_index < len(media):
        raise ValueError(f"media_index={media_index}, but the sample has {len(media)} images and videos")
    reference = media[media_index].frames[-1]
    over_blank(None, reference, ssim, side)  # a sample that is unusable is so whatever was written (law 7)
    shape = shape or (reference.shape[1], reference.shape[0])
    right = _text_of(references(answer)[0], shape, time_limit_s, sandbox) if text_share else ""
    said = scored_text(completion, part)
    html = code_of(said, "html") if said else ""
    shown = render(html, shape, time_limit_s, sandbox) if _TAG.search(html) else None
    if shown is None:
        return Scored(0.0, {"page_code/shown": 0.0})
    image = over_blank(shown.pixels, reference, ssim, side)
    notes = {"page_code/shown": 1.0, "page_code/image": image}
    if not text_share:
        return Scored(image, notes)
    text = max(0.0, float(word_accuracy(shown.text, right, part="whole")))
    return Scored((1 - text_share) * image + text_share * text, {**notes, "page_code/text": text})


def _checked(
    size: Sequence[int] | None, text_share: float, time_limit_s: float, sandbox: str
) -> tuple[int, int] | None:
    if size is not None and (len(size) != 2 or not all(type(length) is int for length in size)):
        raise ConfigError(f"page_code: size={size!r} must be [width, height] in whole pixels")
    if not 0 <= text_share <= 1 or time_limit_s <= 0 or sandbox not in ("require", "warn"):
        raise ConfigError(
            f"page_code: text_share={text_share} lies from 0 to 1, time_limit_s={time_limit_s} above 0, and "
            f"sandbox={sandbox!r} is require or warn"
        )
    return None if size is None else (size[0], size[1])


@functools.lru_cache(maxsize=256)
def _text_of(html: str, size: tuple[int, int], limit_s: float, sandbox: Sandbox) -> str:
    """The text that the sample's own page shows.

    Raises:
        ValueError: if it cannot be shown, or shows none.
    """
    shown: Rendered | None = render(html, size, limit_s, sandbox)
    if shown is None or not shown.text.strip():
        raise ValueError(
            "the sample's answer is not a page with a text: text_share has nothing to compare with"
        )
    return shown.text
