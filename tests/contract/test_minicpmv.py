"""MiniCPM-V counts a prompt's images: each one's number is a part of its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import family_config, make_generation, observe, random_image, row
from tiny_families import build_minicpmv4_6

from vlrl.ledger import Ledger
from vlrl.model.kernels import tiles
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session
from vlrl.sft import supervised_group
from vlrl.trainer.driver import Trainer
from vlrl.weights.manifest import Segment

NUM_TURNS = 12
WIDE = 96
"""Width of a tower whose projector has more weights than ZeRO-3 keeps whole on every rank (100,000)."""


@pytest.fixture(scope="module")
def processor(tiny_family: Callable[[str], Path]) -> Any:
    return open_processor(family_config(tiny_family("minicpmv4_6")))


def play(processor: Any, **policy: Any) -> tuple[Ledger, ...]:
    """An episode that shows an image a turn."""
    first = {"role": "user", "content": [{"type": "image", "image": random_image(64, 64, 0)}]}
    session = Session(processor.sample({"id": "r", "messages": [first]}), 0)
    for turn in range(1, NUM_TURNS):
        processor.act(session, make_generation(processor.encode_target("on")))
        observe(processor, session, "next", [random_image(64, 64, turn)], **policy)
    processor.act(session, make_generation(processor.encode_target("done")))
    return tuple(session.trajectory("done", "ok", 0.0).ledgers)


def numbers(processor: Any, ledger: Ledger) -> list[int]:
    """The numbers of a ledger's images, in their order."""
    return [int(n) for n in re.findall(r"<image_id>(\d+)</image_id>", processor.decode(ledger.token_ids))]


def test_a_ledger_counts_on_from_turn_to_turn(processor: Any) -> None:
    """Numbers of two digits are more tokens; the image's text is otherwise the same."""
    [ledger] = play(processor)
    assert numbers(processor, ledger) == list(range(NUM_TURNS))
    pad = processor.banned_token_ids[0]
    ends = (*ledger.media_starts[1:], len(ledger.token_ids))
    spans = zip(ledger.media_starts, ends, strict=True)
    assert len({int((ledger.token_ids[start:end] == pad).sum()) for start, end in spans}) == 1


def test_a_window_counts_from_0_again(processor: Any) -> None:
    """What is shown is numbered as vLLM numbers what it is given."""
    ledgers = play(processor, policy="last_images", num_images=2)
    assert len(ledgers) == NUM_TURNS - 1
    assert all(numbers(processor, ledger) == [0, 1] for ledger in ledgers[1:])


@pytest.mark.parametrize("merger_times", [1, 2])
def test_the_projector_at_once_is_transformers_own(merger_times: int) -> None:
    """Tiles of several shapes: the same features, and the same gradients of weights and patches."""
    from transformers.models.minicpmv4_6.configuration_minicpmv4_6 import MiniCPMV4_6Config
    from transformers.models.minicpmv4_6.modeling_minicpmv4_6 import MiniCPMV4_6Merger

    torch.manual_seed(0)
    text = {"model_type": "qwen3_5_text", "hidden_size": 16}
    config = MiniCPMV4_6Config(
        text_config=text,
        vision_config={"hidden_size": 8},
        merger_times=merger_times,
        merge_kernel_size=(2, 2),
    )
    merger, sizes = MiniCPMV4_6Merger(config), torch.tensor([[4, 8], [12, 4], [4, 4]])
    found = []
    for _ in range(2):
        patches = torch.arange(int(sizes.prod(1).sum()) * 8).view(1, -1, 8).sin().requires_grad_()
        features = merger(patches, sizes)
        whole = features if isinstance(features, torch.Tensor) else torch.cat(features)
        whole.sin().sum().backward()
        gradients = [patches.grad, *(weight.grad for weight in merger.parameters())]
        found.append([whole.detach(), *(gradient.clone() for gradient in gradients if gradient is not None)])
        merger.zero_grad()
        tiles.install(merger)
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def stepped(folder: Path, num_ranks: int) -> dict[str, torch.Tensor]:
    """Weights after two steps on an image without slices and one of four, on a rank each if there are two."""
    config = family_config(
        folder,
        optim={"eps": 1e-2},  # so that steps are proportional to the gradient
        trainer={"num_ranks": num_ranks, "cpus_per_rank": 0.5, "timeout_s": 60},
    )
    processor = open_processor(config)
    sizes = {"small": (50, 50), "large": (110, 110)}
    rows = [
        {**row("Which?", [random_image(*size)], row_id=name), "target": name} for name, size in sizes.items()
    ]
    groups = [supervised_group(processor.sample(talk), processor) for talk in rows]
    options = PackOptions(
        num_ranks=num_ranks,
        max_tokens=1024,
        aggregation="token",
        max_completion_tokens=16,
        keep_zero_advantage=True,
    )
    trainer = Trainer(config, processor.banned_token_ids)
    try:
        trainer.wait_ready()
        for _ in range(2):
            trainer.step(pack(groups, processor.pixels, options), "sft", 1e-2)
        trainer.write_weights()
        return {name: tensor.clone() for name, tensor in Segment(trainer.manifest)}
    finally:
        trainer.close()


@pytest.mark.slow
def test_ranks_may_have_different_numbers_of_slices(tmp_path: Path, local_ray: None) -> None:
    """The projector is called for each of them: under ZeRO-3 ranks whose calls differ wait for each other."""
    folder = build_minicpmv4_6(tmp_path / "model", tower_width=WIDE)
    one, two = (stepped(folder, num_ranks) for num_ranks in (1, 2))
    assert one.keys() == two.keys()
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-5
