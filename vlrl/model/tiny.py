"""Tiny random vision-language models: the real architecture, configured small, for laptops and tests.

`build_tiny_qwen_vl` writes a folder that transformers and vLLM load like any hub model: a Qwen-VL of any
generation with random weights, its image and video processors, chat template, and a byte-level BPE tokenizer
with Qwen's pre-tokenisation rule and special tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from vlrl.model.hf_names import save_as_published

QwenFamily = Literal["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"]

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

# ChatML with Qwen-VL's media placeholders: one placeholder per medium, expanded by the processor.
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


def build_tiny_qwen_vl(
    family: QwenFamily,
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
    """Write a randomly initialised Qwen-VL to `path` and return it.

    Args:
        family: transformers' name of the model type.
        path: folder to write; created if missing.
        corpus: texts the byte-level BPE is trained on (prompts and completions of the task).
        seed: seed of the random weights; the global torch generator is left as it was.
        hidden_size: width of the language model, in features.
        num_layers: decoder layers.
        num_heads: attention heads; half as many key-value heads.
        vision_hidden_size: width of the vision tower, in features.
        vision_depth: vision blocks; Qwen2.5-VL's last one attends to the whole image, as in the original.
        vocab_size: BPE entries, without the special tokens.
        tie_word_embeddings: share the input embedding with the language-model head, as the small models do.
    """
    tokenizer = train_tokenizer(
        corpus, vocab_size, SPECIAL_TOKENS, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": hidden_size,
        "intermediate_size": 3 * hidden_size,
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_heads // 2,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": tie_word_embeddings,
    }
    config = _qwen_config(
        family,
        {**text, **_text_config(family, text, num_pairs=hidden_size // num_heads // 2)},
        _vision_config(family, vision_hidden_size, vision_depth, hidden_size),
        {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS},
    )
    return write_model(path, config, _qwen_processor(family, tokenizer), seed=seed)


build_tiny_qwen2_5_vl = partial(build_tiny_qwen_vl, "qwen2_5_vl")
"""Write a randomly initialised Qwen2.5-VL; see `build_tiny_qwen_vl`."""


def write_model(path: str | Path, config: Any, processor: Any, *, seed: int) -> Path:
    """Write random weights of `config` and `processor` to `path`, as a hub model's folder, and return it.

    Generation ends with the tokenizer's eos and pad tokens. The global torch generator is left as it was.
    """
    import torch
    from transformers import AutoModelForImageTextToText, GenerationConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of the one second that writing takes
    path = Path(path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config)
    save_as_published(model)
    end, pad = processor.tokenizer.eos_token_id, processor.tokenizer.pad_token_id
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.save_pretrained(path)
    processor.save_pretrained(path)
    for weights in path.glob("*.safetensors"):  # the library makes them 0600, whatever the umask allows
        weights.chmod((path / "config.json").stat().st_mode & 0o777)
    return path


def train_tokenizer(
    corpus: Iterable[str],
    vocab_size: int,
    special_tokens: Sequence[str],
    *,
    eos_token: str,
    pad_token: str,
    bos_token: str | None = None,
    **options: Any,
) -> Any:
    """A byte-level BPE of `vocab_size` entries with Qwen's pre-tokenisation rule, and the special tokens.

    Args:
        corpus: texts it is trained on.
        vocab_size: entries without the special tokens.
        special_tokens: added in this order.
        eos_token: ends an assistant's turn; one of the special tokens.
        pad_token: one of the special tokens.
        bos_token: opens a conversation in families that have one; one of the special tokens.
        options: for the tokenizer's constructor, such as names for a family's own tokens.
    """
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
        additional_special_tokens=list(special_tokens),
        eos_token=eos_token,
        pad_token=pad_token,
        bos_token=bos_token,
        unk_token=None,
        model_max_length=4096,
        **options,
    )


def _text_config(family: QwenFamily, text: Mapping[str, Any], *, num_pairs: int) -> dict[str, Any]:
    """What of the language model differs between generations; heads have `num_pairs` rotary pairs."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": 10000.0}
    if family in ("qwen2_vl", "qwen2_5_vl"):
        side = 3 * num_pairs // 8  # of time, height and width: 1:1.5:1.5
        rope["mrope_section"] = [num_pairs - 2 * side, side, side]
        return {"max_window_layers": text["num_hidden_layers"], "rope_parameters": rope}
    own: dict[str, Any] = {"head_dim": 2 * num_pairs}
    if family.startswith("qwen3_5"):
        rope["partial_rotary_factor"] = 0.25  # of the published models
        num_pairs //= 4
        own |= _delta_rule(text)
    side = 5 * num_pairs // 16  # 6:5:5, every third pair in turn
    rope["mrope_section"] = [num_pairs - 2 * side, side, side]
    own["rope_parameters"] = {**rope, "mrope_interleaved": True}
    if family.endswith("_moe"):
        width = 3 * text["hidden_size"] // 4
        own |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": width}
        own |= (
            {"norm_topk_prob": True}
            if family == "qwen3_vl_moe"
            else {"shared_expert_intermediate_size": width}
        )
    return own


def _delta_rule(text: Mapping[str, Any]) -> dict[str, Any]:
    """Three layers with a state for each that attends, as in the published models; the last one attends."""
    num_layers, size = text["num_hidden_layers"], 32
    return {
        "layer_types": [
            "full_attention" if (num_layers - 1 - layer) % 4 == 0 else "linear_attention"
            for layer in range(num_layers)
        ],
        "linear_num_key_heads": text["num_key_value_heads"],
        "linear_num_value_heads": text["num_attention_heads"],
        "linear_key_head_dim": size,
        "linear_value_head_dim": size,
    }


def _vision_config(family: QwenFamily, width: int, depth: int, out_width: int) -> dict[str, Any]:
    if family == "qwen2_vl":
        return {
            "depth": depth,
            "embed_dim": width,
            "hidden_size": out_width,
            "mlp_ratio": 2,
            "num_heads": 4,
        }
    vision = {
        "depth": depth,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_heads": 4,
        "out_hidden_size": out_width,
    }
    if family == "qwen2_5_vl":
        return {**vision, "fullatt_block_indexes": [depth - 1], "window_size": 112}
    # Fewer places than the original's 48 per side; positions in between are interpolated there too.
    vision["num_position_embeddings"] = 16**2
    return vision if family.startswith("qwen3_5") else {**vision, "deepstack_visual_indexes": [0]}


def _qwen_config(
    family: QwenFamily, text: dict[str, Any], vision: dict[str, Any], ids: Mapping[str, int]
) -> Any:
    from transformers import CONFIG_MAPPING

    text |= {
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    return CONFIG_MAPPING[family](
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=text["tie_word_embeddings"],
        dtype="float32",
    )


def _qwen_processor(family: QwenFamily, tokenizer: Any) -> Any:
    import transformers

    image: dict[str, Any] = {}
    if family.startswith("qwen3"):
        image = {
            "patch_size": 16,
            "size": {"shortest_edge": 256 * 256, "longest_edge": 4096 * 4096},
            "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3,
        }
    whole, video = {
        "qwen2_vl": (transformers.Qwen2VLProcessor, transformers.Qwen2VLVideoProcessor),
        "qwen2_5_vl": (transformers.Qwen2_5_VLProcessor, transformers.Qwen2VLVideoProcessor),
    }.get(family, (transformers.Qwen3VLProcessor, transformers.Qwen3VLVideoProcessor))
    return whole(
        image_processor=transformers.Qwen2VLImageProcessor(**image),
        tokenizer=tokenizer,
        video_processor=video(),
        chat_template=CHAT_TEMPLATE,
    )
