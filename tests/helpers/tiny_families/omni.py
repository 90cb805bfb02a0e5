"""Tiny models that hear: Qwen2.5-Omni's thinker, in the folder of a whole Omni model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_families.parts import CORPUS, NUM_LAYERS
from vlrl.model.tiny import train_tokenizer

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_bos|>", "<|vision_eos|>", "<|vision_pad|>",
    "<|IMAGE|>", "<|VIDEO|>",
)  # fmt: skip
NAMED = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
# The published template in short.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_bos|><|IMAGE|><|vision_eos|>"
    "{% elif content['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{% elif content['type'] == 'video' %}<|vision_bos|><|VIDEO|><|vision_eos|>"
    "{% else %}{{ content['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_qwen2_5_omni(path: Path) -> Path:
    """Qwen2.5-Omni without its talker: two layers of each tower and of the language model, 128 wide."""
    import torch
    import transformers
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tokenizer = train_tokenizer(
        CORPUS,
        384,
        SPECIAL_TOKENS,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_specific_special_tokens=NAMED,
    )
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    config = transformers.Qwen2_5OmniConfig(
        thinker_config=_thinker(len(tokenizer), ids), enable_audio_output=False, dtype="float32"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.Qwen2_5OmniForConditionalGeneration(config)
        for weight in model.thinker.audio_tower.parameters():
            if weight.ndim > 1:
                weight.data *= 5  # else all sounds are nearly alike
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=ids["<|im_end|>"], pad_token_id=ids["<|endoftext|>"]
    )
    model.save_pretrained(path)
    transformers.Qwen2_5OmniProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(),
        video_processor=transformers.Qwen2VLVideoProcessor(),
        # As published, 300 s; transformers' own default is 30.
        feature_extractor=transformers.WhisperFeatureExtractor(
            feature_size=16, chunk_length=300, return_attention_mask=True
        ),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(path)
    return path


def _thinker(vocab_size: int, ids: dict[str, int]) -> dict[str, Any]:
    return {
        "text_config": {
            "vocab_size": vocab_size,
            "hidden_size": 128,
            "intermediate_size": 256,
            "num_hidden_layers": NUM_LAYERS,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "max_window_layers": NUM_LAYERS,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
            "tie_word_embeddings": False,
        },
        "vision_config": {
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "out_hidden_size": 128,
            "fullatt_block_indexes": [1],
        },
        "audio_config": {
            "num_mel_bins": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 128,
            "d_model": 64,
            "output_dim": 128,
        },
        "image_token_index": ids["<|IMAGE|>"],
        "video_token_index": ids["<|VIDEO|>"],
        "audio_token_index": ids["<|AUDIO|>"],
        "audio_start_token_id": ids["<|audio_bos|>"],
        "audio_end_token_id": ids["<|audio_eos|>"],
        "vision_start_token_id": ids["<|vision_bos|>"],
        "vision_end_token_id": ids["<|vision_eos|>"],
    }
