"""Groups without their frames: packed alike, small, and whole again where the frames are."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from builders import make_group, make_sample

from vlrl.batch import Batch, media_in, with_frames
from vlrl.cluster.frames import rejoin, separate
from vlrl.errors import InternalError
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group, Media

OPTIONS = PackOptions(
    num_ranks=2, max_tokens=40, aggregation="token", max_completion_tokens=16, keep_zero_advantage=True
)


def screenshot(number: int) -> Media:
    frames = np.random.default_rng(number).integers(0, 256, (1, 280, 280, 3), np.uint8)
    return Media("image", f"sha{number}", frames, (280, 280), (1, 20, 20), 1)


def groups() -> list[Group]:
    """Four groups; the first two are shown the same image, the last one none."""
    shown = [(screenshot(1),), (screenshot(1), screenshot(2)), (screenshot(3),), ()]
    samples = [make_sample([1, 2, 3], id=str(n), media=media) for n, media in enumerate(shown)]
    return [make_group([5, 7, 3], sample=sample, seed=n) for n, sample in enumerate(samples)]


def arrays(batch: Batch) -> list[dict[str, Any]]:
    """Everything in a batch but pixels, to be compared."""
    return [
        {
            field.name: value.tolist() if isinstance(value, np.ndarray) else value
            for field in fields(micro_batch)
            if not isinstance(value := getattr(micro_batch, field.name), tuple) or field.name == "media_keys"
        }
        for of_rank in batch
        for micro_batch in of_rank
    ]


def test_groups_without_frames_are_small_and_come_back_whole() -> None:
    whole = groups()
    pickled, frames = separate(whole)
    assert set(frames) == {"sha1", "sha2", "sha3"}
    assert len(pickled) < 20_000 < min(array.nbytes for array in frames.values())
    back = rejoin(pickled, frames)
    assert [t.media[0].sha256 for g in back[:3] for t in g.trajectories] == ["sha1"] * 6 + ["sha3"] * 3
    for one, other in zip(whole, back, strict=True):
        for mine, its in zip(one.trajectories, other.trajectories, strict=True):
            for before, after in zip(mine.media, its.media, strict=True):
                assert after.has_frames
                np.testing.assert_array_equal(after.frames, before.frames)
    assert back[0].trajectories[0].media[0] is back[0].trajectories[1].media[0], "one medium is one record"


def test_they_are_packed_as_whole_ones_are_and_a_rank_adds_the_frames() -> None:
    pickled, frames = separate(groups())
    expected = pack(groups(), media_themselves, OPTIONS)
    batch = pickle.loads(pickle.dumps(pack(rejoin(pickled), media_themselves, OPTIONS)))
    assert arrays(batch) == arrays(expected)
    assert len(pickle.dumps(batch)) < 40_000
    for of_rank, expected_of_rank in zip(batch, expected, strict=True):
        light, wanted = media_in(of_rank), media_in(expected_of_rank)
        assert not any(medium.has_frames for medium in light)
        for medium, other in zip(with_frames(light, [{}, frames]), wanted, strict=True):
            assert (medium.sha256, medium.size) == (other.sha256, other.size)
            np.testing.assert_array_equal(medium.frames, other.frames)


def test_frames_that_were_not_sent_are_named_and_never_black() -> None:
    light = screenshot(4).without_frames()
    with pytest.raises(InternalError, match="frames of image sha4 were not sent"):
        with_frames([light], [{"sha5": screenshot(5).frames}])


def test_a_medium_without_frames_keeps_its_shape_through_pickle() -> None:
    medium = screenshot(7)
    light = pickle.loads(pickle.dumps(medium.without_frames()))
    assert (light.size, light.shape, light.has_frames) == (medium.size, medium.shape, False)
    assert len(pickle.dumps(light)) < 1000
    assert pickle.loads(pickle.dumps(medium)).has_frames
