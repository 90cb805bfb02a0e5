"""An observation as message parts."""

from __future__ import annotations

import numpy as np

from vlrl.environment.observe import message_of, parts_of
from vlrl.processors.messages import split_parts, text_of
from vlrl.protocols import Observation, Video

IMAGE = np.zeros((2, 3, 3), np.uint8)


def test_images_then_videos_then_text() -> None:
    observation = Observation("Go on.", [IMAGE, IMAGE], [Video([IMAGE] * 4, 2)])
    parts = parts_of(observation)
    assert [part["type"] for part in parts] == ["image", "image", "video", "text"]
    assert parts[0]["image"] is IMAGE
    assert len(parts[2]["video"]) == 4
    assert parts[2]["fps"] == 2.0
    assert parts[3] == {"type": "text", "text": "Go on."}


def test_what_is_not_there_has_no_part() -> None:
    assert parts_of(Observation()) == []
    assert [part["type"] for part in parts_of(Observation(images=[IMAGE]))] == ["image"]


def test_a_processor_reads_the_message() -> None:
    message = message_of(Observation("Found 3.", [IMAGE], role="tool"))
    (plain,), media = split_parts([message], "here")
    assert plain["role"] == "tool"
    assert text_of(plain) == "Found 3."
    assert len(media) == 1
