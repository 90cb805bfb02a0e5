"""A model's buffers that belong to its weights, on real ranks: sent and saved once, in their own type.

GLM-4.5V's router adds a correction bias that is no parameter: ZeRO-3 leaves it whole on every rank, and it
is float32 in a model of bfloat16.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config
from rank_processes import RankProcesses, free_port
from safetensors.torch import load_file
from tiny_families import BUILDERS

from vlrl.config import Config
from vlrl.export.weights import copy_merged
from vlrl.model.lora import persistent_buffers
from vlrl.model.meta_model import empty_model
from vlrl.weights.manifest import Checksum, Manifest, Segment, create_segment, plan_segment
from vlrl.weights.sender import WeightSender

SLOW = pytest.mark.slow(together=True)
NUM_RANKS = 2
BIAS = "model.language_model.layers.1.mlp.gate.e_score_correction_bias"
TRANSPORTS = ("shared_memory", "spread", "disk")
"""Slices side by side, whole weights by the first rank of each of two nodes, and gathered buckets."""


def manifests(layout: Any, folder: Path) -> dict[str, Manifest]:
    plan = replace(plan_segment(folder, layout), bucket_bytes=2**16, checked=True)
    found = {name: replace(plan, path=str(folder / name)) for name in TRANSPORTS}
    return {**found, "disk": replace(found["disk"], transport="disk")}


def sent(
    config: Config, rank: int, port: int, folder: Path
) -> tuple[Any, dict[str, list[Checksum]], torch.Tensor]:
    """Bring a rank's part of the weights everywhere.

    Returns:
        The layout, this rank's checksums of each transport, and the bias that it reads from its state.
    """
    from vlrl.trainer.rank import TrainerRank

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    running = TrainerRank(config, [], rank, ("127.0.0.1", port))
    running.start()
    layout, checksums = running.parameters(), {}
    for name, manifest in manifests(layout, folder).items():
        if rank == 0 and name != "disk":
            create_segment(manifest)
        torch.distributed.barrier()
        nodes = (0, 1) if name == "spread" else ()
        sender = WeightSender(rank, NUM_RANKS, torch.device("cpu"), nodes)
        checksums[name] = sender.send(running._slices(), manifest)
        torch.distributed.barrier()
    running.save_model(str(folder / "model"), manifests(layout, folder)["shared_memory"])
    running.save_state(str(folder / "state"))
    torch.distributed.barrier()
    bias = running._engine.module.model.get_buffer(BIAS).zero_()
    running.load_state(str(folder / "state"))
    return layout, checksums, bias.clone()


@dataclass
class Sent:
    """What two ranks sent and saved of a GLM-4.5V in bfloat16.

    Attributes:
        expected: the bias in its file.
        layout: (name, dtype, shape) of all that is sent.
        checksums: of each transport, those of all ranks.
        folder: with a segment or folder of each transport, and the saved model.
        resumed: the bias of each rank after it has read the state that it had written.
    """

    expected: torch.Tensor
    layout: list[tuple[str, str, tuple[int, ...]]]
    checksums: dict[str, list[Checksum]]
    folder: Path
    resumed: list[torch.Tensor]

    def arrived(self, transport: str) -> dict[str, torch.Tensor]:
        if transport != "disk":
            return dict(Segment(manifests(self.layout, self.folder)[transport]))
        files = sorted((self.folder / "disk").glob("*.safetensors"))
        found = [tensor for file in files for tensor in load_file(file).items()]
        assert len(dict(found)) == len(found)
        return dict(found)


@pytest.fixture(scope="module")
def processes() -> Iterator[RankProcesses]:
    with RankProcesses(NUM_RANKS) as found:
        yield found


@pytest.fixture(scope="module", params=["whole", "adapters"])
def ranks(
    request: pytest.FixtureRequest,
    processes: RankProcesses,
    tiny_family: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Sent:
    """All parameters trained, or adapters with the vision tower frozen."""
    model, folder = tiny_family("glm4v_moe"), tmp_path_factory.mktemp("sent")
    lora = {"lora": {"rank": 2}} if request.param == "adapters" else {}
    config = make_config(model, trainer={"num_ranks": NUM_RANKS, "timeout_s": 120}, **lora)
    config.model.dtype = "bfloat16"
    config.model.freeze = ["vision_tower"] if lora else []
    port = free_port()
    found = processes.run(sent, [(config, rank, port, folder) for rank in range(NUM_RANKS)])
    checksums = {name: [c for _, of_rank, _ in found for c in of_rank[name]] for name in TRANSPORTS}
    expected = load_file(model / "model.safetensors")[BIAS]
    return Sent(expected, found[0][0], checksums, folder, [bias for *_, bias in found])


@SLOW
def test_a_buffer_is_in_the_layout_once_in_its_own_type(ranks: Sent) -> None:
    assert ranks.layout.count((BIAS, "float32", (4,))) == 1
    assert [name for name, dtype, _ in ranks.layout if dtype != "bfloat16"] == [BIAS]
    assert not torch.equal(ranks.expected, ranks.expected.bfloat16().float())


@SLOW
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_buffer_arrives_whole_from_one_rank(ranks: Sent, transport: str) -> None:
    arrived = ranks.arrived(transport)
    assert arrived[BIAS].dtype == torch.float32
    assert torch.equal(arrived[BIAS], ranks.expected)
    [checksum] = [c for c in ranks.checksums[transport] if c.name == BIAS]
    assert (checksum.start, checksum.count) == (0, 4)
    manifest = manifests(ranks.layout, ranks.folder)[transport]
    replace(manifest, checksums=tuple(ranks.checksums[transport])).verify(arrived.items())


@SLOW
def test_ranks_resume_with_the_buffer(ranks: Sent) -> None:
    assert all(torch.equal(bias, ranks.expected) for bias in ranks.resumed)


@SLOW
@pytest.mark.parametrize("shard_bytes", [2**30, 2**20])
def test_an_exported_model_has_the_buffer(ranks: Sent, tmp_path: Path, shard_bytes: int) -> None:
    """One file or several; transformers loads it as it loads the model that the run began with."""
    from transformers import AutoModelForImageTextToText

    copy_merged(ranks.folder / "model", tmp_path, shard_bytes)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert (len(files) > 1) == (shard_bytes == 2**20)
    found = [tensor for file in files for name, tensor in load_file(file).items() if name == BIAS]
    assert [tensor.dtype for tensor in found] == [torch.float32]
    model = AutoModelForImageTextToText.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert torch.equal(model.get_buffer(BIAS), ranks.expected)


BOUNDS = ("input_min", "input_max", "output_min", "output_max")


@pytest.mark.parametrize("family", BUILDERS)
def test_buffers_that_are_computed_are_not_sent(tiny_family: Callable[[str], Path], family: str) -> None:
    """Tables of rotary positions are in no file; Gemma 4's bounds and scales of layers are."""
    model = empty_model(make_config(tiny_family(family)))
    assert any(True for _ in model.named_buffers())
    names = [name for name, _ in persistent_buffers(model)]
    if family == "gemma4":
        assert {name.rpartition(".")[2] for name in names} == {*BOUNDS, "layer_scalar"}
        assert not any("rotary" in name or "embed_scale" in name for name in names)
    else:
        assert names == ([BIAS] if family == "glm4v_moe" else [])
