"""An image that several micro-batches show: the same logprobs and gradients, the tower's backward once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_group, open_tiny, random_image, row
from tiny_families import BUILDERS

from vlrl.batch import MicroBatch
from vlrl.model.feature_cache import FeatureCache
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.parts import freeze
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

CPU = torch.device("cpu")
TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=["qwen2_5_vl", "qwen3_vl", "internvl", "llava_onevision", "gemma4"])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    from transformers import AutoModelForImageTextToText

    folder: Path = BUILDERS[request.param](tmp_path_factory.mktemp(request.param))
    return AutoModelForImageTextToText.from_pretrained(folder), open_tiny(folder)


def groups_of(processor: Any) -> list[Group]:
    """A group on images 1 and 2 and one on 1 alone, both too large for a micro-batch; one without."""
    shown = {"a": [1, 2], "b": [1], "c": []}
    groups = []
    for name, seeds in shown.items():
        images = [random_image(56, 84, seed=seed) for seed in seeds]
        sample = processor.sample(row(f"Which, {name}?", images, row_id=name))
        advantages = [1.0, -1.0, 0.5, -0.5, 2.0, -2.0]
        groups.append(make_group([4] * 6, sample=sample, advantages=advantages, seed=len(groups)))
    return groups


def micro_batches(processor: Any, *, once: bool, num_ranks: int = 1) -> list[list[MicroBatch]]:
    groups = groups_of(processor)
    longest = max(len(g.trajectories[0].ledgers[0].token_ids) for g in groups)
    return pack(
        groups,
        processor.pixels,
        PackOptions(
            num_ranks=num_ranks,
            max_tokens=longest + 8,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
            images_once=once,
        ),
    )


def marks_of(inputs: Any) -> list[float]:
    """A number for each image in the tower's arrays."""
    values = torch.as_tensor(inputs["pixel_values"])
    grids = inputs.get("image_grid_thw")
    sizes = [1] * len(values) if grids is None else torch.as_tensor(grids).prod(-1).tolist()
    return [round(float(one.float().sum()), 1) for one in torch.split(values, sizes)]


def count_images(model: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[bool, float]]:
    """How often each image went into the tower: with gradient, and without."""
    seen: Counter[tuple[bool, float]] = Counter()
    core: Any = type(model.model)
    tower = core.get_image_features

    def counted(core: Any, pixel_values: torch.Tensor, *args: Any, **options: Any) -> Any:
        inputs = {"pixel_values": pixel_values, **options}
        seen.update((torch.is_grad_enabled(), mark) for mark in marks_of(inputs))
        return tower(core, pixel_values, *args, **options)

    monkeypatch.setattr(core, "get_image_features", counted)
    return seen


def step(model: Any, processor: Any, batches: list[MicroBatch], **options: Any) -> tuple[Any, Any]:
    """Logprobs of all micro-batches, and the gradients of their weighted sum, added up one by one."""
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids, **options)
    kept, logprobs = StepFeatures(), {}
    model.zero_grad()
    for batch in batches:
        found, _ = wrapped(DeviceBatch.of(batch, CPU), kept)
        (found * torch.tensor(batch.weights * batch.advantages)).sum().backward()
        for number, sample_id in enumerate(batch.token_sample_ids):
            mine = found.detach()[torch.tensor(batch.sequence_ids == number)]
            tokens = batch.target_ids[batch.sequence_ids == number]
            logprobs[sample_id, tuple(tokens.tolist())] = mine
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return logprobs, gradients


def assert_same(found: tuple[Any, Any], expected: tuple[Any, Any]) -> None:
    for one, two in zip(found, expected, strict=True):
        assert one.keys() == two.keys()
        scale = max(float(value.abs().max()) for value in two.values())
        for name in two:
            assert float((one[name] - two[name]).abs().max()) <= TOLERANCE * scale, name


def test_an_image_of_several_micro_batches_is_differentiated_once(
    family: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = family
    [each] = micro_batches(processor, once=False)
    [once] = micro_batches(processor, once=True)
    assert len(each) == len(once) > 2
    assert sum(len(m.media_here) for m in each) > sum(len(m.media_here) for m in once) == 2
    expected = step(model, processor, each)
    seen = count_images(model, monkeypatch)
    assert_same(step(model, processor, once), expected)
    media = groups_of(processor)[0].trajectories[0].sample.media
    for mark in marks_of(processor.pixels(media)):
        assert (seen[False, mark], seen[True, mark]) == (1, 1)


def test_without_gradient_the_logprobs_are_the_same(family: tuple[Any, Any]) -> None:
    model, processor = family
    [each], [once] = (micro_batches(processor, once=once) for once in (False, True))
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids)
    kept = StepFeatures()
    with torch.no_grad():
        for one, two in zip(each, once, strict=True):
            expected, found = wrapped(DeviceBatch.of(one, CPU))[0], wrapped(DeviceBatch.of(two, CPU), kept)[0]
            assert torch.allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("capacity", [0, 2**30])
def test_a_frozen_tower_s_features_outlive_a_cache_that_drops_them(
    family: tuple[Any, Any], capacity: int
) -> None:
    model, processor = family
    trained = [p for p in model.parameters() if p.requires_grad]
    freeze(model, ["vision_tower", "projector"])
    try:
        [each], [once] = (micro_batches(processor, once=once) for once in (False, True))
        expected = step(model, processor, each)
        cache = FeatureCache(capacity, None, bool)
        for _ in range(2):
            assert_same(step(model, processor, once, features=cache), expected)
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


def test_ranks_run_ahead_together(family: tuple[Any, Any]) -> None:
    """A rank that need not does it on a blank image: ranks whose calls differ wait forever."""
    _, processor = family
    ranks = micro_batches(processor, once=True, num_ranks=2)
    for column in zip(*ranks, strict=True):
        assert len({m.ahead_inputs is None for m in column}) == 1
    for of_rank in ranks:
        known: set[str] = set()
        for m in of_rank:
            here = {m.media_keys[i] for i in m.media_here}
            ahead = {m.media_keys[i] for i in m.media_ahead}
            assert not ahead & (known | here)
            assert set(m.media_keys) <= here | ahead | known
            known |= ahead
        runs = Counter(m.media_keys[i] for m in of_rank for i in m.media_here)
        assert set(runs.values()) == {1}
