"""A frozen tower's features from the cache: the same logprobs and gradients, and the tower is not run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from tiny_families import BUILDERS
from umask import umask

from vlrl.batch import MicroBatch
from vlrl.model.feature_cache import FeatureCache, fingerprint
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.parts import freeze
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.model import feature_cache, load_model

CPU = torch.device("cpu")
GIB = 2**30


@pytest.fixture(scope="module", params=["qwen3_vl", "internvl", "llava_onevision", "gemma4"])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    from transformers import AutoModelForImageTextToText

    folder: Path = BUILDERS[request.param](tmp_path_factory.mktemp(request.param))
    model = AutoModelForImageTextToText.from_pretrained(folder)
    freeze(model, ["vision_tower", "projector"])
    return model, open_tiny(folder)


def micro_batch(processor: Any, seeds: list[int]) -> MicroBatch:
    """Images of these seeds in one prompt, with two completions."""
    images = [random_image(56 + 28 * (seed % 3), 84, seed=seed) for seed in seeds]
    sample = processor.sample(row("Which?", images, row_id="a"))
    [[batch]] = pack(
        [make_group([3, 2], sample=sample, advantages=[1.0, -1.0])],
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=4096,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
        ),
    )
    return batch


def count_runs(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every run of the tower."""
    runs: list[int] = []
    core: Any = type(model.model)
    tower = core.get_image_features

    def counted(*args: Any, **options: Any) -> Any:
        runs.append(1)
        return tower(*args, **options)

    monkeypatch.setattr(core, "get_image_features", counted)
    return runs


def values_and_gradients(model: Any, processor: Any, batch: MicroBatch, **options: Any) -> list[torch.Tensor]:
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids, **options)
    logprobs, _ = wrapped(DeviceBatch.of(batch, CPU))
    trained = [p for p in model.parameters() if p.requires_grad]
    return [logprobs.detach(), *torch.autograd.grad(logprobs.sum(), trained, allow_unused=True)]


def cache_of(capacity: int = GIB, folder: Path | None = None, agree: Callable[[bool], bool] = bool) -> Any:
    return FeatureCache(capacity, folder, agree)


@pytest.mark.parametrize("seeds", [[1], [1, 2, 1], []], ids=["one", "one twice", "none"])
def test_features_from_the_cache_are_the_towers(
    family: tuple[Any, Any], seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = family
    batch, cache = micro_batch(processor, seeds), cache_of()
    expected = values_and_gradients(model, processor, batch)
    runs = count_runs(model, monkeypatch)
    for expected_runs in (min(1, len(seeds)), min(1, len(seeds))):
        found = values_and_gradients(model, processor, batch, features=cache)
        assert len(runs) == expected_runs
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert (a is None) == (b is None)
            assert a is None or torch.equal(a, b)
    assert cache.take_counts() == (2 * len(set(seeds)), len(set(seeds)))
    assert cache.take_counts() == (0, 0)


def test_images_seen_apart_are_known_together(
    family: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = family
    cache, both = cache_of(), micro_batch(processor, [4, 3])
    expected = values_and_gradients(model, processor, both)[0]
    for seed in (3, 4):
        values_and_gradients(model, processor, micro_batch(processor, [seed]), features=cache)
    runs = count_runs(model, monkeypatch)
    found = values_and_gradients(model, processor, both, features=cache)[0]
    assert not runs
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_folder_serves_another_process_and_other_weights_another_folder(
    family: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = family
    batch = micro_batch(processor, [5, 6])
    expected = values_and_gradients(model, processor, batch, features=cache_of(0, tmp_path))[0]
    runs = count_runs(model, monkeypatch)
    found = values_and_gradients(model, processor, batch, features=cache_of(0, tmp_path))[0]
    assert not runs
    assert torch.equal(found, expected)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o666 & ~umask()}  # other users may share it
    named = list(model.named_parameters())[:3]
    name, parameter = named[0]
    changed = [(name, parameter.detach() + 1e-3), *named[1:]]
    assert len({fingerprint(named, "a"), fingerprint(named, "b"), fingerprint(changed, "a")}) == 3


def test_other_pixels_of_the_same_image_go_into_another_folder(tiny_model: Path, tmp_path: Path) -> None:
    """The same tower on pixels from which another mean was taken, or by another setting of its own."""
    model_folder, kept = tmp_path / "model", tmp_path / "kept"
    shutil.copytree(tiny_model, model_folder)
    config = make_config(model_folder, vision_cache={"dir": str(kept)})
    config.model.freeze = ["vision_tower", "projector"]

    def num_folders() -> int:
        assert feature_cache(load_model(config), config, CPU) is not None
        return len(list(kept.iterdir()))

    assert [num_folders(), num_folders()] == [1, 1]
    for number, (name, changes) in enumerate(
        [
            ("processor_config.json", {"image_processor": {"image_mean": [0.1, 0.2, 0.3]}}),
            ("config.json", {"vision_config": {"hidden_act": "gelu"}}),
        ],
        2,
    ):
        file = model_folder / name
        tree = json.loads(file.read_text())
        for key, values in changes.items():
            tree[key] |= values
        file.write_text(json.dumps(tree))
        assert num_folders() == number


def test_memory_is_bounded_and_the_longest_unused_goes_first(tiny_model: Path) -> None:
    from transformers import AutoModelForImageTextToText

    model, processor = AutoModelForImageTextToText.from_pretrained(tiny_model), open_tiny(tiny_model)
    batches = [DeviceBatch.of(micro_batch(processor, [seed]), CPU) for seed in (3, 6, 9)]  # of one size
    cache = cache_of()
    cache(model.model, batches[0], StepFeatures())
    small = cache_of(2 * cache.num_bytes)
    for index in (0, 1, 0, 2):  # so the second one is the oldest when the third comes
        small(model.model, batches[index], StepFeatures())
        assert small.num_bytes <= 2 * cache.num_bytes
    small.take_counts()
    small(model.model, batches[0], StepFeatures())
    small(model.model, batches[2], StepFeatures())
    assert small.take_counts() == (2, 2)
    small(model.model, batches[1], StepFeatures())
    assert small.take_counts() == (1, 0)


def test_a_rank_that_knows_all_runs_the_tower_with_one_that_does_not(
    family: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = family
    asked: list[bool] = []

    def another_rank_needs_it(mine: bool) -> bool:
        asked.append(mine)
        return True

    batch, cache = micro_batch(processor, [7]), cache_of(agree=another_rank_needs_it)
    runs = count_runs(model, monkeypatch)
    first = values_and_gradients(model, processor, batch, features=cache)[0]
    second = values_and_gradients(model, processor, batch, features=cache)[0]
    assert asked == [True, False]
    assert len(runs) == 2
    assert torch.equal(first, second)
