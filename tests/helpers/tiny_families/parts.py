"""What the tiny families share: corpus, tokenizers and configs a few numbers wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlrl.model.tiny import train_tokenizer

CORPUS = ("Compare the two images, then answer: which is larger, 12 or 3?\n",) * 4

NUM_LAYERS = 2


def family_model_config(model_type: str, **fields: Any) -> Any:
    """The config of a model type in float32."""
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type](dtype="float32", **fields)


def chatml_tokenizer(special_tokens: Sequence[str], **options: Any) -> Any:
    """A byte-level tokenizer whose turns end with <|im_end|>."""
    return train_tokenizer(
        CORPUS, 384, special_tokens, eos_token="<|im_end|>", pad_token="<|endoftext|>", **options
    )


def llama_tokenizer(special_tokens: Sequence[str]) -> Any:
    """A tokenizer of the SentencePiece kind, as Llama 2's: <s> and a blank before every text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    known = [*special_tokens, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=384, special_tokens=known, show_progress=False)
    )
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        additional_special_tokens=["<image>"],
    )


def text_config(tokenizer: Any, *, tie_word_embeddings: bool) -> dict[str, Any]:
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


def tower_config(*, image_size: int, patch_size: int) -> dict[str, Any]:
    """A vision tower 64 wide."""
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": image_size,
        "patch_size": patch_size,
    }


def siglip_config(*, image_size: int, patch_size: int) -> dict[str, Any]:
    """The same as a SigLIP without the head that pools."""
    tower = tower_config(image_size=image_size, patch_size=patch_size)
    return {**tower, "model_type": "siglip_vision_model", "vision_use_head": False}
