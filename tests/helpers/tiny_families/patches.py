"""Tiny models whose images keep their shape, in patches: GLM-4.1V, Mistral Small 3.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_families.parts import CORPUS, family_model_config, text_config
from vlrl.model.tiny import train_tokenizer, write_model

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
    return _glm("glm4v", version, path)


def build_glm4v_moe(path: Path, version: str = "Glm4v") -> Path:
    """GLM-4.5V: a plain layer, then four experts of which two answer, and one that always does.

    As "Glm46V" with the processor of GLM-4.6V. The correction bias, which transformers begins at zero, is
    random, as wide as the scores that it corrects, and not exact in bfloat16: one that is lost is seen.
    """
    import torch
    from safetensors.torch import load_file, save_file

    experts = {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_shared_experts": 1,
        "moe_intermediate_size": 96,
        "first_k_dense_replace": 1,
        "head_dim": 32,
        "use_qk_norm": False,
    }
    _glm("glm4v_moe", version, path, **experts)
    weights, generator = load_file(path / "model.safetensors"), torch.Generator().manual_seed(0)
    for name in sorted(weights):
        if name.endswith("e_score_correction_bias"):
            weights[name] = torch.randn(weights[name].shape, generator=generator) / 20
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path


def _glm(model_type: str, version: str, path: Path, **text: Any) -> Path:
    import transformers

    tokenizer = train_tokenizer(CORPUS, 384, GLM4V_TOKENS, eos_token="<|user|>", pad_token="<|endoftext|>")
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in GLM4V_TOKENS}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = family_model_config(
        model_type,
        text_config={
            **text_config(tokenizer, tie_word_embeddings=False),
            "rope_parameters": {**rope, "mrope_section": [2, 3, 3]},
            "attention_bias": True,  # vLLM goes by it; transformers' dense one has biases all the same
            **text,
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
    config = family_model_config(
        "mistral3",
        text_config={
            "model_type": "mistral",
            **text_config(tokenizer, tie_word_embeddings=False),
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
