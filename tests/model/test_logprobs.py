"""The prefix tree against transformers' own forward pass on plain rows: same logprobs, same gradients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import advantages_of, make_generation, make_group, observe, open_tiny, random_image, row
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.algorithm.credit import group_with_advantages
from vlrl.batch import Batch
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.types import Group, Ledger, Score, Trajectory

TOLERANCE = 1e-5
CPU = torch.device("cpu")
MAX_TOKENS = 4096


@pytest.fixture(scope="module")
def processor(tiny_model: Path) -> Any:
    return open_tiny(tiny_model)


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Any:
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(tiny_model, attn_implementation="sdpa")


def groups_of(processor: Any, spec: Sequence[tuple[list[tuple[int, int]], list[int]]]) -> list[Group]:
    """A group for each (sizes of its images, lengths of its completions)."""
    return [
        make_group(
            lengths,
            sample=processor.sample(
                row("Add 3 and 4." * (i + 1), [random_image(*size, seed=i) for size in sizes], row_id=f"g{i}")
            ),
            advantages=np.random.default_rng(i).normal(size=len(lengths)),  # type: ignore[arg-type]
            seed=i,
        )
        for i, (sizes, lengths) in enumerate(spec)
    ]


def lay_out(groups: Sequence[Group], processor: Any, **options: Any) -> Batch:
    defaults: dict[str, Any] = {
        "num_ranks": 1,
        "max_tokens": MAX_TOKENS,
        "aggregation": "token",
        "max_completion_tokens": 32,
        "keep_zero_advantage": True,
    }
    return pack(groups, processor.pixels, PackOptions(**{**defaults, **options}))


def wrap(model: Any, processor: Any, temperature: float = 1.0) -> TreeLogprobs:
    return TreeLogprobs(model, temperature=temperature, banned_token_ids=processor.banned_token_ids)


def tree_logprobs(wrapped: TreeLogprobs, batch: Batch) -> list[torch.Tensor]:
    return [wrapped(DeviceBatch.of(m, CPU))[0] for rank in batch for m in rank]


def plain_logprobs(
    model: Any, processor: Any, trajectory: Trajectory, temperature: float = 1.0
) -> torch.Tensor:
    """The definition: one unpadded row a ledger through transformers, positions and mask its own."""
    rows = [plain_row(model, processor, ledger, temperature) for ledger in trajectory.ledgers]
    return torch.cat(rows)


def plain_row(model: Any, processor: Any, ledger: Ledger, temperature: float) -> torch.Tensor:
    ids = torch.tensor(ledger.token_ids)[None]
    inputs: dict[str, Any] = {"mm_token_type_ids": (ids == model.config.image_token_id).int()}
    if ledger.media:
        inputs |= {k: torch.tensor(v) for k, v in processor.pixels(ledger.media).items()}
    logits = model(input_ids=ids, **inputs).logits[0, :-1].double()
    logits[:, list(processor.banned_token_ids)] = -torch.inf
    logprobs = torch.log_softmax(logits / temperature, dim=-1).gather(1, ids[0, 1:, None])[:, 0]
    return logprobs[torch.tensor(ledger.loss_mask[1:])]


def all_plain(model: Any, processor: Any, groups: Sequence[Group]) -> dict[tuple[str, tuple[int, ...]], Any]:
    return {
        (t.sample.id, tuple(t.action_ids)): plain_logprobs(model, processor, t)
        for g in groups
        for t in g.trajectories
    }


def by_trajectory(batch: Batch, logprobs: Sequence[Any]) -> dict[tuple[str, tuple[int, ...]], Any]:
    """A batch's logprobs cut back into trajectories of one ledger each."""
    found = {}
    for m, values in zip([m for rank in batch for m in rank], logprobs, strict=True):
        for number, owner in enumerate(m.token_sample_ids):
            mine = m.sequence_ids == number
            found[owner, tuple(m.target_ids[mine].tolist())] = values[torch.tensor(mine)]
    return found


def largest_difference(batch: Batch, logprobs: Sequence[torch.Tensor], expected: dict[Any, Any]) -> float:
    found = by_trajectory(batch, logprobs)
    assert found.keys() == expected.keys()
    return max(float((found[k] - expected[k]).abs().max()) for k in expected)


MIXED = [
    ([(56, 56), (84, 28)], [5, 1, 9, 3]),
    ([], [4, 4, 2]),
    ([(120, 170)], [7, 2]),  # larger than the vision tower's window of 112 pixels
]


@pytest.mark.parametrize("max_tokens", [1, 90, MAX_TOKENS])
def test_tree_logprobs_equal_plain_rows(model: Any, processor: Any, max_tokens: int) -> None:
    """Every branch is a tree of its own at 1; all share one micro-batch at 4096."""
    groups = groups_of(processor, MIXED)
    batch = lay_out(groups, processor, max_tokens=max_tokens)
    assert (len(batch[0]) == 9) == (max_tokens == 1)
    assert (len(batch[0]) == 1) == (max_tokens == MAX_TOKENS)
    with torch.no_grad():
        expected = all_plain(model, processor, groups)
        found = tree_logprobs(wrap(model, processor), batch)
    assert largest_difference(batch, found, expected) < TOLERANCE


def test_images_are_seen_by_a_transformers_that_knows_no_given_features(
    model: Any, processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions before 5.18 have no keyword for features that are computed already, and drop it silently."""
    batch = lay_out(groups_of(processor, MIXED[:1]), processor)
    with torch.no_grad():
        [expected] = tree_logprobs(wrap(model, processor), batch)
        forward = model.model.forward

        def older(**options: Any) -> Any:
            options.pop("mm_encoder_outputs", None)
            return forward(**options)

        monkeypatch.setattr(model.model, "forward", older)
        [found] = tree_logprobs(wrap(model, processor), batch)
    assert torch.equal(found, expected)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(28, 130), st.integers(28, 130)), max_size=2),
            st.lists(st.integers(1, 8), min_size=2, max_size=4),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1, 130, MAX_TOKENS]),
)
def test_tree_logprobs_equal_plain_rows_for_any_groups(
    model: Any, processor: Any, spec: list[Any], max_tokens: int
) -> None:
    groups = groups_of(processor, spec)
    batch = lay_out(groups, processor, max_tokens=max_tokens)
    with torch.no_grad():
        expected = all_plain(model, processor, groups)
        found = tree_logprobs(wrap(model, processor), batch)
    assert largest_difference(batch, found, expected) < TOLERANCE


def gradients(model: Any, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return grads


def assert_same_gradients(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    scale = max(float(g.abs().max()) for g in expected.values())
    for name in expected:
        assert float((found[name] - expected[name]).abs().max()) <= TOLERANCE * scale, name


@pytest.mark.parametrize("max_tokens", [1, MAX_TOKENS])
def test_tree_gradients_equal_plain_rows(model: Any, processor: Any, max_tokens: int) -> None:
    """Gradients of every parameter agree, vision tower and tied embedding included."""
    groups = groups_of(processor, MIXED)
    batch = lay_out(groups, processor, max_tokens=max_tokens)
    outputs = tree_logprobs(wrap(model, processor), batch)
    loss = sum(
        (torch.tensor(m.weights * m.advantages) * out).sum() for m, out in zip(batch[0], outputs, strict=True)
    )
    num_tokens = sum(t.num_action_tokens for g in groups for t in g.trajectories)
    plain = sum(
        plain_logprobs(model, processor, t).sum() * float(a) / num_tokens
        for g in groups
        for t, a in zip(g.trajectories, advantages_of(g), strict=True)
    )
    found = gradients(model, loss)  # type: ignore[arg-type]
    expected = gradients(model, plain)  # type: ignore[arg-type]
    assert any("visual" in name for name in expected)
    assert_same_gradients(found, expected)


def test_several_turns_with_images_in_between_equal_plain_rows(model: Any, processor: Any) -> None:
    sample = processor.sample(row("Click it.", [random_image(56, 84)], row_id="talk"))
    trajectories = []
    for index in range(3):
        session = Session(sample, index)
        for turn in range(2):
            reply = processor.encode_target(f"<think>{index}+{turn}</think>")
            processor.act(session, make_generation(reply))
            if turn == 0:
                observe(processor, session, f"step {index}", [random_image(56, 28 * (index + 1), seed=index)])
        trajectory = session.trajectory("", "ok", 0.0)
        trajectory.score = Score(0.0, {})
        trajectories.append(trajectory)
    batch = lay_out([group_with_advantages(trajectories, [1.0] * 3)], processor)
    with torch.no_grad():
        [found] = tree_logprobs(wrap(model, processor), batch)
        expected = torch.cat([plain_logprobs(model, processor, t) for t in trajectories])
    assert batch[0][0].input_ids.size < sum(len(t.ledgers[0].token_ids) for t in trajectories)  # one tree
    assert float((found - expected).abs().max()) < TOLERANCE


def test_a_branch_sees_nothing_of_its_siblings(model: Any, processor: Any) -> None:
    groups = groups_of(processor, MIXED[:1])
    [[batch]] = lay_out(groups, processor)
    wrapped = wrap(model, processor)
    with torch.no_grad():
        before, _ = wrapped(DeviceBatch.of(batch, CPU))
        mine = batch.sequence_ids == 2
        batch.input_ids[batch.source_index[mine][1:]] = 17  # another third completion
        after, _ = wrapped(DeviceBatch.of(batch, CPU))
    first = batch.source_index == batch.source_index[mine][0]
    others = torch.tensor(~mine | first)
    assert torch.equal(before[others], after[others])
    assert not torch.equal(before[~others], after[~others])


def test_temperature_divides_the_logits(model: Any, processor: Any) -> None:
    groups = groups_of(processor, MIXED[:1])
    batch = lay_out(groups, processor)
    with torch.no_grad():
        [found] = tree_logprobs(wrap(model, processor, temperature=0.6), batch)
        expected = torch.cat([plain_logprobs(model, processor, t, 0.6) for t in groups[0].trajectories])
    assert float((found - expected).abs().max()) < TOLERANCE


def test_a_banned_token_is_impossible(model: Any, processor: Any) -> None:
    group = groups_of(processor, [([(56, 56)], [3, 3])])[0]
    [[batch]] = lay_out([group], processor)
    with torch.no_grad():
        for token in processor.banned_token_ids:
            batch.target_ids[:] = token
            logprobs, entropy = wrap(model, processor)(DeviceBatch.of(batch, CPU))
            assert logprobs.eq(-torch.inf).all()
            assert entropy.isfinite().all()


def test_probabilities_sum_to_one_over_what_may_be_generated(model: Any, processor: Any) -> None:
    group = groups_of(processor, [([], [1, 1])])[0]
    [[batch]] = lay_out([group], processor)
    size = int(model.config.text_config.vocab_size)
    batch.source_index = np.full(size, batch.source_index[0])
    batch.target_ids = np.arange(size)
    with torch.no_grad():
        logprobs, entropy = wrap(model, processor, 0.5)(DeviceBatch.of(batch, CPU))
    probs = logprobs.double().exp()
    assert torch.isclose(probs.sum(), torch.tensor(1.0, dtype=torch.float64), atol=1e-5)
    expected = -(probs * logprobs.double().nan_to_num(neginf=0.0)).sum()
    assert torch.allclose(entropy.double(), expected, atol=1e-5)


def test_a_micro_batch_without_tokens_still_reaches_every_parameter(model: Any, processor: Any) -> None:
    """A rank without work must take part in every gather and reduction under ZeRO-3."""
    [_, [idle]] = lay_out(groups_of(processor, MIXED[:1]), processor, num_ranks=2)
    assert idle.target_ids.size == 0
    logprobs, _ = wrap(model, processor)(DeviceBatch.of(idle, CPU))
    found = gradients(model, logprobs.sum())
    assert all(float(g.abs().max()) == 0.0 for g in found.values())
    text_only = {n for n, _ in model.named_parameters()} - found.keys()
    assert not [n for n in text_only if "visual" in n]


def test_a_group_of_zero_advantages_may_be_left_out_exactly(model: Any, processor: Any) -> None:
    """The loss and the gradients are the same with and without it, as there is no KL term."""
    from vlrl.algorithm.loss import clipped_surrogate, weighted_sum

    groups = groups_of(processor, MIXED)
    groups[1] = group_with_advantages(groups[1].trajectories, [0.0] * len(groups[1].trajectories))
    results = []
    for keep in (True, False):
        batch = lay_out(groups, processor, keep_zero_advantage=keep)
        total: Any = 0.0
        for m in batch[0]:
            b = DeviceBatch.of(m, CPU)
            logprobs, _ = wrap(model, processor)(b)
            per_token, _ = clipped_surrogate(
                logprobs, b.sampler_logprobs, b.advantages, clip_low=0.2, clip_high=0.28
            )
            total = total + weighted_sum(per_token, b.weights)
        results.append((float(total.detach()), gradients(model, total)))
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-7)
    assert_same_gradients(results[1][1], results[0][1])
