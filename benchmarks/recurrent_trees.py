"""Seconds of a pass over prefix trees through layers with a state, beside the same ledgers as padded rows.

    .venv/bin/python benchmarks/recurrent_trees.py --json

A Qwen3.5 of random weights (width 384, two layers of six attend, the others carry a state), text alone,
float32, one thread; forward and backward, every completion's tokens trained. Rows are transformers' own
forward pass; both sides compute the head for trained tokens only, and their losses are held equal. The sides
take turns; CPU seconds of this process, the fewest and the median of --rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tree_attention import seen_until

from vlrl.model.logprobs import TreeModel
from vlrl.model.recurrent.tree import RecurrentTree
from vlrl.model.tiny import build_tiny_qwen_vl
from vlrl.process.json_stdout import parse_with_json, print_json

CASES = {
    "4 prompts of 300, 8 completions of 48": (4, 300, 8, 48),
    "4 prompts of 300, 16 completions of 48": (4, 300, 16, 48),
    "2 prompts of 300, 8 completions of 256": (2, 300, 8, 256),
    "1 prompt of 1200, 8 completions of 48": (1, 1200, 8, 48),
}


def model_of() -> Any:
    """The model."""
    from transformers import AutoModelForImageTextToText

    corpus = ["Compare the two images, then answer: which is larger, 12 or 3?"]
    with tempfile.TemporaryDirectory() as folder:
        build_tiny_qwen_vl("qwen3_5", Path(folder), corpus, hidden_size=384, num_layers=6, num_heads=6)
        return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)


def sides(
    model: Any, num_prompts: int, num_shared: int, n: int, num_generated: int
) -> dict[str, Callable[[], torch.Tensor]]:
    """The loss of each side: minus the mean logprob of the completions' tokens."""
    rng = np.random.default_rng(0)
    prompts = rng.integers(300, size=(num_prompts, num_shared))
    completions = rng.integers(300, size=(num_prompts, n, num_generated))
    core, head = model.model.language_model, model.lm_head
    # Of each completion the last token is predicted, and none follows it.
    tree = seen_until(num_prompts, num_shared, [num_generated - 1] * n)
    packed = torch.tensor(
        np.concatenate([np.append(p, c[:, :-1]) for p, c in zip(prompts, completions, strict=True)])
    )
    within = np.append(np.arange(num_shared), np.tile(num_shared + np.arange(num_generated - 1), n))
    positions = torch.tensor(np.tile(within, num_prompts))
    size = num_shared + n * (num_generated - 1)
    starts = num_shared + np.arange(n) * (num_generated - 1)
    sources = [
        [p * size + num_shared - 1, *(p * size + start + np.arange(num_generated - 1))]
        for p in range(num_prompts)
        for start in starts
    ]
    source = torch.tensor(np.array(sources).ravel())
    targets = torch.tensor(completions.reshape(-1))
    wrapped = TreeModel(model)
    rows = torch.tensor(
        np.concatenate([prompts.repeat(n, axis=0), completions.reshape(-1, num_generated)[:, :-1]], axis=1)
    )

    def loss(hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(head(hidden).float(), targets)

    def of_trees() -> torch.Tensor:
        output = core(
            input_ids=packed[None],
            position_ids=positions.expand(3, 1, -1),
            attention_mask=torch.zeros(1, 1, 1, 1),
            tree=wrapped._attention(tree),
            states=RecurrentTree(tree),
            use_cache=False,
        )
        return loss(output.last_hidden_state[0, source])

    def of_rows() -> torch.Tensor:
        hidden = core(input_ids=rows, use_cache=False).last_hidden_state
        return loss(hidden[:, num_shared - 1 :].reshape(-1, hidden.shape[-1]))

    return {"trees": of_trees, "rows": of_rows}


def measure(model: Any, rounds: int) -> dict[str, dict[str, float]]:
    """Case by case."""
    found = {}
    for name, case in CASES.items():
        losses = sides(model, *case)
        assert abs(losses["trees"]().item() - losses["rows"]().item()) < 1e-5
        seconds: dict[str, list[float]] = {side: [] for side in losses}
        for number in range(rounds):
            for side in list(losses)[:: 1 if number % 2 else -1]:
                begin = time.process_time()
                losses[side]().backward()
                seconds[side].append(time.process_time() - begin)
                model.zero_grad()
        found[name] = ratios(seconds)
    return found


def ratios(seconds: dict[str, Sequence[float]]) -> dict[str, float]:
    """Fewest and median seconds, and how many times as fast trees are."""
    fewest = {f"{side}_s": round(min(values), 3) for side, values in seconds.items()}
    median = {f"{side}_median_s": round(statistics.median(values), 3) for side, values in seconds.items()}
    by_round = [row / tree for tree, row in zip(seconds["trees"], seconds["rows"], strict=True)]
    return {
        **fewest,
        **median,
        "speedup": round(min(seconds["rows"]) / min(seconds["trees"]), 2),
        "speedup_median": round(statistics.median(by_round), 2),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parse_with_json(parser)
    torch.set_num_threads(1)
    found = measure(model_of(), options.rounds)
    if options.json:
        print_json(found)
        return
    for name, numbers in found.items():
        print(f"{name}: {', '.join(f'{key} {value}' for key, value in numbers.items())}")


if __name__ == "__main__":
    main()
