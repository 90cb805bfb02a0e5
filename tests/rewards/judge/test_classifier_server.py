"""The classifier reward against vLLM's own server, with a tiny random model: its score is transformers'."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from classifier_server import serving

from vlrl.model.tiny import CHAT_TEMPLATE, SPECIAL_TOKENS, train_tokenizer
from vlrl.rewards.judge.classifier import classifier
from vlrl.rewards.judge.prompt import harmless

pytestmark = pytest.mark.slow(together=True)

QUESTION = "What is 3 + 5?"
COMPLETIONS = ("8", "It is eight, because 3 + 5 = 8.", "<think>three, five</think><answer>9</answer>")
LABELS = {0: "bad", 1: "fair", 2: "good"}


@pytest.fixture(scope="module", params=[3, 1], ids=["three classes", "one class"])
def reward_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2 with a random head, written as transformers writes one."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    folder = tmp_path_factory.mktemp("reward_model")
    tokenizer = train_tokenizer(
        [QUESTION, *COMPLETIONS], 384, SPECIAL_TOKENS, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        num_labels=request.param,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["Qwen2ForSequenceClassification"],
    )
    if request.param == 3:
        config.id2label, config.label2id = LABELS, {name: number for number, name in LABELS.items()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Qwen2ForSequenceClassification(config).float()
        torch.nn.init.normal_(model.score.weight, std=0.3)  # or all classes would be as likely as each other
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base_url(reward_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(reward_model, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


def expected(folder: Path, completion: str) -> torch.Tensor:
    """The classes' probabilities by transformers' own forward pass."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": harmless(completion)}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    with torch.inference_mode():
        logits = model(**tokenizer(text, return_tensors="pt", add_special_tokens=False)).logits[0]
    return logits.sigmoid() if len(logits) == 1 else logits.softmax(-1)


def test_the_score_is_transformers_probability(reward_model: Path, base_url: str) -> None:
    where = {"base_url": base_url, "model": "rm", "max_retries": 0}

    async def scores(**options: Any) -> list[float]:
        prompt = ({"role": "user", "content": QUESTION},)
        calls = (classifier(said, None, endpoint=where, prompt=prompt, **options) for said in COMPLETIONS)
        return list(await asyncio.gather(*calls))

    right = torch.stack([expected(reward_model, said) for said in COMPLETIONS])
    assert len({round(value, 4) for value in right[:, -1].tolist()}) == len(COMPLETIONS)
    for label in range(right.shape[1]):
        found = asyncio.run(scores(label=label))
        assert found == pytest.approx(right[:, label].tolist(), abs=1e-4)
    if right.shape[1] == 3:  # the server names the likeliest class, so that one can be asked for by name
        best = int(right[0].argmax())
        only = classifier(
            COMPLETIONS[0], None, endpoint=where, prompt=({"role": "user", "content": QUESTION},),
            label=LABELS[best],
        )  # fmt: skip
        assert asyncio.run(only) == pytest.approx(float(right[0, best]), abs=1e-4)
