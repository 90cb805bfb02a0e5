"""Ranks load their slices: together they are the model that transformers loads whole, bit by bit.

The ranks are processes with nothing else in them, so that their memory can be measured.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import loaded_ranks
import pytest
import torch
from builders import make_config
from huggingface_hub import constants
from loaded_ranks import Loaded
from rank_processes import RankProcesses, free_port
from safetensors.torch import load_file, save_file
from tiny_families import BUILDERS

from vlrl.config import Config
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.trainer.model import feature_cache, load_model

NUM_RANKS = 4
"""Some weights cannot be divided by it, and a few biases have fewer values."""
HUB_NAME = "someone/tiny-vl"


class Ranks:
    """The ranks of one run after the other."""

    def __init__(self, processes: RankProcesses) -> None:
        self._processes, self._port = processes, free_port()

    def __call__(self, function: Callable[..., Any], configs: Config | Sequence[Config]) -> list[Any]:
        """What the function says in each rank of the config's run, or each of a config of its own."""
        each = [configs] * NUM_RANKS if isinstance(configs, Config) else configs
        return self._processes.run(function, [(config, rank, self._port) for rank, config in enumerate(each)])


@pytest.fixture(scope="module")
def hub_cache() -> Path:
    """The folder that ranks take for the hub's cache, as all processes of the tests do."""
    folder = Path(constants.HF_HUB_CACHE)
    assert folder.is_relative_to(os.environ["XDG_CACHE_HOME"])
    return folder


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with RankProcesses(NUM_RANKS) as processes:
        yield Ranks(processes)


def config_of(folder: Path | str, dtype: str = "float32", **sections: Any) -> Config:
    config = make_config(folder, trainer={"num_ranks": NUM_RANKS}, **sections)
    config.model.dtype = dtype  # type: ignore[assignment]
    return config


def joined(loaded: Sequence[Loaded]) -> dict[str, torch.Tensor]:
    whole = {}
    for name, (_, shape) in loaded[0].slices.items():
        flat = torch.cat([one.slices[name][0] for one in loaded])
        whole[name] = flat[: torch.Size(shape).numel()].view(shape)
    return whole


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert {n: (t.dtype, t.shape) for n, t in found.items()} == {
        n: (t.dtype, t.shape) for n, t in expected.items()
    }
    assert [n for n, t in expected.items() if not torch.equal(found[n], t)] == []


def assert_loaded(loaded: Sequence[Loaded], model: Any) -> None:
    """Weights, which are tied and which trained, and buffers are those of a whole model."""
    named = list(model.named_parameters(remove_duplicate=False))
    assert_same(joined(loaded), {n: p.detach() for n, p in named})
    for one in loaded:
        assert one.num_whole == 0
        assert one.trained == {n for n, p in model.named_parameters() if p.requires_grad}
        assert_same(one.buffers, dict(model.named_buffers()))


def edited(folder: Path, to: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    """A copy of a model's folder, its weights changed."""
    shutil.copytree(folder, to)
    weights = load_file(to / "model.safetensors")
    change(weights)
    save_file(weights, to / "model.safetensors", metadata={"format": "pt"})
    return to


@pytest.mark.parametrize("family", BUILDERS)
def test_slices_of_every_family_are_those_of_the_whole_model(
    ranks: Ranks, tiny_family: Callable[[str], Path], family: str
) -> None:
    """The checkpoint's type and another."""
    for dtype in ("float32", "bfloat16"):
        config = config_of(tiny_family(family), dtype)
        assert_loaded(ranks(loaded_ranks.load, config), load_model(config))


def test_policy_and_reference_begin_as_the_whole_model(
    ranks: Ranks, tiny_family: Callable[[str], Path]
) -> None:
    config = config_of(tiny_family("qwen3_vl_moe"), "bfloat16", algorithm={"kl_coef": 0.1})
    model = load_model(config)
    policies, references = zip(*ranks(loaded_ranks.start, config), strict=True)
    assert_loaded(policies, model)
    assert_loaded(references, model.requires_grad_(False))


def test_what_transformers_keeps_in_float32_is_trained_in_bfloat16(
    ranks: Ranks, tiny_family: Callable[[str], Path]
) -> None:
    """DeepSpeed starts on no model of two types."""
    config = config_of(tiny_family("qwen3_vl"), "bfloat16")
    loaded = [policy for policy, _ in ranks(loaded_ranks.start_with_float32_norms, config)]
    assert_loaded(loaded, load_model(config))


def test_slices_are_the_same_however_the_checkpoint_is_stored(
    ranks: Ranks, tiny_family: Callable[[str], Path], hub_cache: Path, tmp_path: Path
) -> None:
    """Several files, one that is no safetensors file, and a name of the hub."""
    folder = tiny_family("qwen3_vl")
    model = load_model(config_of(folder))

    pieces = tmp_path / "pieces"
    model.save_pretrained(pieces, max_shard_size="1MB")
    assert len(list(pieces.glob("*.safetensors"))) > 2

    pickled = tmp_path / "pickled"
    shutil.copytree(folder, pickled)
    torch.save(load_file(folder / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()

    repository = hub_cache / f"models--{HUB_NAME.replace('/', '--')}"
    shutil.copytree(folder, repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")

    for path in (pieces, pickled, HUB_NAME):
        assert_loaded(ranks(loaded_ranks.load, config_of(path)), model)


def test_adapters_and_frozen_parts_are_those_of_the_whole_model(
    ranks: Ranks, tiny_family: Callable[[str], Path]
) -> None:
    config = config_of(tiny_family("qwen2_5_vl"), lora={"rank": 4})
    loaded = [policy for policy, _ in ranks(loaded_ranks.start, config)]
    assert_loaded(loaded, load_model(config))
    config = config_of(tiny_family("gemma3"))
    config.model.freeze = ["vision_tower", "*.layers.0.*"]
    assert_loaded(ranks(loaded_ranks.load, config), load_model(config))


def test_a_weight_that_the_checkpoint_lacks_is_rank_0_s_on_all_ranks(
    ranks: Ranks, tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """transformers fills it at random; each rank has a random state of its own."""
    name = "model.language_model.layers.1.mlp.up_proj.weight"

    def without(weights: dict[str, torch.Tensor]) -> None:
        [key] = [key for key in weights if key.endswith("layers.1.mlp.up_proj.weight")]
        del weights[key]

    config = config_of(edited(tiny_family("qwen3_vl"), tmp_path / "lacking", without))
    loaded = [policy for policy, _ in ranks(loaded_ranks.start, config)]
    torch.manual_seed(0)
    model = load_model(config)
    assert float(model.get_parameter(name).detach().std()) == pytest.approx(0.02, rel=0.1)
    assert_loaded(loaded, model)


@pytest.mark.parametrize("same", [True, False])
def test_a_head_is_tied_to_embeddings_unless_the_checkpoint_says_otherwise(
    ranks: Ranks, tiny_family: Callable[[str], Path], tmp_path: Path, same: bool
) -> None:
    """The last value alone differs: it lies in the last rank's slice."""
    head = "lm_head.weight"

    def with_both(weights: dict[str, torch.Tensor]) -> None:
        [embeddings] = [w for key, w in weights.items() if key.endswith("embed_tokens.weight")]
        weights[head] = embeddings.clone()
        weights[head][-1, -1] += 0 if same else 1

    config = config_of(edited(tiny_family("qwen2_5_vl"), tmp_path / "both", with_both))
    if same:
        model = load_model(config)
        assert model.get_parameter(head) is model.get_input_embeddings().weight
        assert_loaded(ranks(loaded_ranks.load, config), model)
    else:
        for error in ranks(loaded_ranks.why_not, config):
            assert f"model.path={config.model.path!r}: its config.json ties the head" in error
            assert "set tie_word_embeddings to false there" in error


def test_an_untied_head_beside_tied_words_of_the_config_is_kept(
    ranks: Ranks, tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """What the error recommends."""

    def with_head(weights: dict[str, torch.Tensor]) -> None:
        [embeddings] = [w for key, w in weights.items() if key.endswith("embed_tokens.weight")]
        weights["lm_head.weight"] = embeddings + 1

    folder = edited(tiny_family("qwen2_5_vl"), tmp_path / "untied", with_head)
    tree = json.loads((folder / "config.json").read_text())
    tree["tie_word_embeddings"] = tree["text_config"]["tie_word_embeddings"] = False
    (folder / "config.json").write_text(json.dumps(tree))
    assert_loaded(ranks(loaded_ranks.load, config_of(folder)), load_model(config_of(folder)))


def test_a_host_with_another_model_is_named(
    ranks: Ranks, tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """A mixture of two models would train without an error."""

    def trained(weights: dict[str, torch.Tensor]) -> None:
        for weight in weights.values():
            weight += 1e-3

    folder = tiny_family("qwen3_vl")
    other = edited(folder, tmp_path / "other", trained)
    errors = ranks(loaded_ranks.why_not, [config_of(folder)] * (NUM_RANKS - 1) + [config_of(other)])
    assert errors[:-1] == [None] * (NUM_RANKS - 1)
    assert "other weights on host" in errors[-1] and "copy the same folder to every host" in errors[-1]


def test_a_missing_model_is_named(ranks: Ranks, tmp_path: Path) -> None:
    config = config_of(tmp_path / "nothing")
    for error in ranks(loaded_ranks.why_not, config):
        assert error.startswith(f"model.path={config.model.path!r} cannot be loaded: ")


def test_features_of_a_frozen_tower_are_found_again_by_other_numbers_of_ranks(
    ranks: Ranks, tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """The folder is named by the tower's weights, of which a rank has slices."""
    folder = tiny_family("qwen3_vl")

    def keeping(at: Path) -> Config:
        config = config_of(folder, vision_cache={"dir": str(at)})
        config.model.freeze = ["vision_tower", "projector"]
        return config

    one = keeping(tmp_path / "one")
    assert feature_cache(load_model(one), one, torch.device("cpu")) is not None
    [expected] = (tmp_path / "one").iterdir()
    found = ranks(loaded_ranks.feature_folder, keeping(tmp_path / "four"))
    assert found == [expected.name] * NUM_RANKS


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_rank_needs_less_than_half_of_the_model_to_start(
    ranks: Ranks, large_model: Path, tiny_family: Callable[[str], Path], dtype: str
) -> None:
    """Its slice is a quarter. In bfloat16 each weight is copied; only adapters are trained in both."""
    ranks(loaded_ranks.start, config_of(tiny_family("qwen2_5_vl"), dtype, lora={"rank": 2}))  # libraries
    config = config_of(large_model, dtype, lora={"rank": 2})
    num_bytes = (large_model / "model.safetensors").stat().st_size // (1 if dtype == "float32" else 2)
    for peak in ranks(loaded_ranks.peak_bytes, config):
        assert 0.9 * num_bytes / NUM_RANKS < peak < num_bytes / 2, f"{peak / 2**20:.0f} MiB"


@pytest.fixture(scope="module")
def large_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """200 million parameters in float32."""
    folder = tmp_path_factory.mktemp("large") / "model"
    yield build_tiny_qwen2_5_vl(
        folder, ["one two three"] * 4, hidden_size=1024, num_heads=8, num_layers=16, vision_depth=1
    )
    shutil.rmtree(folder)
