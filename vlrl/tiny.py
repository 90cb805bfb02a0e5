"""Tiny random vision-language models: the real architecture, configured small, for laptops and tests.

`build_tiny_qwen2_5_vl` writes a folder that transformers and vLLM load like any hub model: a
Qwen2.5-VL with random weights, its image processor, chat template, and a byte-level BPE tokenizer
with Qwen's pre-tokenisation rule and special tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip

# The pre-tokenisation rule of Qwen2's published tokenizer: words keep one leading mark, every
# digit stands alone.
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)

# ChatML with Qwen2.5-VL's media placeholders: one placeholder per medium, expanded by the processor.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tiny_qwen2_5_vl(
    path: str | Path,
    corpus: Iterable[str],
    *,
    seed: int = 0,
    hidden_size: int = 128,
    num_layers: int = 4,
    num_heads: int = 4,
    vision_hidden_size: int = 128,
    vision_depth: int = 4,
    vocab_size: int = 384,
    tie_word_embeddings: bool = True,
) -> Path:
    """Write a randomly initialised Qwen2.5-VL to `path` and return it.

    Args:
        path: folder to write; created if missing.
        corpus: texts the byte-level BPE is trained on (prompts and completions of the task).
        seed: seed of the random weights; the global torch generator is left as it was.
        hidden_size: width of the language model, in features.
        num_layers: decoder layers.
        num_heads: attention heads; half as many key-value heads.
        vision_hidden_size: width of the vision tower, in features.
        vision_depth: vision blocks; the last one attends to the whole image, as in the original.
        vocab_size: BPE entries, without the special tokens.
        tie_word_embeddings: share the input embedding with the language-model head, as the 3B model does.
    """
    import torch
    from transformers import (
        AutoModelForImageTextToText,
        GenerationConfig,
        Qwen2_5_VLConfig,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of the one second that writing takes
    path = Path(path)
    tokenizer = _train_tokenizer(corpus, vocab_size)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden_size,
            "intermediate_size": 3 * hidden_size,
            "num_hidden_layers": num_layers,
            "num_attention_heads": num_heads,
            "num_key_value_heads": num_heads // 2,
            "max_position_embeddings": 4096,
            "max_window_layers": num_layers,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": _mrope_section(hidden_size // num_heads),
            },
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
            "tie_word_embeddings": tie_word_embeddings,
        },
        vision_config={
            "depth": vision_depth,
            "hidden_size": vision_hidden_size,
            "intermediate_size": 2 * vision_hidden_size,
            "num_heads": 4,
            "out_hidden_size": hidden_size,
            "fullatt_block_indexes": [vision_depth - 1],
            "window_size": 112,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=tie_word_embeddings,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config)
    model.generation_config = GenerationConfig(
        eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]], pad_token_id=ids["<|endoftext|>"]
    )
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
    model.save_pretrained(path)
    processor.save_pretrained(path)
    return path


def _mrope_section(head_dim: int) -> list[int]:
    """Split half a head's rotary pairs over time, height and width, 1:1.5:1.5 as Qwen2.5-VL does."""
    num_pairs = head_dim // 2
    side = 3 * num_pairs // 8
    return [num_pairs - 2 * side, side, side]


def _train_tokenizer(corpus: Iterable[str], vocab_size: int):  # type: ignore[no-untyped-def]
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return Qwen2TokenizerFast(
        tokenizer_object=tokenizer,
        additional_special_tokens=list(SPECIAL_TOKENS),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        bos_token=None,
        unk_token=None,
        model_max_length=4096,
    )
