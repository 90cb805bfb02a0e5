"""Calls a second of the rewards on text, called directly, one process.

    python benchmarks/text_rewards.py [--json]

Every completion is another text in the strict form with a think part of 600 characters. `math` is asked for
fractions, decimals and roots, none of them twice, so that no result is remembered; its process is warm.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from typing import Any

from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.registry import resolve

THOUGHT = "The picture shows two birds and a tree, so one more than before. " * 10
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "answer_exact": ("{n}", {}),
    "think_answer_format": ("{n}", {}),
    "tag_format": ("{n}", {"partial": True}),
    "answer_normalized": ("The bird no. {n}", {}),
    "yes_no": ("yes", {}),
    "multiple_choice": ("B", {"choices": ["cat", "dog", "bird", "fish"]}),
    "numeric": ("{n}.5 cm", {"relative": 0.05}),
    "edit_similarity": ("bird number {n} in the tree", {}),
    "anls": ("bird number {n} in the tree", {}),
    "token_f1": ("bird number {n} in the tree", {}),
    "rouge_l": ("bird number {n} in the tree", {}),
    "rouge_mean": ("bird number {n} in the tree", {}),
    "word_accuracy": ("bird number {n} in the tree", {}),
    "character_accuracy": ("bird number {n} in the tree", {}),
    "repetition_penalty": ("{n}", {}),
    "soft_overlong": ("{n}", {"num_tokens": 900, "max_tokens": 1000, "buffer": 200}),
    "cosine_length": ("{n}", {"num_tokens": 900, "max_tokens": 1000}),
}


def completion(answer: str) -> str:
    return f"<think>{THOUGHT}</think><answer>{answer}</answer>"


def calls_per_s(name: str, pairs: list[tuple[str, str]], options: dict[str, Any]) -> float:
    reward = resolve("rewards", name)
    completions = [(completion(said), answer) for said, answer in pairs]
    reward(*completions[0], **options)
    begin = time.perf_counter()
    for said, answer in completions[1:]:
        reward(said, answer, **options)
    return (len(pairs) - 1) / (time.perf_counter() - begin)


def mathematics(draw: random.Random) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    def number() -> int:
        return draw.randint(2, 9999)

    yield "integers", [(str(number()), str(number())) for _ in range(2000)]
    yield "decimals", [(f"{number()}.5", f"{number()}.25") for _ in range(500)]
    yield "fractions", [(f"{number()}/{number()}", rf"\frac{{{number()}}}{{{number()}}}") for _ in range(500)]
    yield "roots", [(rf"\sqrt{{{number()}}}", rf"{number()}\sqrt{{{number()}}}") for _ in range(200)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    as_json = parse_with_json(parser).json
    rates = {}
    for name, (form, options) in ANSWERS.items():
        texts = [form.format(n=n) for n in range(3001)]
        rates[name] = calls_per_s(name, list(zip(texts, texts, strict=True)), options)
    for kind, pairs in mathematics(random.Random(0)):
        rates[f"math, {kind}"] = calls_per_s("math", pairs, {})
    if as_json:
        print_json({name: round(rate) for name, rate in rates.items()})
        return
    for name, rate in rates.items():
        print(f"{name:24}{rate:12,.0f} calls/s")


if __name__ == "__main__":
    main()
