"""`@prepared_by`: a reward has the options of what prepares it, in signature, docstring and calls."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import pytest

from vlrl.check.catalog.rewards import describe
from vlrl.errors import ConfigError
from vlrl.rewards.visual.scene import read_scene
from vlrl.scoring.author import prepared_by
from vlrl.scoring.functions import find_reward


class Words(NamedTuple):
    said: list[str]
    true: list[str]


def words(completion: str, answer: Any, *, canvases: object, fold: bool = True) -> Words:
    """Cut both texts up.

    Args:
        completion: what the model wrote.
        answer: of the sample.
        canvases: not looked at.
        fold: compare without regard to case,
            which is the default.

    Raises:
        ValueError: for no answer.
    """
    if answer is None:
        raise ValueError("no answer")
    texts = [text.casefold() if fold else text for text in (completion, str(answer))]
    return Words(texts[0].split(), texts[1].split())


@prepared_by(words)
def common(pair: Words, *, floor: float = 0.0) -> float:
    """Share of the words.

    Args:
        pair: of texts.
        floor: the least.

    Raises:
        ConfigError: never.
    """
    return max(floor, len({*pair.said} & {*pair.true}) / len({*pair.true}))


@prepared_by(words)
def plain(pair: Words) -> float:
    """1."""
    return 1.0


def test_the_signature_has_its_own_options_and_the_shared_ones() -> None:
    assert str(inspect.signature(common)) == (
        "(completion: 'str', answer: 'Any', *, canvases: 'object', floor: 'float' = 0.0, "
        "fold: 'bool' = True, **context: 'Any') -> 'float'"
    )


def test_a_call_passes_each_option_to_its_owner_and_drops_the_context() -> None:
    assert common("A b", "a c", canvases=()) == 0.5
    assert common("A b", "a c", canvases=(), fold=False, floor=0.25, image_id=7) == 0.25
    with pytest.raises(ValueError, match="no answer"):
        common("a", None, canvases=())
    with pytest.raises(TypeError, match="canvases"):
        common("a", "a")


def test_the_docstring_describes_every_option() -> None:
    assert inspect.getdoc(common) == (
        "Share of the words.\n\nArgs:\n    floor: the least.\n    canvases: not looked at.\n"
        "    fold: compare without regard to case,\n        which is the default.\n\n"
        "Raises:\n    ConfigError: never."
    )
    assert (inspect.getdoc(plain) or "").startswith("1.\n\nArgs:\n    canvases: not looked at.\n")


@pytest.mark.parametrize(
    "name", ["box_iou", "box_giou", "detection_f1", "od_ap", "mask_iou", "keypoint_oks", "track_iou"]
)
def test_built_in_rewards_show_every_option_with_its_meaning(name: str) -> None:
    row = describe(name)
    assert {"frame", "answer_frame", "media_index", "part"} <= row["options"].keys()
    assert row["wants"] == ["canvases"]
    for option in ("canvases", "frame", "answer_frame", "media_index", "part"):
        assert f"\n    {option}: " in row["doc"]
    assert find_reward(name, {"frame": "unit"}).wants("canvases")


def test_what_is_prepared_by_something_prepared_has_the_options_of_both() -> None:
    assert list(inspect.signature(read_scene).parameters)[:4] == [
        "completion",
        "answer",
        "canvases",
        "match_labels",
    ]
    with pytest.raises(ConfigError, match="answer_frame"):
        read_scene("[]", [], canvases=[_Canvas()], answer_frame="miles")


class _Canvas:
    original_size = size = (4, 4)
    coordinate_frame = "unit"
