"""Videos, answered again by readers of their pixels that know nothing of how they were made."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.envs.visual.drawing.draw import COLOURS
from vlrl.envs.visual.videos.count_over_time import CountOverTime, timeline
from vlrl.envs.visual.videos.event_order import LEVELS, EventOrder
from vlrl.envs.visual.videos.tracking import Tracking

SIZE = 224


def film(env: Any, level: int, seed: int) -> np.ndarray[Any, Any]:
    video = env.reset({"level": level}, seed).videos[0]
    assert video.fps == 4
    assert 8 <= len(video.frames) <= 24
    return np.stack(video.frames)


def where(frame: np.ndarray[Any, Any], colour: str) -> np.ndarray[Any, Any]:
    """(y, x) of the pixels that have exactly a colour."""
    return np.argwhere((frame == np.array(COLOURS[colour])).all(2))


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(0, 10), st.integers(1, 3))
def test_timelines_have_their_count_and_begin_and_end_off(
    seed: int, count: int, more: int, longest: int
) -> None:
    num_frames = 2 * count + 1 + more
    on = timeline(np.random.default_rng(seed), num_frames, count, longest)
    assert len(on) == num_frames
    assert not on[0]
    assert not on[-1]
    assert sum(not before and after for before, after in pairwise(on.tolist())) == count
    padded = "".join("x" if lit else " " for lit in on)
    assert max(len(run) for run in padded.split()) <= longest


@pytest.mark.parametrize("level", range(1, 6))
def test_what_is_counted_can_be_counted_in_the_frames(level: int) -> None:
    env, kinds = CountOverTime(image_size=SIZE), set()
    for seed in range(40):
        frames = film(env, level, seed)
        question = env.question
        kind = question.metadata["kind"]
        kinds.add(kind)
        words = question.text.split()
        colour = next(word for word in words if word in COLOURS)
        seen = [where(frame, colour) for frame in frames]
        if kind == "blink":  # lit or not
            on = [len(pixels) > 100 for pixels in seen]
        elif kind == "bounce":  # the ball's lower edge is on the ground
            on = [pixels[:, 0].max() > 180 for pixels in seen]
        else:  # all of the ball is to the right of the box's opening
            on = [pixels[:, 1].min() > 154 for pixels in seen]
        num_times = sum(not before and after for before, after in pairwise(on))
        assert num_times == question.answer.value, f"{kind} level {level} seed {seed}"
    assert kinds == {"blink", "bounce", "enter"}


@pytest.mark.parametrize("level", range(1, 6))
def test_events_happen_in_the_order_of_the_answer(level: int) -> None:
    env = EventOrder(image_size=SIZE)
    num_events, num_frames, gap = LEVELS[level - 1]
    for seed in range(40):
        frames = film(env, level, seed)
        assert len(frames) == num_frames
        columns = np.array_split(frames[:, :, : SIZE // num_events * num_events], num_events, axis=2)
        happened = []
        for column in columns:
            changes = [
                number for number in range(1, num_frames) if (column[number] != column[number - 1]).any()
            ]
            assert len(changes) == 1
            happened.append(changes[0])
        order = np.argsort(happened)
        assert np.diff(np.sort(happened)).min() >= gap
        said = "".join(str(index + 1) for index in order)
        text = env.question.text
        wanted = said[0] if "happens first" in text else said[-1] if "happens last" in text else said
        assert env.question.answer.text == wanted


@pytest.mark.parametrize("level", range(1, 6))
def test_the_ball_is_followed_by_watching_the_cups(level: int) -> None:
    """Two cups that left their row between two frames with all cups in it have changed places."""
    env = Tracking(image_size=SIZE)
    ends = set()
    for seed in range(40):
        frames = film(env, level, seed)
        num_cups = int(env.question.text.split(" of the ")[1].split(" ")[0])
        ball = where(frames[0], "yellow")[:, 1].mean()
        slot = int(ball * num_cups / SIZE)
        for last in range(7, len(frames), 4):
            assert np.array_equal(frames[last], frames[3])
            one, other = _swapped(frames[last - 3], frames[3], num_cups)
            slot = other if slot == one else one if slot == other else slot
        assert env.question.answer.text == str(slot + 1)
        ends.add(slot)
    assert len(ends) == num_cups


def _swapped(early: np.ndarray[Any, Any], row: np.ndarray[Any, Any], num_cups: int) -> list[int]:
    """The two slots that a cup has left: where the middle of a standing cup is no longer the same."""
    middles = [int(SIZE * (2 * slot + 1) / (2 * num_cups)) for slot in range(num_cups)]
    changes = [(early[104:156, x - 20 : x + 20] != row[104:156, x - 20 : x + 20]).mean() for x in middles]
    return np.argsort(changes)[-2:].tolist()
