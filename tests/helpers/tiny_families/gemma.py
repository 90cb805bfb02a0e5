"""Tiny Gemma models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tiny_families.parts import CORPUS, family_model_config, siglip_config, text_config
from vlrl.model.tiny import train_tokenizer, write_model

# Gemma 3: roles user and model, a beginning-of-sequence token, images that see themselves both ways.

GEMMA3_TOKENS = (
    "<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>",
    "<end_of_image>", "<image_soft_token>",
)  # fmt: skip
GEMMA3_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{% if message.content is string %}{{ message.content | trim }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text | trim }}{% endif %}"
    "{% endfor %}{% endif %}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


def build_gemma3(path: Path) -> Path:
    """Gemma 3: one square of 56 pixels an image, 16 tokens; one of two layers sees 32 tokens back."""
    from transformers import Gemma3ImageProcessor, Gemma3Processor

    tokenizer = train_tokenizer(
        CORPUS, 384, GEMMA3_TOKENS, eos_token="<end_of_turn>", pad_token="<pad>", bos_token="<bos>",
        model_specific_special_tokens={
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
    )  # fmt: skip
    tokenizer.add_tokens(["\n" * count for count in (1, 2, 3, 4)])  # vLLM joins line breaks around an image
    config = family_model_config(
        "gemma3",
        text_config={
            **text_config(tokenizer, tie_word_embeddings=True),
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": 32,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        vision_config=siglip_config(image_size=56, patch_size=7),
        mm_tokens_per_image=16,
        boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
        eos_token_id=tokenizer.eos_token_id,
    )
    processor = Gemma3Processor(
        Gemma3ImageProcessor(size={"height": 56, "width": 56}),
        tokenizer,
        chat_template=GEMMA3_TEMPLATE,
        image_seq_length=16,
    )
    return write_model(path, config, processor, seed=0)


# Gemma 4: turns in angle marks, layers that read another's keys and values, embeddings for each layer.

GEMMA4_MARKS = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "sot_token": "<|turn>",
    "eot_token": "<turn|>",
    "soc_token": "<|channel>",
    "eoc_token": "<channel|>",
    "think_token": "<|think|>",
    "str_token": "<|tool_response>",
    "etr_token": "<tool_response|>",
}
GEMMA4_TOKENS = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
# As published it trims all text, and takes the thoughts out of what the assistant said before.
GEMMA4_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{% if message.content is string %}{{ message.content | trim }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<|image|>{% elif part.type == 'video' %}<|video|>"
    "{% elif part.type == 'audio' %}<|audio|>{% elif message.role == 'assistant' %}"
    "{% for piece in part.text.split('<channel|>') %}{{ piece.split('<|channel>')[0] | trim }}{% endfor %}"
    "{% else %}{{ part.text | trim }}{% endif %}"
    "{% endfor %}{% endif %}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)


def gemma_tokenizer() -> Any:
    """Gemma's kind of tokenizer: no blank before a text, and <pad> as token 0, which vLLM counts on."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import GemmaTokenizer

    trained = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    known = [*GEMMA4_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256))]
    trained.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=384, special_tokens=known, show_progress=False)
    )
    bpe = json.loads(trained.to_str())["model"]
    return GemmaTokenizer(
        bpe["vocab"],
        [tuple(pair) for pair in bpe["merges"]],
        additional_special_tokens=["<|video|>"],
        model_specific_special_tokens=GEMMA4_MARKS,
    )


def build_gemma4(path: Path) -> Path:
    """Gemma 4 E2B: images of up to 70 tokens of 8 pixels a side; the last two of four layers share.

    Their MLPs are twice as wide. What transformers begins with ones or without bounds is random: scales of
    layers, positions of the tower, and where its values are clipped. Norms of queries and keys stand in
    for a scale, which attention has not. The cap of logits is low enough to be seen.
    """
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4ImageProcessor,
        Gemma4Processor,
        Gemma4VideoProcessor,
    )

    tokenizer = gemma_tokenizer()
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in GEMMA4_MARKS.items()}
    config = family_model_config(
        "gemma4",
        text_config={
            **text_config(tokenizer, tie_word_embeddings=True),
            "num_hidden_layers": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "head_dim": 32,
            "global_head_dim": 64,
            "sliding_window": 32,
            "vocab_size_per_layer_input": len(tokenizer),
            "hidden_size_per_layer_input": 16,
            "final_logit_softcapping": 2.0,
        },
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "head_dim": 16,
            "patch_size": 4,
            "pooling_kernel_size": 2,
            "position_embedding_size": 160,
            "use_clipped_linears": True,
            "default_output_length": 70,
        },
        audio_config={
            "hidden_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "subsampling_conv_channels": [128, 4],  # a quarter of the first: the pitches that are left
            "output_proj_dims": 64,
        },
        image_token_id=ids["image_token"],
        boi_token_id=ids["boi_token"],
        eoi_token_id=ids["eoi_token"],
        audio_token_id=ids["audio_token"],
        boa_token_id=ids["boa_token"],
        eoa_token_index=ids["eoa_token"],
        video_token_id=tokenizer.convert_tokens_to_ids("<|video|>"),
    )
    limits = {"patch_size": 4, "pooling_kernel_size": 2, "max_soft_tokens": 70}
    processor = Gemma4Processor(
        Gemma4AudioFeatureExtractor(),
        Gemma4ImageProcessor(**limits),
        tokenizer,
        Gemma4VideoProcessor(**limits),
        chat_template=GEMMA4_TEMPLATE,
        image_seq_length=70,
    )
    write_model(path, config, processor, seed=0)
    weights, generator = load_file(path / "model.safetensors"), torch.Generator().manual_seed(0)
    for name in sorted(weights):
        noise = torch.randn(weights[name].shape, generator=generator)
        if name.endswith("layer_scalar"):
            weights[name] = 1 + noise / 4
        elif name.endswith("position_embedding_table"):
            weights[name] = noise / 4
        elif name.endswith(("q_norm.weight", "k_norm.weight")):
            weights[name] = 0.5 + noise / 16
        elif name.endswith(("put_min", "put_max")) and ".vision_tower." in name:
            weights[name] = (1 + noise / 8).abs() * (1.0 if name.endswith("max") else -1.0)
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path
