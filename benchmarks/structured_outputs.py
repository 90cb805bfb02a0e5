"""What structured outputs cost the trainer: following a completion, and a head with impossible tokens.

    python benchmarks/structured_outputs.py --vocab 151936 --json

The vocabulary is made of random words, whose number and lengths matter and not what they say. The head's
passes, forward and backward, with and without masks are made in turns; the ratio is the median of the turns'.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import string
import time

import torch
import xgrammar

from vlrl.model.head_logprobs import CHUNK_BYTES, FLOAT32_BYTES, token_logprobs
from vlrl.process.json_stdout import parse_with_json, print_json

THOUGHTS = " some words of a thought" * 60
SCHEMA = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "x": {"type": "integer"}},
    "required": ["thought", "x"],
}
FORMS = {
    "regex": (
        "<think>[^<]*</think><answer>[0-9]+</answer>",
        f"<think>{THOUGHTS}</think><answer>12</answer>",
    ),
    "json_schema": (json.dumps(SCHEMA), json.dumps({"thought": THOUGHTS, "x": 12})),
}
"""Name → what is compiled, and a text of that form."""


def words(count: int) -> list[bytes]:
    """A vocabulary: single bytes, words, and an end."""
    chosen = random.Random(0)
    found = {bytes([byte]): None for byte in range(256)}
    while len(found) < count - 1:
        letters = "".join(chosen.choices(string.ascii_lowercase, k=chosen.randint(2, 9)))
        found[(chosen.choice(["", " "]) + letters).encode()] = None
    return [*found, b"<eos>"]


def follow(vocabulary: list[bytes], form: str, num_rounds: int) -> dict[str, float]:
    """Microseconds a token, the median of rounds; the text is spelled byte by byte."""
    what, text = FORMS[form]
    info = xgrammar.TokenizerInfo(
        vocabulary, vocab_size=len(vocabulary), stop_token_ids=[len(vocabulary) - 1]
    )
    compiler = xgrammar.GrammarCompiler(info)
    begin = time.perf_counter()
    grammar = compiler.compile_regex(what) if form == "regex" else compiler.compile_json_schema(what)
    compile_s = time.perf_counter() - begin
    token_ids, seconds = list(text.encode()), []
    bits = xgrammar.allocate_token_bitmask(len(token_ids), len(vocabulary))
    for _ in range(num_rounds):
        matcher = xgrammar.GrammarMatcher(grammar)
        begin = time.perf_counter()
        for row, token in enumerate(token_ids):
            matcher.fill_next_token_bitmask(bits, row)
            assert matcher.accept_token(token), text[:row]
        seconds.append(time.perf_counter() - begin)
    per_token = statistics.median(seconds) / len(token_ids)
    return {"compile_s": compile_s, "us_per_token": per_token * 1e6, "num_tokens": len(token_ids)}


def head(vocab: int, num_tokens: int, width: int, num_rounds: int) -> dict[str, float]:
    """Seconds of the head's passes without and with masks, and the ratio."""
    hidden = torch.randn(num_tokens, width, requires_grad=True)
    weight = torch.randn(vocab, width, requires_grad=True)
    targets = torch.randint(0, vocab, (num_tokens,))
    everything = torch.full((num_tokens, -(-vocab // 32)), -1, dtype=torch.int32)

    def passes(allowed: torch.Tensor | None) -> float:
        begin = time.perf_counter()
        logprobs, _ = token_logprobs(
            hidden, weight, None, targets, temperature=1.0, banned_token_ids=[5],
            num_logits=CHUNK_BYTES // FLOAT32_BYTES, allowed=allowed,
        )  # fmt: skip
        logprobs.sum().backward()  # type: ignore[no-untyped-call]
        return time.perf_counter() - begin

    passes(None), passes(everything)
    turns = [(passes(None), passes(everything)) for _ in range(num_rounds)]
    without, with_masks = (statistics.median(side) for side in zip(*turns, strict=True))
    return {
        "without_s": without,
        "with_masks_s": with_masks,
        "ratio": statistics.median(b / a for a, b in turns),
    }


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab", type=int, default=151_936)
    parser.add_argument("--tokens", type=int, default=64, help="trained tokens of the head's passes")
    parser.add_argument("--width", type=int, default=512, help="features of a hidden state")
    parser.add_argument("--rounds", type=int, default=5)
    args = parse_with_json(parser)
    vocabulary = words(args.vocab)
    results: dict[str, dict[str, float]] = {form: follow(vocabulary, form, args.rounds) for form in FORMS} | {
        "head": head(args.vocab, args.tokens, args.width, args.rounds)
    }
    for name, result in results.items():
        print(f"{name:12s}", "  ".join(f"{key} {value:.4g}" for key, value in result.items()))
    if args.json:
        print_json(results)


if __name__ == "__main__":
    main()
