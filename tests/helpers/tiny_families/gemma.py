"""Tiny Gemma models."""

from __future__ import annotations

from pathlib import Path

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
