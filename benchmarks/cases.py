"""The cases of train_step.py: sizes of one step. Standard library only: TRL's environment has no vlrl."""

from __future__ import annotations

from dataclasses import dataclass

TOKEN_PIXELS = 28
"""Side of the square of pixels that becomes one token of the language model."""


@dataclass(frozen=True)
class Case:
    """Sizes of one step.

    Attributes:
        shape: of the model, see train_shapes.py.
        groups: prompts.
        group_size: episodes of each, n.
        turns: of an episode.
        images: of each turn.
        image_tokens: of an image, a square number.
        text_tokens: of a turn besides.
        completion_tokens: generated in a turn, at most.
        shortest: of the shortest completion, as a share of that; the whole step always generates all.
        alike: chance that a member's turn is the first member's, as long as all its turns before were.
        dtype: of the model.
        checkpointing: whether activations are computed again.
    """

    shape: str
    groups: int
    group_size: int
    turns: int
    images: int
    image_tokens: int
    text_tokens: int
    completion_tokens: int
    shortest: float = 0.5
    alike: float = 0.0
    dtype: str = "float32"
    checkpointing: bool = False

    @property
    def completions(self) -> int:
        """Episodes of one step."""
        return self.groups * self.group_size

    @property
    def tokens_per_side(self) -> int:
        """Tokens along one side of an image."""
        return round(self.image_tokens**0.5)

    @property
    def image_pixels(self) -> int:
        """Side of an image in pixels."""
        return self.tokens_per_side * TOKEN_PIXELS


CASES = {
    "a": Case("tiny", 16, 8, 1, 2, 4, 40, 16),
    "b": Case("11m", 4, 8, 1, 1, 256, 44, 48),
    "c": Case("11m", 1, 8, 6, 1, 64, 16, 24),
    "d": Case("3b", 8, 8, 1, 1, 1024, 128, 512, dtype="bfloat16", checkpointing=True),
}
AGAINST_TRL = ("a", "b")
"""Cases of which TRL can do the whole step with a given number of tokens. In c a random model would have to
call TRL's tools by itself; d is the trainer's alone."""
