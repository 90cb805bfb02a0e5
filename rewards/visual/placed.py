"""What every reward on places starts from: the text that is scored, the answer, and the image's frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vlrl.coordinates import Canvas, CoordinateFrame
from vlrl.parsing.extract import Part, scored_text
from vlrl.parsing.frames import AnswerFrames, open_frames
from vlrl.parsing.places import of_answer, try_read
from vlrl.types import Media

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Placed:
    """One completion and its sample's answer, on one image or video.

    Attributes:
        text: the part of the completion that is scored; None if it has none.
        answer: of the sample.
        frames: from the frames that both are written in to the image's own pixels.
    """

    text: str | None
    answer: Any
    frames: AnswerFrames

    def written(self, read: Callable[[str], Read]) -> Read | None:
        """What the completion says; None for a text that `read` refuses."""
        return try_read(read, self.text)

    def true(self, read: Callable[[str], Read], convert: Callable[[Any], Read], what: str) -> Read:
        """What the answer says, which is a text for `read` or a value for `convert`.

        Raises:
            ValueError: if it is not `what`.
        """
        return of_answer(self.answer, read, convert, what)


def placed(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media],
    frame: CoordinateFrame | None = None,
    answer_frame: CoordinateFrame = "original_pixels",
    media_index: int = 0,
    part: Part = "answer",
) -> Placed:
    """Prepare a reward on places (`vlrl.scoring.author.prepared_by`).

    Args:
        completion: what the model wrote.
        answer: of the sample.
        canvases: sizes of the sample's images and videos.
        frame: the frame the model writes in; None is what its family was taught (Media.coordinate_frame).
        answer_frame: the frame of the sample's answer.
        media_index: which of the sample's images or videos it is about; negative from the end.
        part: "answer" reads the strict think/answer form, "whole" all of the completion.

    Raises:
        ConfigError: for an unknown frame or part.
        ValueError: if the sample has no such medium.
    """
    frames = open_frames(canvases, media_index, frame, answer_frame)
    return Placed(scored_text(completion, part), answer, frames)
