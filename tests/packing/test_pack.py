"""Groups to micro-batches: nothing lost, nothing twice, weights as documented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from builders import (
    advantages_of,
    make_generation,
    make_group,
    make_sample,
    make_trajectory,
    no_pixels,
    text_prompt,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.algorithm.credit import assign_credit, group_with_advantages
from vlrl.batch import Batch, MicroBatch
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.packing.minibatch import part_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import counted, pack
from vlrl.packing.token_weights import token_weights
from vlrl.rollout.session import Session
from vlrl.types import EnvTask, Group, Ledger, Media, Score

MAX_COMPLETION = 16


def lay_out(groups: Sequence[Group], **options: Any) -> Batch:
    defaults: dict[str, Any] = {
        "num_ranks": 1,
        "max_tokens": 1000,
        "aggregation": "token",
        "max_completion_tokens": MAX_COMPLETION,
        "keep_zero_advantage": True,
    }
    pixels = options.pop("pixels", no_pixels)
    return pack(groups, pixels, PackOptions(**{**defaults, **options}))


def micro_batches(batch: Batch) -> list[MicroBatch]:
    return [m for rank in batch for m in rank]


def trained(batch: Batch) -> list[tuple[str, int, float, float, float]]:
    """Every trained token of a batch as (sample, id, sampler logprob, advantage, weight), sorted."""
    return sorted(
        (m.token_sample_ids[int(row)], int(token), float(logprob), float(advantage), round(float(weight), 7))
        for m in micro_batches(batch)
        for row, token, logprob, advantage, weight in zip(
            m.sequence_ids, m.target_ids, m.sampler_logprobs, m.advantages, m.weights, strict=True
        )
    )


def test_the_worked_example_of_micro_batch() -> None:
    sample = make_sample([100, 101])
    group = group_with_advantages(
        [
            make_trajectory(sample, [10, 11, 12], logprobs=[-1, -2, -3]),
            make_trajectory(sample, [10, 21, 22], logprobs=[-4, -5, -6]),
            make_trajectory(sample, [30, 31], logprobs=[-7, -8]),
        ],
        [1.0, -1.0, 2.0],
    )
    [[batch]] = lay_out([group])
    assert batch.input_ids.tolist() == [100, 101, 10, 11, 21, 30]
    assert batch.seen_until.tolist() == [6, 6, 5, 4, 5, 6]
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 3, 2]] * 3
    assert batch.source_index.tolist() == [1, 2, 3, 1, 2, 4, 1, 5]
    assert batch.target_ids.tolist() == [10, 11, 12, 10, 21, 22, 30, 31]
    assert batch.sampler_logprobs.tolist() == [-1, -2, -3, -4, -5, -6, -7, -8]
    assert batch.advantages.tolist() == [1, 1, 1, -1, -1, -1, 2, 2]
    assert np.allclose(batch.weights, 1 / 8)
    assert batch.sequence_ids.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert batch.token_sample_ids == ("s", "s", "s")


def test_an_observation_is_seen_and_not_trained() -> None:
    session = Session(make_sample([100, 101]), 0)
    session.append_action(make_generation([10, 11], [-1, -2]))
    session.append_observation(text_prompt([50], session.next_position), ())
    session.append_action(make_generation([12], [-3]))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(1.0, {})
    [[batch]] = lay_out([group_with_advantages([trajectory], [1.0])])
    assert batch.input_ids.tolist() == [100, 101, 10, 11, 50]
    assert batch.source_index.tolist() == [1, 2, 4]
    assert batch.target_ids.tolist() == [10, 11, 12]


def test_every_target_is_predicted_by_the_token_before_it_on_its_own_path() -> None:
    groups = [
        make_group([3, 2], sample=make_sample([1, 2, 3], id="a"), seed=1, vocab=4),
        make_group([4, 1, 6], sample=make_sample([1], id="b"), seed=2, vocab=4),
    ]
    [[batch]] = lay_out(groups)
    assert len(set(batch.seen_until.tolist())) > 2  # it forks
    for row, ledger in enumerate(ledgers_of(batch, groups)):
        sources = batch.source_index[batch.sequence_ids == row]
        path = visible(batch, int(sources[-1]))
        assert batch.input_ids[path].tolist() == ledger.token_ids[:-1].tolist()
        assert (batch.position_ids[:, path] == ledger.position_ids[:, :-1]).all()
        assert sources.tolist() == path[-len(sources) :]


def visible(batch: MicroBatch, query: int) -> list[int]:
    """What a token sees, itself last: its path."""
    return [k for k in range(query + 1) if query < batch.seen_until[k]]


def ledgers_of(batch: MicroBatch, groups: Sequence[Group]) -> list[Ledger]:
    """The ledger of each row of a micro-batch, known by its sample and what it generated."""
    known = {
        (t.sample.id, tuple(t.action_ids)): ledger
        for g in groups
        for t in g.trajectories
        for ledger in t.ledgers
    }
    return [
        known[sample_id, tuple(batch.target_ids[batch.sequence_ids == row].tolist())]
        for row, sample_id in enumerate(batch.token_sample_ids)
    ]


GROUPS = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.integers(1, 7), min_size=2, max_size=5), st.booleans()),
    min_size=1,
    max_size=6,
)


def build(spec: list[tuple[int, list[int], bool]]) -> list[Group]:
    return [
        make_group(lengths, sample=make_sample(range(prompt), id=f"g{i}"), failed=failed, seed=i)
        for i, (prompt, lengths, failed) in enumerate(spec)
    ]


@settings(deadline=None)
@given(
    GROUPS,
    st.integers(1, 3),
    st.sampled_from([1, 12, 40, 1000]),
    st.sampled_from(["token", "sequence", "constant"]),
    st.integers(1, 4),
)
def test_every_token_is_trained_once_however_the_groups_are_cut(
    spec: list[tuple[int, list[int], bool]], num_ranks: int, max_tokens: int, aggregation: Any, shared_by: int
) -> None:
    groups, num_ranks = build(spec), num_ranks * shared_by
    batch = lay_out(
        groups,
        num_ranks=num_ranks,
        max_tokens=max_tokens,
        aggregation=aggregation,
        sequence_parallel=shared_by,
    )
    weights = token_weights(counted(groups), aggregation, MAX_COMPLETION)
    expected = sorted(
        (t.sample.id, int(token), float(logprob), float(advantage), round(float(np.float32(weight)), 7))
        for group, group_weights in zip(counted(groups), weights, strict=True)
        for t, advantage, weight in zip(group.trajectories, advantages_of(group), group_weights, strict=True)
        for ledger in t.ledgers
        for token, logprob in zip(
            ledger.token_ids[ledger.loss_mask], ledger.sampler_logprobs[ledger.loss_mask], strict=True
        )
    )
    assert trained(batch) == expected
    assert len(batch) == num_ranks
    assert len({len(rank) for rank in batch}) == 1  # every rank runs the same collectives
    longest_branch = max(
        (len(ledger.token_ids) for g in groups for t in g.trajectories for ledger in t.ledgers), default=0
    )
    for first in range(0, num_ranks, shared_by):
        for slices in zip(*batch[first : first + shared_by], strict=True):
            lengths = tuple(len(part.input_ids) for part in slices)
            assert all(part.slice_lengths == lengths for part in slices) and min(lengths) > 0
            assert all(len(part.seen_until) == sum(lengths) for part in slices)
            assert sum(lengths) <= max(max_tokens, longest_branch, 1) + shared_by
            assert max(lengths) - min(lengths) <= 1 or sum(lengths) < 2 * shared_by
            assert all((part.source_index < len(part.input_ids)).all() for part in slices)


def test_a_tree_over_the_budget_is_split_by_branches_and_repeats_its_prompt() -> None:
    group = make_group([4, 4, 4], sample=make_sample([7, 8]))
    batch = micro_batches(lay_out([group], max_tokens=8))
    assert [m.input_ids.shape for m in batch] == [(8,), (5,)]
    assert all(m.input_ids[:2].tolist() == [7, 8] for m in batch)
    assert [m.seen_until.tolist() for m in batch] == [[8, 8, 5, 5, 5, 8, 8, 8], [5] * 5]


def test_what_saves_little_is_not_kept_together_and_still_shared_where_it_meets() -> None:
    """A system prompt that all have in common does not chain them to one rank."""
    groups = [make_group([3, 3], sample=make_sample([1, *range(10 * i, 10 * i + 30)])) for i in (10, 20)]
    [[one], [two]] = lay_out(groups, num_ranks=2)
    [[both]] = lay_out(groups)
    assert one.input_ids.size == two.input_ids.size == 35
    assert both.input_ids.size == 69


def test_equal_completions_stand_there_once_and_count_as_often_as_they_were_generated() -> None:
    sample = make_sample([7, 8])
    group = group_with_advantages([make_trajectory(sample, [1, 2, 3]) for _ in range(3)], [1.0, 2.0, -3.0])
    [[batch]] = lay_out([group])
    assert batch.input_ids.tolist() == [7, 8, 1, 2]
    assert batch.source_index.tolist() == [1, 2, 3] * 3
    assert batch.advantages.tolist() == [1] * 3 + [2] * 3 + [-3] * 3


def test_tokens_after_the_last_trained_one_are_left_out() -> None:
    session = Session(make_sample([100, 101]), 0)
    session.append_action(make_generation([10, 11]))
    session.append_observation(text_prompt([50, 51], session.next_position), ())
    session.append_action(make_generation([12]))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(1.0, {})
    group = group_with_advantages([trajectory], [1.0])
    group.credits[0].trained[0][4:] = False
    [[batch]] = lay_out([group])
    assert batch.input_ids.tolist() == [100, 101, 10]
    group.credits[0].trained[0][:] = False
    [[idle]] = lay_out([group])
    assert idle.target_ids.size == 0


def test_a_rank_without_work_gets_as_many_micro_batches_of_one_ignored_token() -> None:
    batch = lay_out([make_group([2, 2], sample=make_sample(range(30)))], num_ranks=3)
    assert [len(rank) for rank in batch] == [1, 1, 1]
    for [idle] in batch[1:]:
        assert idle.input_ids.shape == (1,)
        assert idle.seen_until.tolist() == [1]
        assert idle.target_ids.size == idle.weights.size == 0


def test_a_batch_of_failed_groups_alone_still_has_a_micro_batch() -> None:
    group = make_group([2, 2], failed=True)
    assign_credit([group], AlgorithmConfig())  # one score is left, without a baseline
    [[idle]] = lay_out([group])
    assert idle.target_ids.size == 0


# Token weights.

LENGTHS = [[2, 4], [1, 3]]


def weights_of(aggregation: Any, **options: Any) -> list[list[float]]:
    return token_weights([make_group(lengths) for lengths in LENGTHS], aggregation, MAX_COMPLETION, **options)


def test_token_weights_are_one_over_all_tokens() -> None:
    assert weights_of("token") == [[0.1, 0.1], [0.1, 0.1]]


def test_sequence_weights_give_every_completion_the_same_share() -> None:
    assert weights_of("sequence") == [[1 / 8, 1 / 16], [1 / 4, 1 / 12]]


def test_constant_weights_do_not_depend_on_the_length() -> None:
    assert weights_of("constant") == [[1 / 64, 1 / 64], [1 / 64, 1 / 64]]


def test_constant_weights_of_an_episode_are_one_over_all_that_it_may_say() -> None:
    """An episode of at most 4 turns of at most 16 tokens has 64; a question beside it has 16."""
    played = make_group([2, 6], sample=make_sample(env=EnvTask("any")))
    asked = make_group([2, 6])
    weights = token_weights([played, asked], "constant", 16, max_turns=4)
    assert weights == [[1 / (4 * 64)] * 2, [1 / (4 * 16)] * 2]
    longest = make_group([64, 64], sample=make_sample(env=EnvTask("any")))
    [[weight, _]] = token_weights([longest], "constant", 16, max_turns=4)
    assert 2 * 64 * weight == 1.0  # all that it may say: a mean over its tokens


@given(st.lists(st.lists(st.integers(1, 20), min_size=2, max_size=6), min_size=1, max_size=5))
def test_token_and_sequence_weights_sum_to_one_over_the_batch(lengths: list[list[int]]) -> None:
    groups = [make_group(row) for row in lengths]
    for aggregation in ("token", "sequence"):
        rows = token_weights(groups, aggregation, 20)  # type: ignore[arg-type]
        total = sum(w * n for ws, ns in zip(rows, lengths, strict=True) for w, n in zip(ws, ns, strict=True))
        assert np.isclose(total, 1.0)


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_a_failed_group_is_left_out_and_does_not_count(aggregation: Any) -> None:
    """Law 7: the batch is what it would have been without it."""
    fine = [
        make_group([2, 3], sample=make_sample(id="a"), seed=1),
        make_group([4, 1], sample=make_sample(id="b")),
    ]
    broken = make_group([5, 5], sample=make_sample(id="broken"), failed=True)
    assign_credit([broken], AlgorithmConfig())
    with_failure = lay_out([fine[0], broken, fine[1]], aggregation=aggregation)
    assert trained(with_failure) == trained(lay_out(fine, aggregation=aggregation))


def test_a_group_of_zero_advantages_is_left_out_and_still_counts() -> None:
    groups = [
        make_group([2, 3], sample=make_sample(id="a")),
        make_group([4, 1], sample=make_sample(id="flat"), advantages=[0.0, 0.0]),
    ]
    kept = trained(lay_out(groups, keep_zero_advantage=True))
    left_out = trained(lay_out(groups, keep_zero_advantage=False))
    assert left_out == [t for t in kept if t[0] == "a"]
    assert {t[0] for t in kept} == {"a", "flat"}


# Images.


def media_marks(media: Sequence[Media]) -> dict[str, np.ndarray[Any, Any]]:
    """One marker per image, to see which were asked for, in which order."""
    return {"marks": np.array([m.frames[0, 0, 0, 0] for m in media])}


def medium(mark: int) -> Media:
    flat = np.full((1, 28, 28, 3), mark, np.uint8)
    return Media("image", str(mark), flat, (28, 28), (1, 2, 2), 1)


def test_a_group_s_image_is_laid_out_once_and_in_the_order_of_the_groups() -> None:
    groups = [
        make_group([2] * 4, sample=make_sample([1, 2], id="a", media=(medium(1), medium(2)))),
        make_group([2] * 4, sample=make_sample([1, 2, 3], id="b", media=(medium(3),))),
    ]
    [[batch]] = lay_out(groups, pixels=media_marks)
    assert batch.token_sample_ids == ("a",) * 4 + ("b",) * 4
    assert batch.media_inputs["marks"].tolist() == [1, 2, 3]
    assert batch.media_order.tolist() == [0, 1, 2]


@pytest.mark.parametrize("images_once", [False, True])
def test_the_tower_runs_where_any_rank_has_an_image_to_compute(images_once: bool) -> None:
    """Rank 0 has text in its first micro-batch and an image in the next, rank 1 has text in both."""
    images = {"c": (medium(1),)}
    groups = [
        make_group([size], sample=make_sample([1], id=name, media=images.get(name, ())), seed=size)
        for name, size in (("a", 40), ("b", 41), ("c", 30), ("d", 31))
    ]
    options: dict[str, Any] = {"num_ranks": 2, "max_tokens": 60, "images_once": images_once}
    batch = lay_out(groups, pixels=media_marks, **options)
    assert sum(len(m.media_order) for of_rank in batch for m in of_rank) == 1
    for of_rank in batch:
        assert [m.media_inputs is not None for m in of_rank] == [False, True]
    always = lay_out(groups, pixels=media_marks, **options, tower_always=True)
    assert all(m.media_inputs is not None for of_rank in always for m in of_rank)


def test_micro_batches_stay_within_the_pixels_that_were_given() -> None:
    # 1 to 4 images of 784 pixels; those shown again are not counted again
    marks = [[*range(10 * i, 10 * i + i + 1), 10 * i] for i in range(4)]
    images = [tuple(map(medium, of_one)) for of_one in marks]
    groups = [make_group([2, 2], sample=make_sample([1], id=str(i), media=m)) for i, m in enumerate(images)]
    for max_pixels, expected in ((None, [10]), (5 * 784, [5, 5]), (784, [4, 3, 2, 1])):
        [micro_batches] = lay_out(groups, pixels=media_marks, max_pixels=max_pixels)
        assert [len(m.media_inputs["marks"]) for m in micro_batches] == expected


def test_a_branch_brings_its_own_images_after_the_prompt_s() -> None:
    sample = make_sample([1, 2], media=(medium(1),))
    trajectories = []
    for mark in (5, 6):
        session = Session(sample, 0)
        session.append_action(make_generation([9]))
        session.append_observation(text_prompt([4], session.next_position), (medium(mark),))
        session.append_action(make_generation([9]))
        trajectories.append(session.trajectory("", "ok", 0.0))
        trajectories[-1].score = Score(0.0, {})
    [[batch]] = lay_out([group_with_advantages(trajectories, [1.0, 1.0])], pixels=media_marks)
    assert batch.media_inputs["marks"].tolist() == [1, 5, 6]


def test_an_image_that_many_are_shown_goes_through_the_tower_once() -> None:
    """Two groups have members that are shown the same second image, and one of them the first again."""
    groups = []
    for name, first, second in (("a", 1, 5), ("b", 2, 5)):
        sample = make_sample([1, 2], id=name, media=(medium(first),))
        members = []
        for index in range(2):
            session = Session(sample, index)
            session.append_action(make_generation([9]))
            seen = (medium(second), medium(1)) if index else (medium(second),)
            session.append_observation(text_prompt([4], session.next_position), seen)
            session.append_action(make_generation([9]))
            members.append(session.trajectory("", "ok", 0.0))
            members[-1].score = Score(0.0, {})
        groups.append(group_with_advantages(members, [1.0, 1.0]))
    [[batch]] = lay_out(groups, pixels=media_marks)
    assert batch.media_inputs["marks"].tolist() == [1, 5, 2]
    assert batch.media_order.tolist() == [0, 1, 1, 0, 2, 1, 1, 0]
    assert batch.media_parts.tolist() == [1, 1, 1]


def test_packing_the_same_groups_twice_gives_the_same_arrays() -> None:
    groups = build([(3, [4, 2, 5], False), (2, [1, 1], False), (5, [3, 3], False)])
    one, two = (micro_batches(lay_out(groups, num_ranks=2, max_tokens=20)) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        for field in fields(MicroBatch):
            assert np.array_equal(getattr(a, field.name), getattr(b, field.name))


def test_images_and_attention_count_as_work() -> None:
    def alone(length: int, name: str, *media: Media) -> Group:
        return make_group([length], sample=make_sample([length], id=name, media=media))

    groups = [alone(4000, "long"), alone(2000, "b"), alone(1999, "c"), alone(300, "d")]
    batch = lay_out(groups, num_ranks=2, max_tokens=10_000)
    owners = [{i for m in rank for i in m.token_sample_ids} for rank in batch]
    assert owners == [{"long"}, {"b", "c", "d"}]  # as many tokens without d, but fewer pairs
    big = Media("image", "big", np.zeros((1, 1400, 1400, 3), np.uint8), (1400, 1400), (1, 2, 2), 1)
    groups = [alone(301, "b"), alone(300, "c"), alone(9, "sees", big)]
    batch = lay_out(groups, num_ranks=2, pixels=media_marks)
    assert [{i for m in rank for i in m.token_sample_ids} for rank in batch] == [{"sees"}, {"b", "c"}]


def test_a_tree_is_cut_for_a_rank_that_would_idle_if_it_pays() -> None:
    """Long completions of one prompt go to both ranks; a long prompt is not computed on both."""
    long, short = (make_group([n] * 4, sample=make_sample(range(200))) for n in (400, 20))
    for group, expected in ((long, [800, 800]), (short, [80, 0])):
        batch = lay_out([group], num_ranks=2, max_tokens=4000)
        assert [sum(m.target_ids.size for m in rank) for rank in batch] == expected


def test_work_is_dealt_evenly_over_ranks() -> None:
    groups = [
        make_group([n, n], sample=make_sample([n, 1, 2], id=str(n)), seed=n) for n in (9, 8, 7, 6, 5, 4, 3, 2)
    ]
    batch = lay_out(groups, num_ranks=2, max_tokens=60)
    loads = [sum(len(m.target_ids) for m in rank) for rank in batch]
    assert max(loads) - min(loads) <= 4


def test_an_image_is_in_one_slice_however_large_it_is() -> None:
    wide = Media("image", "wide", np.zeros((1, 28, 28, 3), np.uint8), (28, 28), (1, 2, 2), num_tokens=12)
    prompt = replace(text_prompt([1, *[9] * 12, 2]), media_starts=(1,))
    group = make_group([2, 2], sample=make_sample(id="s", media=(wide,), prompt=prompt))
    [[first], [second]] = lay_out([group], num_ranks=2, sequence_parallel=2, pixels=media_marks)
    assert first.slice_lengths == (13, 3)  # the image ends at 13; the middle, 8, is within it
    assert first.media_order.tolist() == [0] and second.media_order.tolist() == []
    assert first.target_ids.size == 0 and second.target_ids.size == 4


def test_a_steps_advantages_are_normalised_for_each_policy_by_itself() -> None:
    groups = [
        make_group([2, 2], sample=make_sample(id=f"s/{agent}", agent=agent), advantages=[0.0, 2.0 * scale])
        for agent, scale in (("giver", 1.0), ("guesser", 10.0))
    ]
    options = PackOptions(
        num_ranks=1,
        max_tokens=64,
        max_completion_tokens=2,
        normalize="batch",
        policies={"giver": 0, "guesser": 1},
    )
    for group in part_of(groups, slice(None), options):
        assert advantages_of(group) == pytest.approx([-1.0, 1.0])
    together = part_of(groups, slice(None), replace(options, policies={}))
    assert advantages_of(together[0]) != pytest.approx([-1.0, 1.0])
