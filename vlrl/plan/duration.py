"""How long the trainer computes in a step: its operations over the rate that the machine reaches."""

from __future__ import annotations

import time

from vlrl.config import Config
from vlrl.model.parts import recomputes
from vlrl.plan.rates import REACHED
from vlrl.plan.shapes import ModelShape, Stack
from vlrl.plan.workload import Workload


def train_flops(shape: ModelShape, work: Workload, config: Config) -> float:
    """Floating-point operations of one step on all ranks.

    Forward; backward, which is twice that, or once without gradients of weights; forward again where
    activations are recomputed; the forward of the reference, of the teacher, of what selections look at, and
    of the proximal policy where it is asked. A critic has a forward, and all of it for each of its updates.
    """
    algorithm = config.algorithm
    language, head, vision = _forwards(shape, work)
    once = language + head + vision
    others = (1.0 if config.has_reference else 0.0) + (1.0 if algorithm.selections else 0.0)
    if algorithm.correction.recomputes:  # logprobs of all minibatches but the first
        others += 1.0 - 1.0 / algorithm.num_minibatches
    teacher = sum(_forwards(shape.teacher, work)) if shape.teacher is not None else 0.0
    critic = 0.0
    if shape.critic is not None and algorithm.critic is not None:
        update = _trained_flops(shape.critic, work, config)
        critic = sum(_forwards(shape.critic, work)) + algorithm.critic.num_updates * update
    return _trained_flops(shape, work, config) + others * once + teacher + critic


def _trained_flops(shape: ModelShape, work: Workload, config: Config) -> float:
    """A model's own passes in one update over a step's tokens."""
    choice, adapted = config.trainer.gradient_checkpointing, config.lora is not None
    trained = {part for part, count in shape.trained.items() if count}
    language, head, vision = _forwards(shape, work)
    below = trained & {"vision_tower", "projector", "embeddings"}
    language *= _passes("language_layers" in trained, bool(below), adapted, recomputes(choice, "language"))
    # Chunked logprobs compute the logits once more in the backward pass (`vlrl.model.head_logprobs`).
    head *= 4.0 if {"head", "embeddings"} & trained and not adapted else 3.0
    vision *= _passes("vision_tower" in trained, False, adapted, recomputes(choice, "vision"))
    return language + head + vision


def _forwards(shape: ModelShape, work: Workload) -> tuple[float, float, float]:
    """Operations of one forward pass over a step: of the language layers, of the head, of the tower."""
    context = work.micro_pairs // max(1, work.micro_tokens)
    return (
        forward(shape.language, work.step_tokens, context),
        2.0 * work.step_targets * shape.vocab * shape.language.hidden,
        forward(shape.vision, work.step_patches, work.image_patches),
    )


def _passes(trained: bool, below: bool, adapted: bool, recomputed: bool) -> float:
    """Forward passes that a stack costs, if it is trained itself, or something that lies before it is."""
    if not (trained or below):
        return 1.0
    # Without gradients of its weights, frozen or beside adapters, the backward pass is one and not two.
    return (3.0 if trained and not adapted else 2.0) + recomputed


def train_seconds(flops: float, num_ranks: int, rate: float, device: str) -> float:
    """Seconds of one step, if every rank has a device of this rate (operations/s)."""
    return flops / (num_ranks * rate * REACHED[device].value)


def matmul_rate(device: str, dtype: str) -> float:
    """Operations/s of a square product on this machine: the best of three, a second at most on a CPU."""
    import torch

    from vlrl.model.cpu_matmul import choose_products

    if device == "cpu":
        choose_products()  # as a rank does
    width = 1024 if device == "cpu" else 8192
    a = torch.randn(width, width, device=device).to(getattr(torch, dtype))
    best = float("inf")
    for _ in range(4):
        begin = time.perf_counter()
        product = a @ a
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
        del product
    return 2.0 * width**3 / best


def forward(stack: Stack, num_tokens: int, context: int) -> float:
    """Operations of a stack for num_tokens that each attend to about `context` others, masked or not."""
    attention = 4.0 * stack.heads * context
    return num_tokens * stack.num_layers * (2.0 * stack.matmul_params + attention)
