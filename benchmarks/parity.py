"""Measure trainer − sampler logprobs, rounding alone and with faults put in; law 5's bounds come from here.

    python benchmarks/parity.py configs/quickstart.yaml model.dtype=bfloat16 [--json]

vLLM generates the config's first batch. transformers' model of the same folder, packed and called as a
trainer rank does it, computes the same tokens' logprobs: once as it is ("none") and once with each fault. A
fault that moves weights moves every element of them by 1, 10 or 100 of the config's learning rates, as Adam's
steps do. `stops` says whether the run would have been stopped (`vlrl.run.parity`). The histogram is that of
rounding alone, signed, with the share of the tokens that each kind of algorithm.correction would limit.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from vlrl.algorithm.differences import LogprobDifferences
from vlrl.config import Config, load_config
from vlrl.errors import EngineError
from vlrl.process.json_stdout import parse_with_json, print_json

QUANTILES = (0.5, 0.9, 0.99, 0.999)
EDGES = (-np.inf, -1, -0.5, -0.2, -0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, np.inf)
"""Of the histogram's bins, in nats."""


def generated(config: Config) -> tuple[Any, list[Any]]:
    """The processor, and the micro-batches of the first batch as a rank would get them."""
    from dataclasses import replace

    from vlrl.algorithm.credit import group_with_advantages
    from vlrl.packing.options import PackOptions
    from vlrl.packing.pack import pack
    from vlrl.rollout.groups import rollout_groups
    from vlrl.run.run import Run
    from vlrl.tracking.console import TrainConsole
    from vlrl.types import Score

    with (
        TrainConsole("parity", 1, json_mode=True) as console,
        Run(config, console, train=False, generate=True) as run,
    ):
        groups = run.runner.run(rollout_groups(run.first_samples, run.context, seed_path=(0,))).groups
        scored = [
            group_with_advantages(
                [replace(t, score=Score(0.0, {})) for t in group.trajectories],
                [1.0] * len(group.trajectories),
            )
            for group in groups
        ]
        [micro_batches] = pack(scored, run.processor.pixels, PackOptions.of(config))
        return run.processor, list(micro_batches)


class Side:
    """The trainer's model, and faults to put into it."""

    def __init__(self, config: Config, processor: Any) -> None:
        import torch
        from transformers import AutoModelForImageTextToText

        dtype = getattr(torch, config.model.dtype)
        self.model = AutoModelForImageTextToText.from_pretrained(config.model.path, dtype=dtype)
        self.config, self.processor = config, processor

    def differences(self, micro_batches: Sequence[Any], **fault: Any) -> LogprobDifferences:
        """The |trainer - sampler| logprobs, see `logprobs`."""
        from vlrl.trainer.result import fresh_differences

        found = LogprobDifferences()
        for micro_batch, logprobs in zip(micro_batches, self.logprobs(micro_batches, **fault), strict=True):
            found += fresh_differences(logprobs, micro_batch)
        return found

    def logprobs(
        self, micro_batches: Sequence[Any], *, temperature: float = 1.0, shift: int = 0
    ) -> Iterator[np.ndarray]:
        """The trainer's, by micro-batch; with `shift`, positions from the first completion on are off."""
        import torch

        from vlrl.model.logprobs import DeviceBatch, TreeLogprobs

        wrapped = TreeLogprobs(
            self.model,
            temperature=self.config.rollout.temperature * temperature,
            banned_token_ids=self.processor.banned_token_ids,
        )
        for micro_batch in micro_batches:
            batch = DeviceBatch.of(micro_batch, torch.device("cpu"))
            own = torch.zeros(batch.input_ids.shape, dtype=torch.bool)
            own[batch.source_index] = True  # what predicts a completion's tokens, and so all but its last
            batch.position_ids[:, own] += shift
            with torch.no_grad():
                logprobs, _ = wrapped(batch)
            yield logprobs.float().numpy()

    @contextmanager
    def moved(self, prefix: str, num_steps: int) -> Iterator[None]:
        """Every element of the parameters under a prefix moved by so many learning rates, either way."""
        import torch

        parameters = [p for name, p in self.model.named_parameters() if name.startswith(prefix)]
        assert parameters, prefix
        before, generator = [p.detach().clone() for p in parameters], torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in parameters:
                sign = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
                parameter.add_(sign * num_steps * self.config.optim.lr)
        yield
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)

    def faults(self, micro_batches: Sequence[Any]) -> Iterator[tuple[str, LogprobDifferences]]:
        """Each fault's name and what it makes of the differences."""
        yield "none", self.differences(micro_batches)
        for factor in (1.02, 1.1):
            yield f"temperature times {factor}", self.differences(micro_batches, temperature=factor)
        yield "positions off by one", self.differences(micro_batches, shift=1)
        last = max(
            int(name.split("layers.")[1].split(".")[0])
            for name, _ in self.model.named_parameters()
            if ".language_model.layers." in name
        )
        for what, prefix in (
            ("vision tower", "model.visual."),
            ("last layer", f"model.language_model.layers.{last}."),
        ):
            for num_steps in (1, 10, 100):
                with self.moved(prefix, num_steps):
                    yield f"stale {what}, {num_steps} steps", self.differences(micro_batches)


def histogram(side: Side, micro_batches: Sequence[Any]) -> dict[str, Any]:
    """How trainer − sampler logprobs are spread, and what corrections with their defaults do about it."""
    import torch

    from vlrl.config.asynchronous import CorrectionConfig, bound_correction

    trainer = np.concatenate(list(side.logprobs(micro_batches)))
    sampler = np.concatenate([m.sampler_logprobs for m in micro_batches])
    signed = trainer - sampler
    counts, _ = np.histogram(signed, EDGES)
    limited = {
        kind: bound_correction(CorrectionConfig(kind=kind))(
            torch.from_numpy(sampler),
            proximal_logprobs=torch.from_numpy(trainer),
            sequence_sums=torch.Tensor.sum,  # of level sequence, which is not the default
        )[1]
        for kind in ("truncated", "masked", "icepop", "decoupled")
    }
    return {
        "edges": [float(edge) for edge in EDGES[1:-1]],
        "shares": (counts / counts.sum()).tolist(),
        "mean": float(signed.mean()),
        "smallest_ratio": float(np.exp(signed.min())),
        "largest_ratio": float(np.exp(signed.max())),
        "limited": {kind: float(found.float().mean()) for kind, found in limited.items()},
    }


def stops(differences: LogprobDifferences, config: Config) -> bool:
    """Whether a run with these differences is stopped."""
    from vlrl.run.parity import require_parity

    try:
        require_parity(differences, config, when="")
    except EngineError:
        return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*")
    args = parse_with_json(parser)
    config = load_config(args.config, args.overrides)
    processor, micro_batches = generated(config)
    chosen = np.concatenate([m.sampler_logprobs for m in micro_batches])
    side = Side(config, processor)
    rows = {
        name: {
            "mean": found.mean,
            **{f"p{100 * share:g}": found.quantile(share) for share in QUANTILES},
            "max": found.largest,
            "stops": stops(found, config),
        }
        for name, found in side.faults(micro_batches)
    }
    result = {
        "dtype": config.model.dtype,
        "num_tokens": len(chosen),
        "mean_probability": float(np.exp(chosen).mean()),
        "faults": rows,
        "histogram": histogram(side, micro_batches),
    }
    if args.json:
        print_json(result)
        return
    print(
        f"{config.model.dtype}, {len(chosen)} tokens, mean probability {result['mean_probability']:.2f}; nats"
    )
    print(f"{'fault':28}" + "".join(f"{name:>10}" for name in rows["none"]))
    for name, row in rows.items():
        cells = (f"{value:>10}" if isinstance(value, bool) else f"{value:10.2e}" for value in row.values())
        print(f"{name:28}" + "".join(cells))
    print_histogram(result["histogram"])


def print_histogram(found: dict[str, Any]) -> None:
    edges = [-np.inf, *found["edges"], np.inf]
    print(f"\ntrainer − sampler of rounding alone, mean {found['mean']:+.2e} nats")
    for low, high, share in zip(edges, edges[1:], found["shares"], strict=False):
        print(f"{low:>6} to {high:<6} {share:8.3%}")
    print(f"ratios from {found['smallest_ratio']:.3g} to {found['largest_ratio']:.3g}; limited by ", end="")
    print(", ".join(f"{kind} {share:.3%}" for kind, share in found["limited"].items()))


if __name__ == "__main__":
    main()
