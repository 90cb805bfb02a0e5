"""The tiny model is a real one: transformers reads it, and its tokenizer behaves like Qwen's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from umask import umask

from vlrl.model.tiny import SPECIAL_TOKENS, build_tiny_qwen2_5_vl

TEXTS = ["<think>3+5</think><answer>8</answer>", "Read the digits and add them"]


def build(path: Path, **options: object) -> Path:
    sizes = {"hidden_size": 64, "num_layers": 1, "vision_depth": 1, "vocab_size": 280}
    return build_tiny_qwen2_5_vl(path, TEXTS, **{**sizes, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny") / "deep" / "model")


def test_the_same_seed_writes_the_same_weights_and_another_does_not(folder: Path, tmp_path: Path) -> None:
    again, other = build(tmp_path / "a"), build(tmp_path / "b", seed=1)
    weights = (folder / "model.safetensors").read_bytes()
    assert (again / "model.safetensors").read_bytes() == weights
    assert (other / "model.safetensors").read_bytes() != weights
    assert (again / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


def test_every_file_has_the_mode_that_the_umask_allows(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o666 & ~umask()}


def test_building_leaves_the_global_generator_alone(tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    build(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_special_tokens_are_single_tokens(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for token in SPECIAL_TOKENS:
        assert len(tokenizer.encode(f"a{token}b", add_special_tokens=False)) == 3
    assert tokenizer.eos_token == "<|im_end|>"


@pytest.mark.parametrize("text", [*TEXTS, "12 345", "naïve 日本語 🙂\n\ttabs  two", ""])
def test_any_text_survives_encoding(folder: Path, text: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_every_digit_stands_alone(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("1797", add_special_tokens=False)] == list("1797")


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_tied_or_not_as_asked(tmp_path: Path, tied: bool) -> None:
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(build(tmp_path, tie_word_embeddings=tied))
    shared = model.lm_head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    assert shared is tied
    assert model.config.model_type == "qwen2_5_vl"
