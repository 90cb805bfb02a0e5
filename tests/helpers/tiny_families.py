"""A tiny random model of every family vlrl knows: real architecture, real processor, published prompt format.

Each builder writes a folder that transformers and vLLM load like a hub model. The weights are random and
under three million; an image stays a few dozen tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vlrl.model.tiny import SPECIAL_TOKENS as QWEN_TOKENS
from vlrl.model.tiny import build_tiny_qwen_vl, train_tokenizer, write_model

CORPUS = ("Compare the two images, then answer: which is larger, 12 or 3?\n",) * 4

NUM_LAYERS = 2


def build_qwen2_vl(path: Path) -> Path:
    """Qwen2-VL: like Qwen2.5-VL, but a vision tower without windows."""
    return build_tiny_qwen_vl("qwen2_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen2_5_vl(path: Path) -> Path:
    """Qwen2.5-VL."""
    return build_tiny_qwen_vl("qwen2_5_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_vl(path: Path) -> Path:
    """Qwen3-VL: 16-pixel patches, deepstack, interleaved rotary positions, timestamps in the prompt."""
    return build_tiny_qwen_vl("qwen3_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_vl_moe(path: Path) -> Path:
    """Qwen3-VL with 4 experts of which 2 answer."""
    return build_tiny_qwen_vl("qwen3_vl_moe", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_5(path: Path) -> Path:
    """Qwen3.5: a gated delta rule in one layer of two, and of the next one's heads a quarter is rotated."""
    return build_tiny_qwen_vl("qwen3_5", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_5_moe(path: Path) -> Path:
    """Qwen3.5 with 4 experts of which 2 answer, and one that always does."""
    return build_tiny_qwen_vl("qwen3_5_moe", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


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


def build_internvl(path: Path) -> Path:
    """InternVL3 in Hugging Face format, tiles of 56 pixels, at most 4 of them."""
    from transformers import GotOcr2ImageProcessor, InternVLProcessor, InternVLVideoProcessor

    tile = {"height": 56, "width": 56}
    tokenizer = _chatml_tokenizer(
        INTERNVL_TOKENS,
        model_specific_special_tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
    )
    config = _config(
        "internvl",
        text_config={"model_type": "qwen2", **_text(tokenizer, tie_word_embeddings=False)},
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
    config = _config(
        model_type,
        text_config={"model_type": "llama", **_text(tokenizer, tie_word_embeddings=False), "head_dim": 32},
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


# GLM-4.1V: headers without an end, images in brackets, four patches of 8 pixels a token.

GLM4V_TOKENS = (
    "<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
    "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|image|>",
    "<|video|>",
)  # fmt: skip
GLM4V_TEMPLATE = (
    "[gMASK]<sop>{% for message in messages %}"
    "<|{{ 'observation' if message.role == 'tool' else message.role }}|>\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<|begin_of_image|><|image|><|end_of_image|>"
    "{% elif part.type == 'video' %}<|begin_of_video|><|video|><|end_of_video|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def build_glm4v(path: Path, version: str = "Glm4v") -> Path:
    """GLM-4.1V; as "Glm46V" with the processor of GLM-4.6V-Flash."""
    import transformers

    tokenizer = train_tokenizer(CORPUS, 384, GLM4V_TOKENS, eos_token="<|user|>", pad_token="<|endoftext|>")
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in GLM4V_TOKENS}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = _config(
        "glm4v",
        text_config={
            **_text(tokenizer, tie_word_embeddings=False),
            "rope_parameters": {**rope, "mrope_section": [2, 3, 3]},
            "attention_bias": True,  # vLLM goes by it; transformers' has biases all the same
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "num_heads": 4,
            "image_size": 64,
            "patch_size": 8,
            "out_hidden_size": 128,
            "intermediate_size": 128,
        },
        image_token_id=ids["<|image|>"],
        video_token_id=ids["<|video|>"],
        image_start_token_id=ids["<|begin_of_image|>"],
        image_end_token_id=ids["<|end_of_image|>"],
        video_start_token_id=ids["<|begin_of_video|>"],
        video_end_token_id=ids["<|end_of_video|>"],
        tie_word_embeddings=False,
    )
    whole, image, video = (
        getattr(transformers, version + part) for part in ("Processor", "ImageProcessor", "VideoProcessor")
    )
    limits = {"patch_size": 8, "size": {"shortest_edge": 2 * 16**2, "longest_edge": 2 * 160**2}}
    processor = whole(image(**limits), tokenizer, video(**limits), chat_template=GLM4V_TEMPLATE)
    return write_model(path, config, processor, seed=0)


# Mistral Small 3.1: turns in brackets, rows of patches that end with tokens of their own.

MISTRAL3_TOKENS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[IMG]",
    "[IMG_BREAK]", "[IMG_END]", "<pad>",
)  # fmt: skip
MISTRAL3_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% set name = {'system': 'SYSTEM_PROMPT', 'user': 'INST'}.get(message.role) %}"
    "{% if name %}[{{ name }}]{% endif %}"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}[IMG]{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{% if name %}[/{{ name }}]{% else %}{{ eos_token }}{% endif %}{% endfor %}"
)


def build_mistral3(path: Path) -> Path:
    """Mistral Small 3.1: patches of 8 pixels, four of them a token, images of up to 160 pixels."""
    from transformers import PixtralImageProcessor, PixtralProcessor

    tokenizer = train_tokenizer(
        CORPUS, 384, MISTRAL3_TOKENS, eos_token="</s>", pad_token="<pad>", bos_token="<s>"
    )
    config = _config(
        "mistral3",
        text_config={
            "model_type": "mistral",
            **_text(tokenizer, tie_word_embeddings=False),
            "head_dim": 32,
            "sliding_window": None,
        },
        vision_config={
            "model_type": "pixtral",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "head_dim": 16,
            "image_size": 160,
            "patch_size": 8,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=2,
        tie_word_embeddings=False,
    )
    processor = PixtralProcessor(
        PixtralImageProcessor(size={"longest_edge": 160}, patch_size={"height": 8, "width": 8}),
        tokenizer,
        patch_size=8,
        spatial_merge_size=2,
        chat_template=MISTRAL3_TEMPLATE,
    )
    return write_model(path, config, processor, seed=0)


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
    tokenizer = _chatml_tokenizer(ONEVISION_TOKENS)
    config = _config(
        "llava_onevision",
        text_config={"model_type": "qwen2", **_text(tokenizer, tie_word_embeddings=False)},
        vision_config=_siglip(image_size=56, patch_size=14),
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
    config = _config(
        "gemma3",
        text_config={
            **_text(tokenizer, tie_word_embeddings=True),
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": 32,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        vision_config=_siglip(image_size=56, patch_size=7),
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


BUILDERS: dict[str, Callable[[Path], Path]] = {
    "qwen2_vl": build_qwen2_vl,
    "qwen2_5_vl": build_qwen2_5_vl,
    "qwen3_vl": build_qwen3_vl,
    "qwen3_vl_moe": build_qwen3_vl_moe,
    "qwen3_5": build_qwen3_5,
    "qwen3_5_moe": build_qwen3_5_moe,
    "glm4v": build_glm4v,
    "internvl": build_internvl,
    "smolvlm": build_smolvlm,
    "idefics3": build_idefics3,
    "mistral3": build_mistral3,
    "llava_onevision": build_llava_onevision,
    "gemma3": build_gemma3,
}
"""A model type's tiny model."""


def _config(model_type: str, **fields: Any) -> Any:
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type](dtype="float32", **fields)


def _chatml_tokenizer(special_tokens: Sequence[str], **options: Any) -> Any:
    return train_tokenizer(
        CORPUS, 384, special_tokens, eos_token="<|im_end|>", pad_token="<|endoftext|>", **options
    )


def _text(tokenizer: Any, *, tie_word_embeddings: bool) -> dict[str, Any]:
    """A language model 128 wide."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": NUM_LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": tie_word_embeddings,
    }


def _siglip(*, image_size: int, patch_size: int) -> dict[str, Any]:
    return {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": image_size,
        "patch_size": patch_size,
        "vision_use_head": False,
    }
