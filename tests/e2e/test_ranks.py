"""ZeRO-3 on two ranks is ZeRO-3 on one: same loss, same gradients, same weights, same after a checkpoint.

On a Qwen3-VL, whose tower speaks to several layers (deepstack), with images on one rank and videos or
nothing on the other: ranks whose calls of the tower differ wait for each other forever.
All trainers hold a frozen reference for the KL term and pay for entropy; those of two ranks recompute
activations, which may not change what a step does. The correction's weights are of whole sequences, of which
ranks that share them have slices.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from plain_model import model_of
from safetensors.torch import load_file
from tiny_families import build_qwen3_vl
from zero_states import whole_states

from vlrl import cluster
from vlrl.algorithm.loss import kl_k3
from vlrl.batch import Batch
from vlrl.errors import ConfigError, EngineError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.driver import Trainer
from vlrl.types import Group
from vlrl.weights.manifest import Segment, bucket_file, buckets_of

TOLERANCE = 1e-5
ONE, TWO, SHARED = 0, 1, 2
RANKS = ((1, 1), (2, 1), (2, 2))
"""Of each trainer the ranks, and how many of them share a sequence."""
KL_COEF, ENTROPY_COEF, CAP = 0.1, 0.05, 1.2
ALGORITHM = {
    "kl_coef": KL_COEF,
    "entropy_coef": ENTROPY_COEF,
    "correction": {"kind": "truncated", "level": "sequence", "cap": CAP},
}
DUAL_CLIP = 3.0
DRIFT = 0.99
"""Of the proximal policy's logprobs to the sampler's, near -2.8 nats: 8 tokens together are above the cap."""

# Adam's step is the sign of a gradient wherever that is far above eps, and rounding has signs too: with a
# large eps the step is proportional to the gradient, and comparing weights compares gradients.
OPTIM = {"eps": 1e-2, "max_grad_norm": 0.5}


@pytest.fixture(scope="module")
def tiny_qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_qwen3_vl(tmp_path_factory.mktemp("model") / "qwen3")


@pytest.fixture(scope="module")
def processor(tiny_qwen3: Path) -> Any:
    return open_tiny(tiny_qwen3)


@pytest.fixture(scope="module")
def trainers(tiny_qwen3: Path, processor: Any, local_ray: None) -> Iterator[list[Trainer]]:
    """Trainers of one rank, of two, and of two that share every sequence, side by side."""
    options = {"cpus_per_rank": 0.5, "timeout_s": 60}
    started = [
        Trainer(
            make_config(
                tiny_qwen3,
                algorithm=ALGORITHM,
                optim=OPTIM,
                weights={"checksums": True},
                trainer={
                    "num_ranks": ranks,
                    "sequence_parallel": shared,
                    "gradient_checkpointing": ranks == 2,
                    **options,
                },
            ),
            processor.banned_token_ids,
        )
        for ranks, shared in RANKS
    ]
    try:
        for trainer in started:
            trainer.wait_ready()
        yield started
        segments = [Path(t.manifest.path) for t in started]
        assert all(path.exists() for path in segments)
    finally:
        for trainer in started:
            trainer.close()
    assert not any(path.exists() for path in segments)


def group(
    processor: Any, name: str, sizes: Sequence[tuple[int, int]], lengths: Sequence[int], num_frames: int = 0
) -> Group:
    """A group on images of these sizes, and on a video if it has frames."""
    seed = sum(map(ord, name))
    talk = row(
        f"Look at {name}.", [random_image(*s, seed=seed + i) for i, s in enumerate(sizes)], row_id=name
    )
    if num_frames:
        frames = [random_image(64, 96, seed=seed + i) for i in range(num_frames)]
        video = {"type": "video", "video": frames, "fps": 3.0}
        talk["messages"][0]["content"].insert(0, video)
    sample = processor.sample(talk)
    advantages = np.random.default_rng(seed).normal(size=len(lengths)).tolist()
    made = make_group(lengths, sample=sample, advantages=advantages, seed=seed)
    for trajectory in made.trajectories:  # near a random model's logprobs, so that few ratios are clipped
        trajectory.ledgers[0].sampler_logprobs[trajectory.ledgers[0].loss_mask] -= 2.8
    return made


def batches(groups: Sequence[Group], processor: Any, max_tokens: int) -> list[Batch]:
    """Batches: on one rank each micro-batch for itself, and the tower in all of them, on blank images too; on
    two, it runs images with gradient once, and only where there are any.

    As of a step's second update: the proximal policy is another than the one that learns.
    """
    made = [
        pack(
            groups,
            processor.pixels,
            PackOptions(
                num_ranks=ranks,
                max_tokens=max_tokens,
                aggregation="token",
                max_completion_tokens=16,
                keep_zero_advantage=True,
                sequence_parallel=shared,
                images_once=ranks == 2,
                tower_always=ranks == 1,
            ),
        )
        for ranks, shared in RANKS
    ]
    for micro_batch in (m for batch in made for rank in batch for m in rank):
        micro_batch.proximal_logprobs = np.float32(DRIFT) * micro_batch.sampler_logprobs
    return made


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    trainer.write_weights()
    return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}


def assert_same_weights(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    for name in one:
        assert float((one[name] - two[name]).abs().max()) <= TOLERANCE, name


MIXES = {
    "images everywhere": [("a", [(56, 56)], [5, 3]), ("b", [(84, 56), (56, 28)], [4, 6])],
    "one rank without images": [("c", [(112, 112)], [6, 6]), ("d", [], [3, 3])],
    "no images at all": [("e", [], [3, 4]), ("f", [], [5, 2])],
    "a video here, an image there": [("h", [], [4, 4], 4), ("i", [(112, 112)], [3, 5])],
    "a video here, nothing there": [("j", [], [6, 2], 6), ("k", [], [3, 3])],
    "an image and a video in one": [("l", [(64, 64)], [5, 5], 4), ("m", [], [2, 2], 4)],
    "an image in several micro-batches": [("n", [(96, 96)], [9] * 12), ("o", [], [3, 3])],
    "images after text alone": [("p", [], [14] * 6), ("q", [], [14] * 6), ("r", [(56, 56)], [3, 3])],
    "one rank without work": [("g", [(56, 84)], [4, 4, 2])],
}


@pytest.mark.parametrize("mix", ["images everywhere", "an image and a video in one", "no images at all"])
def test_ranks_make_the_pixels_that_the_processor_makes(
    trainers: list[Trainer], processor: Any, mix: str
) -> None:
    """What travels then is uint8: the vision tower's float32 patches of an image are eight times as much."""
    groups = [group(processor, *spec) for spec in MIXES[mix]]
    options = PackOptions(num_ranks=1, max_tokens=64, aggregation="token", max_completion_tokens=16)
    arrays, media = (pack(groups, pixels, options) for pixels in (processor.pixels, media_themselves))
    [computed], [expected] = trainers[ONE].logprobs(media), trainers[ONE].logprobs(arrays)
    assert all(np.array_equal(a, b) for a, b in zip(computed, expected, strict=True))
    shown = [m for g in groups for m in g.trajectories[0].sample.media]
    excess = len(pickle.dumps(arrays)) - len(pickle.dumps(media))
    assert excess >= 3 * sum(medium.frames.nbytes for medium in shown)


@pytest.mark.parametrize("max_tokens", [64, 2048])
@pytest.mark.parametrize("mix", MIXES)
def test_two_ranks_take_the_same_step_as_one(
    trainers: list[Trainer], processor: Any, mix: str, max_tokens: int
) -> None:
    """Steps follow each other, so optimizer states are compared as well."""
    groups = [group(processor, *spec) for spec in MIXES[mix]]
    packed = batches(groups, processor, max_tokens)
    images = [any(len(m.media_order) for m in rank) for rank in packed[TWO]]
    work = [any(len(m.target_ids) for m in rank) for rank in packed[TWO]]
    if mix == "one rank without images" or (mix == "a video here, nothing there" and max_tokens > 64):
        assert sorted(images) == [False, True]
    runs = [m.media_inputs is not None for m in packed[TWO][0]]
    if mix == "no images at all":
        assert not any(runs)
    if mix == "images after text alone" and max_tokens == 64:
        assert any(runs) and not runs[0]
    if mix == "one rank without work" and max_tokens > 64:
        assert sorted(work) == [False, True]
    before = weights(trainers[ONE])
    results = [t.step(b, "grpo", 1e-2) for t, b in zip(trainers, packed, strict=True)]
    one, one_differences = results[ONE]
    after = [weights(t) for t in trainers]
    for (two, two_differences), two_after in zip(results[TWO:], after[TWO:], strict=True):
        assert one.keys() == two.keys()
        for name in one:
            assert one[name] == pytest.approx(two[name], rel=1e-4, abs=TOLERANCE), name
        assert one["policy/loss"] == pytest.approx(two["policy/loss"], abs=TOLERANCE)
        assert one_differences.num_tokens == two_differences.num_tokens
        assert one_differences.largest == pytest.approx(two_differences.largest, abs=1e-4)
        assert one_differences.sample_id == two_differences.sample_id
        assert_same_weights(after[ONE], two_after)
    moved = {n for n in before if not torch.equal(before[n], after[ONE][n])}
    assert any("language_model" in n for n in moved)
    assert any("visual" in n for n in moved) or mix == "no images at all"


def test_logprobs_are_the_same_and_leave_the_weights_alone(trainers: list[Trainer], processor: Any) -> None:
    groups = [group(processor, *spec) for spec in MIXES["one rank without images"]]
    before = weights(trainers[TWO])
    found = [
        np.sort(np.concatenate([values for rank in t.logprobs(b) for values in rank]))
        for t, b in zip(trainers, batches(groups, processor, 2048), strict=True)
    ]
    assert all(np.abs(found[ONE] - other).max() <= TOLERANCE for other in found[TWO:])
    assert_same_weights(before, weights(trainers[TWO]))


def test_the_kl_term_is_measured_against_the_starting_model(
    trainers: list[Trainer], processor: Any, tiny_qwen3: Path
) -> None:
    """However far the policy has gone by now."""
    groups = [group(processor, *spec) for spec in MIXES["one rank without images"]]
    start = TreeLogprobs(model_of(tiny_qwen3), temperature=1.0, banned_token_ids=processor.banned_token_ids)
    packed = batches(groups, processor, 2048)
    now = [torch.tensor(v) for rank in trainers[ONE].logprobs(packed[ONE]) for v in rank]
    with torch.no_grad():
        then = [start(DeviceBatch.of(m, torch.device("cpu")))[0] for rank in packed[ONE] for m in rank]
    expected = float(kl_k3(torch.cat(now), torch.cat(then)).mean())
    assert expected > 1e-4
    for trainer, batch in zip(trainers, packed, strict=True):
        metrics, _ = trainer.step(batch, "grpo", 1e-3)
        assert metrics["policy/kl_reference"] == pytest.approx(expected, rel=1e-3)


def test_a_step_is_that_of_the_formulas(trainers: list[Trainer], processor: Any, tiny_qwen3: Path) -> None:
    """Clipping, sequence weights, KL and entropy in one objective, ledger by ledger and token by token."""
    groups = [group(processor, *spec) for spec in MIXES["an image in several micro-batches"]]
    packed = batches(groups, processor, 2048)
    banned = processor.banned_token_ids
    trainers[ONE].write_weights()
    policy, start = (
        TreeLogprobs(model_of(tiny_qwen3, manifest), temperature=1.0, banned_token_ids=banned)
        for manifest in (trainers[ONE].manifest, None)
    )
    total, entropies, limited = torch.zeros(()), [], []
    for micro_batch in packed[ONE][0]:
        generated = DeviceBatch.of(micro_batch, torch.device("cpu"))
        logprobs, entropy = policy(generated)
        with torch.no_grad():
            reference = start(generated)[0]
        for number in range(len(micro_batch.token_sample_ids)):
            mine = generated.sequence_ids == number
            sampler, advantages = generated.sampler_logprobs[mine], generated.advantages[mine]
            product = float(((DRIFT - 1) * sampler).sum().exp())
            ratio = (logprobs[mine] - DRIFT * sampler).exp()
            gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.28) * advantages)
            gain = torch.where(advantages < 0, gain.maximum(DUAL_CLIP * advantages), gain)
            gap = reference[mine] - logprobs[mine]
            cost = -min(product, CAP) * gain + KL_COEF * (gap.exp() - gap - 1) - ENTROPY_COEF * entropy[mine]
            total = total + cost.sum()
            limited += [product > CAP] * int(mine.sum())
        entropies += entropy.tolist()
    loss = total / len(entropies)
    loss.backward()
    gradients = [p.grad for p in policy.parameters() if p.grad is not None]
    norm = float(torch.stack([g.norm() for g in gradients]).norm())
    assert 0 < sum(limited) < len(limited)
    for trainer, batch in zip(trainers, packed, strict=True):
        metrics, _ = trainer.step(batch, "grpo", 1e-3)
        assert metrics["policy/loss"] == pytest.approx(float(loss.detach()), abs=TOLERANCE)
        assert metrics["optim/grad_norm"] == pytest.approx(norm, rel=1e-4)
        assert metrics["policy/entropy"] == pytest.approx(np.mean(entropies), rel=1e-5)
        assert metrics["off_policy/limited_fraction"] == pytest.approx(np.mean(limited))


def test_a_gradient_that_is_not_finite_is_skipped_and_reported(
    trainers: list[Trainer], processor: Any
) -> None:
    """The next step is as if it had not been; a run that goes on so for good must not look well."""
    groups = [group(processor, *spec) for spec in MIXES["no images at all"]]
    good, bad = (batches(groups, processor, 2048) for _ in range(2))
    for batch in bad:
        next(m for rank in batch for m in rank if len(m.advantages)).advantages[0] = np.nan
    before = [weights(trainer) for trainer in trainers]
    for trainer, batch in zip(trainers, bad, strict=True):
        metrics, _ = trainer.step(batch, "grpo", 1e-2)
        assert metrics["optim/skipped_fraction"] == 1.0
    for trainer, kept in zip(trainers, before, strict=True):
        now = weights(trainer)
        assert all(torch.equal(now[name], kept[name]) for name in kept)
    for trainer, batch in zip(trainers, good, strict=True):
        assert trainer.step(batch, "grpo", 1e-2)[0]["optim/skipped_fraction"] == 0.0
    after = [weights(trainer) for trainer in trainers]
    assert not all(torch.equal(after[ONE][name], before[ONE][name]) for name in before[ONE])
    for two_after in after[TWO:]:
        assert_same_weights(after[ONE], two_after)


def test_a_step_without_trained_tokens_moves_nothing_and_leaves_no_trace(
    trainers: list[Trainer], processor: Any, tmp_path: Path
) -> None:
    """Moments and weight decay stay where they were: the next step is the one without it, bit by bit."""
    real = [group(processor, *spec) for spec in MIXES["images everywhere"]]
    equal = replace(real[0], credits=[replace(c, counts=False) for c in real[0].credits])
    for which, trainer in enumerate(trainers):
        batch, idle = (batches(groups, processor, 2048)[which] for groups in (real, [equal]))
        trainer.step(batch, "grpo", 1e-2)  # moments
        trainer.save(tmp_path / str(which))
        before = weights(trainer)
        trainer.step(batch, "grpo", 1e-2)
        expected = weights(trainer)
        trainer.load(tmp_path / str(which))
        metrics, differences = trainer.step(idle, "grpo", 1e-2)
        assert (metrics["optim/empty_fraction"], differences.num_tokens) == (1.0, 0)
        after = weights(trainer)
        assert all(torch.equal(after[n], before[n]) for n in before)
        trainer.step(batch, "grpo", 1e-2)
        assert all(torch.equal(value, expected[n]) for n, value in weights(trainer).items())


def test_a_step_of_old_tokens_compares_none(trainers: list[Trainer], processor: Any) -> None:
    """A difference of 0 would say that the engines agree."""
    packed = batches([group(processor, *spec) for spec in MIXES["no images at all"]], processor, 2048)
    for micro_batch in (m for batch in packed for rank in batch for m in rank):
        micro_batch.token_staleness = micro_batch.token_staleness + 1
    for trainer, batch in zip(trainers, packed, strict=True):
        metrics, differences = trainer.step(batch, "grpo", 1e-3)
        assert differences.num_tokens == 0
        assert metrics["off_policy/staleness_mean"] == 1.0


@pytest.mark.parametrize("which", [ONE, TWO, SHARED])
def test_a_checkpoint_brings_back_weights_and_optimizer(
    trainers: list[Trainer], processor: Any, tmp_path: Path, which: int
) -> None:
    """Law 8: step, go back, step again: bit by bit the same."""
    trainer = trainers[which]
    batch = batches([group(processor, *spec) for spec in MIXES["images everywhere"]], processor, 2048)[which]
    trainer.save(tmp_path)
    saved = weights(trainer)
    trainer.step(batch, "grpo", 1e-2)
    expected = weights(trainer)
    trainer.step(batch, "sft", 1e-1)  # somewhere else altogether
    trainer.load(tmp_path)
    restored = weights(trainer)
    assert all(torch.equal(restored[n], saved[n]) for n in saved)
    trainer.step(batch, "grpo", 1e-2)
    again = weights(trainer)
    assert all(torch.equal(again[n], expected[n]) for n in expected)
    assert not all(torch.equal(expected[n], saved[n]) for n in saved)


@pytest.mark.parametrize(("source", "target"), [(TWO, ONE), (ONE, TWO), (SHARED, ONE)])
def test_a_checkpoint_of_other_ranks_brings_back_weights_and_optimizer(
    trainers: list[Trainer], processor: Any, tmp_path: Path, source: int, target: int
) -> None:
    """Every number is the one that was saved, and the next step that of the ranks that saved it."""
    packed = batches([group(processor, *spec) for spec in MIXES["images everywhere"]], processor, 2048)
    one, other = trainers[source], trainers[target]
    one.step(packed[source], "grpo", 1e-2)
    one.save(tmp_path / "saved")
    other.step(packed[target], "sft", 1e-1)  # somewhere else altogether
    other.load(tmp_path / "saved")
    saved, loaded = weights(one), weights(other)
    assert all(torch.equal(loaded[n], saved[n]) for n in saved)
    other.save(tmp_path / "again")
    expected, found = (
        whole_states(tmp_path / name, tmp_path / f"{name}-whole") for name in ("saved", "again")
    )
    assert expected.keys() == found.keys() and len(found) > 50
    for name, states in expected.items():
        assert all(torch.equal(found[name][kind], value) for kind, value in states.items()), name
        assert float(states["exp_avg_sq"].max()) > 0
    for trainer, which in ((one, source), (other, target)):
        trainer.step(packed[which], "grpo", 1e-2)
    assert_same_weights(weights(one), weights(other))


def test_two_trainers_of_one_process_do_not_share_a_segment(trainers: list[Trainer]) -> None:
    assert trainers[ONE].manifest.path != trainers[TWO].manifest.path


def test_a_failed_rank_does_not_leave_the_driver_waiting_for_its_siblings(local_ray: None) -> None:
    class Quarrel:
        def __init__(self, fails: bool) -> None:
            self.fails = fails

        def meet(self) -> None:
            if self.fails:
                raise ConfigError("this rank cannot go on")
            time.sleep(600)  # as in a collective that will never be complete

    actors = [cluster.spawn(Quarrel, fails, place=cluster.driver_place(2), env={}) for fails in (False, True)]
    begin = time.monotonic()
    try:
        with pytest.raises(ConfigError, match="this rank cannot go on"):
            cluster.call(actors, "meet")
    finally:
        cluster.stop(actors)
    assert time.monotonic() - begin < 500


def test_what_is_gathered_in_buckets_is_what_the_slices_make(trainers: list[Trainer], tmp_path: Path) -> None:
    for trainer in trainers:
        expected, ranks = weights(trainer), trainer._ranks
        folder = tmp_path / str(len(ranks))
        manifest = replace(trainer.manifest, transport="disk", path=str(folder), bucket_bytes=2**18)
        cluster.call(ranks, "write_weights", [manifest] * len(ranks))
        files = [folder / bucket_file(number) for number in range(len(buckets_of(manifest)))]
        assert len(files) > 3
        found = {name: tensor for file in files for name, tensor in load_file(file).items()}
        assert found.keys() == expected.keys()
        assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())
        saved = tmp_path / f"model-{len(ranks)}"
        cluster.call(ranks, "save_model", [str(saved)] * len(ranks), [manifest] * len(ranks))
        model = model_of(saved)
        assert all(torch.equal(p.data, expected[name]) for name, p in model.named_parameters())


def test_checksums_are_of_the_ranks_slices(trainers: list[Trainer]) -> None:
    for trainer in trainers:
        trainer.write_weights()
        manifest, segment = trainer.manifest, Segment(trainer.manifest)
        num_elements = sum(flat.numel() for flat in segment.flat.values())
        assert sum(checksum.count for checksum in manifest.checksums) == num_elements
        manifest.verify(segment)
        last = manifest.checksums[-1]
        segment.flat[last.name][last.start + last.count - 1] += 1
        with pytest.raises(EngineError, match="is not what the trainer sent"):
            manifest.verify(segment)
