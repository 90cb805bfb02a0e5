"""Tiny LLaVA models: tiles on the best of some grids, and a newline that is learned."""

from __future__ import annotations

from pathlib import Path

from tiny_families.parts import (
    chatml_tokenizer,
    family_model_config,
    llama_tokenizer,
    siglip_config,
    text_config,
    tower_config,
)
from vlrl.model.tiny import SPECIAL_TOKENS as QWEN_TOKENS
from vlrl.model.tiny import write_model

# LLaVA-OneVision: ChatML, tiles on a grid with a newline token a row.

ONEVISION_TOKENS = (*QWEN_TOKENS[:3], "<image>", "<video>")
# The published one ends the role with a space, except where it opens the turn that is to be generated.
ONEVISION_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role + ' ' }}"
    "{% for part in message.content if part.type == 'image' %}<image>{% endfor %}"
    "{% for part in message.content if part.type == 'video' %}<video>{% endfor %}"
    "{% for part in message.content if part.type == 'text' %}{{ '\n' + part.text }}{% endfor %}"
    "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_llava_onevision(path: Path) -> Path:
    """LLaVA-OneVision: SigLIP tiles of 56 pixels, 16 tokens each, on grids of up to 2 by 2."""
    from transformers import (
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
    )

    pinpoints = [[56, 56], [56, 112], [112, 56], [112, 112]]
    tokenizer = chatml_tokenizer(ONEVISION_TOKENS)
    config = family_model_config(
        "llava_onevision",
        text_config={"model_type": "qwen2", **text_config(tokenizer, tie_word_embeddings=False)},
        vision_config=siglip_config(image_size=56, patch_size=14),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=pinpoints,
        tie_word_embeddings=False,
    )
    tile = {"height": 56, "width": 56}
    processor = LlavaOnevisionProcessor(
        image_processor=LlavaOnevisionImageProcessor(size=tile, image_grid_pinpoints=pinpoints),
        tokenizer=tokenizer,
        video_processor=LlavaOnevisionVideoProcessor(size=tile),
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        chat_template=ONEVISION_TEMPLATE,
    )
    return write_model(path, config, processor, seed=0)


# LLaVA-NeXT: CLIP tiles without its class token; here with Mistral's template and a tokenizer as Llama's.

NEXT_TOKENS = ("<unk>", "<s>", "</s>", "<image>", "<pad>")
# As published it writes no <s>, which the tokenizer adds, and ends a message with a blank behind </s>.
NEXT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ '<<SYS>>\n' + message.content[0].text + '\n<</SYS>>\n\n' }}"
    "{% elif message.role == 'user' %}{{ '[INST] ' }}"
    "{% for part in message.content if part.type == 'image' %}{{ '<image>\n' }}{% endfor %}"
    "{% for part in message.content if part.type == 'text' %}{{ part.text }}{% endfor %}{{ ' [/INST]' }}"
    "{% elif message.role == 'assistant' %}{{ ' ' + message.content[0].text + '</s> ' }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)


def build_llava_next(path: Path) -> Path:
    """LLaVA-NeXT: CLIP tiles of 56 pixels, 16 tokens each, on grids of up to 2 by 2."""
    from transformers import LlavaNextImageProcessor, LlavaNextProcessor

    pinpoints = [[56, 112], [112, 56], [112, 112]]
    tokenizer = llama_tokenizer(NEXT_TOKENS)
    config = family_model_config(
        "llava_next",
        text_config={
            "model_type": "mistral",
            **text_config(tokenizer, tie_word_embeddings=False),
            "head_dim": 32,
            "sliding_window": None,
        },
        vision_config={**tower_config(image_size=56, patch_size=14), "model_type": "clip_vision_model"},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=pinpoints,
        tie_word_embeddings=False,
    )
    processor = LlavaNextProcessor(
        image_processor=LlavaNextImageProcessor(
            size={"shortest_edge": 56},
            crop_size={"height": 56, "width": 56},
            image_grid_pinpoints=pinpoints,
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=NEXT_TEMPLATE,
    )
    return write_model(path, config, processor, seed=0)
