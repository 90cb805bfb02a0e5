"""A tiny MiniCPM-V 4.6: slices of about an image's shape before a Qwen3.5."""

from __future__ import annotations

from pathlib import Path

from tiny_families.parts import chatml_tokenizer, family_model_config, text_config, tower_config
from vlrl.model.tiny import SPECIAL_TOKENS as QWEN_TOKENS
from vlrl.model.tiny import write_model

MARKS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "image_start_token": "<image>",
    "image_end_token": "</image>",
    "slice_start_token": "<slice>",
    "slice_end_token": "</slice>",
    "image_id_start_token": "<image_id>",
    "image_id_end_token": "</image_id>",
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|image_pad|>{% elif part.type == 'video' %}<|video_pad|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_minicpmv4_6(path: Path, tower_width: int = 64) -> Path:
    """MiniCPM-V 4.6: slices of about 56 pixels a side, 4 tokens each, at most 4 of them."""
    from transformers import (
        MiniCPMV4_6ImageProcessor,
        MiniCPMV4_6Processor,
        MiniCPMV4_6VideoProcessor,
    )

    tokenizer = chatml_tokenizer(
        tuple(dict.fromkeys((*QWEN_TOKENS[:3], *MARKS.values()))), model_specific_special_tokens=MARKS
    )
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
    config = family_model_config(
        "minicpmv4_6",
        text_config={
            "model_type": "qwen3_5_text",
            **text_config(tokenizer, tie_word_embeddings=False),
            "head_dim": 32,
            "rope_parameters": {**rope, "mrope_section": [2, 1, 1], "mrope_interleaved": True},
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 32,
            "linear_value_head_dim": 32,
        },
        vision_config={**tower_config(image_size=56, patch_size=7), "hidden_size": tower_width},
        insert_layer_id=0,
        image_size=56,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        tie_word_embeddings=False,
    )
    limits = {"scale_resolution": 56, "patch_size": 7, "max_slice_nums": 4}
    processor = MiniCPMV4_6Processor(
        image_processor=MiniCPMV4_6ImageProcessor(**limits),
        video_processor=MiniCPMV4_6VideoProcessor(**limits),
        tokenizer=tokenizer,
        chat_template=TEMPLATE,
    )
    return write_model(path, config, processor, seed=0)
