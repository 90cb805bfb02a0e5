"""Tiny models whose images are cut into square tiles: InternVL, SmolVLM, Idefics 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiny_families.parts import CORPUS, chatml_tokenizer, family_model_config, text_config
from vlrl.model.tiny import SPECIAL_TOKENS as QWEN_TOKENS
from vlrl.model.tiny import train_tokenizer, write_model

# InternVL3: ChatML; an image is its own line, cut into tiles of which each is 16 tokens.

INTERNVL_TOKENS = (*QWEN_TOKENS[:7], "<img>", "</img>", "<IMG_CONTEXT>", "<video>")
INTERNVL_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<IMG_CONTEXT>\n{% elif part.type == 'video' %}<video>\n"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_internvl3_5(path: Path) -> Path:
    """InternVL3.5 in Hugging Face format: InternVL3 with Qwen3 as its language model."""
    return build_internvl(path, "qwen3", head_dim=32)


def build_internvl3_5_moe(path: Path) -> Path:
    """InternVL3.5 with a Qwen3 of 4 experts of which 2 answer."""
    experts = {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 96,
        "norm_topk_prob": True,
    }
    return build_internvl(path, "qwen3_moe", head_dim=32, **experts)


def build_internvl(path: Path, language_model: str = "qwen2", **language_options: Any) -> Path:
    """InternVL3 in Hugging Face format, tiles of 56 pixels, at most 4 of them."""
    from transformers import GotOcr2ImageProcessor, InternVLProcessor, InternVLVideoProcessor

    tile = {"height": 56, "width": 56}
    tokenizer = chatml_tokenizer(
        INTERNVL_TOKENS,
        model_specific_special_tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
    )
    config = family_model_config(
        "internvl",
        text_config={
            "model_type": language_model,
            **text_config(tokenizer, tie_word_embeddings=False),
            **language_options,
        },
        vision_config={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "attention_bias": True,
            "intermediate_size": 128,
            "image_size": [56, 56],
            "patch_size": [7, 7],
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=16,
        tie_word_embeddings=False,
    )
    image = GotOcr2ImageProcessor(size=tile, crop_to_patches=True, min_patches=1, max_patches=4)
    video = InternVLVideoProcessor(size=tile)
    processor = InternVLProcessor(
        image, tokenizer, video, image_seq_length=16, chat_template=INTERNVL_TEMPLATE
    )
    return write_model(path, config, processor, seed=0)


# SmolVLM2: no turn headers but a role's name, tiles named by row and column.

SMOLVLM_TILES = tuple(f"<row_{row}_col_{col}>" for row in range(1, 7) for col in range(1, 7))
SMOLVLM_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<end_of_utterance>", "<fake_token_around_image>",
    "<image>", "<global-img>", *SMOLVLM_TILES,
)  # fmt: skip
# Like the published one it knows only lists of parts: a string would be left out without a message.
SMOLVLM_TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{ message.role | capitalize }}"
    "{% if message.content[0].type == 'image' %}:{% else %}{{ ': ' }}{% endif %}"
    "{% for part in message.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% elif part.type == 'image' %}<image>{% endif %}"
    "{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


def build_smolvlm(path: Path) -> Path:
    """SmolVLM2, tiles of 64 pixels, 4 tokens each, images enlarged to 128 pixels."""
    from transformers import SmolVLMImageProcessor, SmolVLMProcessor, SmolVLMVideoProcessor

    config, tokenizer = _idefics("smolvlm", SMOLVLM_TOKENS, "<|im_end|>")
    image = SmolVLMImageProcessor(size={"longest_edge": 128}, max_image_size={"longest_edge": 64})
    video = SmolVLMVideoProcessor(size={"longest_edge": 64}, max_image_size={"longest_edge": 64})
    processor = SmolVLMProcessor(image, tokenizer, video, image_seq_len=4, chat_template=SMOLVLM_TEMPLATE)
    return write_model(path, config, processor, seed=0)


IDEFICS3_TOKENS = ("<|begin_of_text|>", "<|end_of_text|>", *SMOLVLM_TOKENS[3:])
IDEFICS3_TEMPLATE = SMOLVLM_TEMPLATE.replace("<|im_start|>", "<|begin_of_text|>")


def build_idefics3(path: Path) -> Path:
    """Idefics 3, with images as SmolVLM has them."""
    from transformers import Idefics3ImageProcessor, Idefics3Processor

    config, tokenizer = _idefics("idefics3", IDEFICS3_TOKENS, "<|end_of_text|>")
    image = Idefics3ImageProcessor(size={"longest_edge": 128}, max_image_size={"longest_edge": 64})
    processor = Idefics3Processor(image, tokenizer, image_seq_len=4, chat_template=IDEFICS3_TEMPLATE)
    return write_model(path, config, processor, seed=0)


def _idefics(model_type: str, tokens: Sequence[str], pad_token: str) -> tuple[Any, Any]:
    """Config and tokenizer of SmolVLM and Idefics 3."""
    tokenizer = train_tokenizer(
        CORPUS, 384, tokens, eos_token="<end_of_utterance>", pad_token=pad_token,
        model_specific_special_tokens={
            "fake_image_token": "<fake_token_around_image>",
            "image_token": "<image>",
            "end_of_utterance_token": "<end_of_utterance>",
            "global_image_token": "<global-img>",
        },
    )  # fmt: skip
    config = family_model_config(
        model_type,
        text_config={
            "model_type": "llama",
            **text_config(tokenizer, tie_word_embeddings=False),
            "head_dim": 32,
        },
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 64,
            "patch_size": 8,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=4,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    return config, tokenizer
