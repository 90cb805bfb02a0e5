"""One HTML file that shows rows as the model will see them: images, boxes, tokens, what is trained."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.check.data.audit import prompt_limit, source_rewards
from vlrl.check.data.plain import PlainSamples
from vlrl.check.data.records import CheckedSource
from vlrl.config import Config
from vlrl.coordinates import CoordinateFrame
from vlrl.errors import DataError
from vlrl.protocols import Processor
from vlrl.sft import supervised_group
from vlrl.tracking.rollouts.sound import sound_image
from vlrl.types import ByteArray, IntArray, Media, ReferenceTurn, Row, Sample
from vlrl.viewer.boxes import Mark, find_marks
from vlrl.viewer.images import PIXELATED_BELOW, data_uri
from vlrl.viewer.page import write_page
from vlrl.viewer.prompt_tokens import TokenSpan, context_spans, turn_spans

MAX_FRAMES = 16
"""Frames of a video shown at most, evenly spread."""

FRAME_SIDE = 320
"""Longer side of a shown frame in pixels; an image is shown whole."""

PASS_RATE = "pass_rate"
"""Key of a row under which its pass rate stands in words, if it was rated."""

LOSSLESS_PIXELS = 300_000
"""Images of more pixels are put into the page as JPEG: only for looking, the model gets them whole."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An image or frame in the page: data URI, alternative text, size in pixels, time of a frame."""

    uri: str
    width: int
    height: int
    seconds: str = ""


@dataclass(frozen=True, slots=True)
class MediumCard:
    """One medium with what is drawn on it; `left_out` frames are not shown."""

    kind: str
    caption: Sequence[str]
    images: Sequence[Shown]
    pixelated: bool
    marks: Sequence[Mark] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SampleCard:
    """One row. `problem` is why it cannot be shown, and then nothing else is there."""

    id: str
    place: str
    problem: str = ""
    media: Sequence[MediumCard] = ()
    messages: Sequence[tuple[str, str]] = ()
    answer: str = ""
    target: str = ""
    metadata: str = ""
    spans: Sequence[TokenSpan] = ()
    num_tokens: int = 0
    num_media_tokens: int = 0
    num_trained: int = 0
    room: float = 0.0
    masked_by: str = ""
    pass_rate: str = ""


@dataclass(frozen=True, slots=True)
class SampleLook:
    """How rows are to be shown.

    Attributes:
        config: the run's.
        processor: of the model; None shows the media at their own size and no tokens.
        frame: of the boxes in the data; None draws none.
        mask: mark what is trained.
    """

    config: Config
    processor: Processor | None
    frame: CoordinateFrame | None
    mask: bool


def write_samples(
    path: Path,
    title: str,
    rows: Sequence[tuple[CheckedSource, Row | DataError]],
    look: SampleLook,
    num_rows: int,
) -> None:
    """Write the page.

    Args:
        path: the .html file, replaced whole.
        title: of the page: the config or the data.
        rows: each with its source; an error stands for a row that could not be read.
        look: how they are shown.
        num_rows: how many there are in all.
    """
    cards = [sample_card(source, row, look) for source, row in rows]
    limits = {prompt_limit(look.config, source) for source, _ in rows} if look.processor else set()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(
        path,
        "samples.html.j2",
        title=title,
        facts=_facts(rows, look, num_rows, limits),
        cards=cards,
        mask=look.mask and look.processor is not None,
        frame=look.frame,
        has_marks=any(medium.marks for card in cards for medium in card.media),
        has_tokens=any(card.spans for card in cards),
    )


def sample_card(source: CheckedSource, row: Row | DataError, look: SampleLook) -> SampleCard:
    """One row made ready to show; whatever is wrong with it is shown in its place."""
    if isinstance(row, DataError):
        return SampleCard(source.section, source.config.name, problem=str(row))
    name, place = str(row["id"]), str(row.get("place", source.section))
    try:
        sample = (look.processor or PlainSamples(look.config)).sample(row)
        spans, trained, masked_by = _spans(sample, source, look)
    except DataError as error:
        return SampleCard(name, place, problem=str(error))
    num_tokens = len(sample.prompt.token_ids)
    # A row does not say which image its boxes are on: they are drawn on the first.
    marked = next((medium for medium in sample.media if medium.kind == "image"), None)
    return SampleCard(
        id=name,
        place=place,
        media=[medium_card(medium, sample if medium is marked else None, look) for medium in sample.media],
        messages=[(str(m["role"]), _text(m["content"])) for m in sample.messages],
        answer="" if sample.answer is None else _plain(sample.answer, None),
        target=sample.target or "",
        metadata=_plain(sample.metadata, 1) if sample.metadata else "",
        spans=spans,
        num_tokens=num_tokens,
        num_media_tokens=sum(medium.num_tokens for medium in sample.media),
        num_trained=trained,
        room=num_tokens / prompt_limit(look.config, source),
        masked_by=masked_by,
        pass_rate=str(row.get(PASS_RATE, "")),
    )


def medium_card(medium: Media, sample: Sample | None, look: SampleLook) -> MediumCard:
    """A medium as the model sees it; the boxes of `sample` are drawn on it, if given."""
    if medium.kind == "audio":
        return _sound_card(medium, look)
    (height, width), (own_height, own_width) = medium.size, medium.original_size
    caption = [f"{width}×{height} pixels"]
    if medium.size != medium.original_size:
        caption.append(f"from {own_width}×{own_height}")
    if look.processor:
        grid = "×".join(map(str, medium.grid_thw if medium.kind == "video" else medium.grid_thw[1:]))
        caption += [f"grid {grid}", f"{medium.num_tokens:,} tokens"]
    chosen = list(range(len(medium.frames)))
    if medium.kind == "video":
        rate = f", {medium.fps:.3g} a second" if medium.fps else ""
        caption.append(f"{len(chosen)} frames{rate}")
        chosen = sorted({round(i) for i in np.linspace(0, len(chosen) - 1, MAX_FRAMES)})
    times = [f"{s:.2f} s" for s in medium.timestamps_s] or [""] * len(medium.frames)
    return MediumCard(
        kind=medium.kind,
        caption=caption,
        images=[_shown(medium.frames[i], times[i], medium.kind == "video") for i in chosen],
        pixelated=min(width, height) < PIXELATED_BELOW // 2,
        marks=find_marks(sample, look.frame, medium) if sample and look.frame else (),
        left_out=len(medium.frames) - len(chosen),
    )


def _sound_card(audio: Media, look: SampleLook) -> MediumCard:
    """An audio by its spectrogram."""
    caption = [f"{len(audio.frames) / (audio.fps or 1):.2f} s of sound", f"{audio.fps:,g} samples a second"]
    if look.processor:
        caption.append(f"{audio.num_tokens:,} tokens")
    return MediumCard("audio", caption, [_shown(sound_image(audio), "", False)], pixelated=False)


def _spans(sample: Sample, source: CheckedSource, look: SampleLook) -> tuple[list[TokenSpan], int, str]:
    """(spans, number of trained tokens, whose rule decides) of a sample."""
    processor = look.processor
    if processor is None:
        return [], 0, ""
    if not look.mask:
        return context_spans(sample.prompt, sample.media, processor), 0, ""
    if source_rewards(look.config, source):
        # What the policy will generate, and be trained on, takes the place of the reference.
        spans = context_spans(sample.prompt, sample.media, processor)
        drawn = TokenSpan("what the model generates", "learn drawn", "the completion: every token is trained")
        return [*spans, drawn], 0, "reinforcement"
    if not sample.target:
        raise DataError(
            f"sample {sample.id!r} has neither rewards nor a target: there is nothing to train on; name "
            "rewards in the config"
        )
    train_on = look.config.sft.train_on
    (trajectory,) = supervised_group(sample, processor, train_on).trajectories
    if train_on == "last":
        ids: IntArray = processor.encode_target(sample.target, sample.prompt.opened)
        turns = [ReferenceTurn(sample.prompt, sample.media, ids)]
    else:
        turns = processor.reference_turns(sample)
    mask = [bool(drawn) for ledger in trajectory.ledgers for drawn in ledger.loss_mask]
    return turn_spans(turns, mask, processor), sum(mask), f"supervised, sft.train_on={train_on}"


def _facts(
    rows: Sequence[tuple[CheckedSource, Row | DataError]], look: SampleLook, num_rows: int, limits: set[int]
) -> list[tuple[str, str]]:
    facts = [("rows", f"{len(rows):,} of {num_rows:,}")]
    facts += [("source", name) for name in dict.fromkeys(s.config.name for s, _ in rows)]
    without = "none: no tokens, and media at their own size"
    facts.append(("model", look.config.model.path if look.processor else without))
    facts += [("room for a prompt", f"{limit:,} tokens") for limit in sorted(limits)]
    if look.frame is not None:
        facts.append(("boxes are in", look.frame))
    return facts


def _shown(frame: ByteArray, seconds: str, small: bool) -> Shown:
    image = Image.fromarray(np.asarray(frame))
    width, height = image.size
    if small:
        image.thumbnail((FRAME_SIDE, FRAME_SIDE))
    out, lossless = io.BytesIO(), image.width * image.height <= LOSSLESS_PIXELS and not small
    image.save(out, "PNG") if lossless else image.save(out, "JPEG", quality=88)
    kind = "png" if lossless else "jpeg"
    return Shown(data_uri(out.getvalue(), kind), width, height, seconds)


def _text(content: Any) -> str:
    """A message's text, with a sign where a medium stands."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else f"⟦{part['type']}⟧" for part in content)


def _plain(value: Any, indent: int | None) -> str:
    """Any value of a row as text."""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str, indent=indent)
    )
