"""Qwen2-VL and Qwen2.5-VL: ChatML, one pad per medium, 28-pixel patches, multimodal rotary positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlrl.errors import ConfigError, DataError
from vlrl.processors.media import resolve_image
from vlrl.types import FloatArray, IntArray, Media, Prompt, Row, Sample

if TYPE_CHECKING:
    from vlrl.config import Config
    from vlrl.session import Session

MEDIA_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
PICTURE_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
"""Those the template writes, once each for a picture."""


class QwenVLProcessor:
    """Wraps the model's own tokenizer, template and image processor; see `vlrl.protocols.Processor`."""

    def __init__(self, config: Config) -> None:
        from transformers import AutoProcessor

        try:
            self._hf = AutoProcessor.from_pretrained(config.model.path)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"model.path={config.model.path!r}: no processor found ({error}); "
                "give a folder in Hugging Face format or a hub name"
            ) from error
        self._tokenizer = self._hf.tokenizer
        self._min_pixels = config.processor.min_pixels
        self._max_pixels = config.processor.max_pixels
        image = self._hf.image_processor
        self._patch_size, self._merge_size = int(image.patch_size), int(image.merge_size)
        self._image_pad = self._id("<|image_pad|>")
        self._end_of_turn = self._id("<|im_end|>")
        self.stop_token_ids = (self._end_of_turn, self._id("<|endoftext|>"))
        self.banned_token_ids = tuple(self._id(token) for token in MEDIA_TOKENS)

    def sample(self, row: Row) -> Sample:
        """Resolve a row's pictures and render its prompt; see the protocol."""
        where = f"sample {row.get('id', '?')!r}"
        if "id" not in row or not row.get("messages"):
            raise DataError(f"{where}: a row needs 'id' and a non-empty 'messages'")
        messages, media = self._resolve(row["messages"], where)
        return Sample(
            id=str(row["id"]),
            messages=messages,
            media=media,
            prompt=self._encode(messages, media, where),
            answer=row.get("answer"),
            target=row.get("target"),
            metadata=row.get("metadata", {}),
        )

    def encode(self, messages: Sequence[Mapping[str, Any]], media: Sequence[Media]) -> Prompt:
        """Render a conversation that ends where the assistant is to speak."""
        return self._encode(messages, media, "prompt")

    def encode_target(self, text: str) -> IntArray:
        """Tokens of an assistant's turn with its <|im_end|>: [num_tokens] int64."""
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        return np.asarray([*ids, self._end_of_turn], dtype=np.int64)

    def decode(self, token_ids: IntArray) -> str:
        """Text of drawn tokens, special tokens left out."""
        return str(self._tokenizer.decode(token_ids.tolist(), skip_special_tokens=True))

    def token_texts(self, token_ids: IntArray) -> list[str]:
        """Each token's own text, special tokens shown."""
        return [self._tokenizer.decode([i], skip_special_tokens=False) for i in token_ids.tolist()]

    def extend(self, session: Session, text: str, media: Sequence[Media]) -> None:
        """Append a user's observation and the opening of the next assistant turn.

        The delta is what the template itself writes between an assistant's turn and the next one, so the
        ledger equals the rendered conversation as long as the template only appends.

        Raises:
            DataError: if the template rewrites earlier turns.
        """
        user = {
            "role": "user",
            "content": [{"type": "image"} for _ in media] + [{"type": "text", "text": text}],
        }
        before = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        head = self._render(before, add_generation_prompt=False)
        full = self._render([*before, user], add_generation_prompt=True)
        if not full.startswith(head):
            raise DataError(f"sample {session.sample.id!r}: the chat template rewrites earlier turns")
        close = head[head.rindex("!") + 1 :]  # <|im_end|> and what follows it
        ended = bool(session.token_ids) and session.token_ids[-1] == self._end_of_turn
        delta = (close.removeprefix("<|im_end|>") if ended else close) + full[len(head) :]
        prompt = self._tokenize(delta, media, f"sample {session.sample.id!r}", session.next_position)
        session.append_observation(prompt, media)

    def pixels(self, media: Sequence[Media]) -> tuple[FloatArray, IntArray]:
        """pixel_values [num_patches, 3·2·patch²] float32 and grid_thw [num_media, 3] int64."""
        if not media:
            dim = 3 * 2 * self._patch_size**2
            return np.zeros((0, dim), np.float32), np.zeros((0, 3), np.int64)
        pictures = [np.array(m.frames[0]) for m in media]  # torch wants writable memory
        out = self._hf.image_processor(
            images=pictures, do_resize=False, return_tensors="pt", input_data_format="channels_last"
        )
        return out["pixel_values"].numpy(), out["image_grid_thw"].numpy()

    def save(self, folder: Path) -> None:
        """Write tokenizer, template and image settings beside a model's weights."""
        self._hf.save_pretrained(folder)

    def _resolve(
        self, messages: Sequence[Mapping[str, Any]], where: str
    ) -> tuple[tuple[Mapping[str, Any], ...], tuple[Media, ...]]:
        media: list[Media] = []
        resolved = []
        for message in messages:
            try:
                role, content = message["role"], message["content"]
                if not isinstance(content, str):
                    content = [self._part(part, media, where) for part in content]
            except (KeyError, TypeError) as error:
                raise DataError(
                    f"{where}: {type(error).__name__} {error} in a message; it needs 'role' and 'content', "
                    "a string or a list of {'type': 'text', 'text': …} and {'type': 'image', 'image': …}"
                ) from error
            resolved.append({"role": role, "content": content})
        return tuple(resolved), tuple(media)

    def _part(self, part: Mapping[str, Any], media: list[Media], where: str) -> Mapping[str, Any]:
        """A content part as the template takes it; a picture is resolved into `media`."""
        if part["type"] == "text":
            return {"type": "text", "text": part["text"]}
        if part["type"] != "image":
            raise DataError(f"{where}: part type {part['type']!r} is not one of text, image")
        media.append(
            resolve_image(
                part["image"],
                patch_size=self._patch_size,
                merge_size=self._merge_size,
                min_pixels=self._min_pixels,
                max_pixels=self._max_pixels,
                where=where,
            )
        )
        return {"type": "image"}

    def _encode(self, messages: Sequence[Mapping[str, Any]], media: Sequence[Media], where: str) -> Prompt:
        return self._tokenize(self._render(messages, add_generation_prompt=True), media, where, 0)

    def _render(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
        return str(
            self._hf.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )

    def _tokenize(self, text: str, media: Sequence[Media], where: str, position: int) -> Prompt:
        """Tokens of rendered text, pads expanded, positions going on from `position`."""
        engine_ids = np.asarray(self._tokenizer.encode(text, add_special_tokens=False), dtype=np.int64)
        for token, token_id in zip(MEDIA_TOKENS, self.banned_token_ids, strict=True):
            found = int((engine_ids == token_id).sum())
            if found != (len(media) if token in PICTURE_TOKENS else 0):
                raise DataError(
                    f"{where}: the prompt holds {found} {token} for {len(media)} pictures; "
                    "text must not contain the model's special tokens"
                )
        counts = np.ones(engine_ids.size, dtype=np.int64)
        counts[engine_ids == self._image_pad] = [m.num_tokens for m in media]
        token_ids = np.repeat(engine_ids, counts)
        position_ids, next_position = self._positions(engine_ids, media, position)
        return Prompt(token_ids, engine_ids, position_ids, next_position)

    def _positions(self, engine_ids: IntArray, media: Sequence[Media], position: int) -> tuple[IntArray, int]:
        """Multimodal rotary positions (Qwen2-VL, arXiv 2409.12191 §2.1): [3, num_tokens] int64.

        Text advances all three rows by one a token; a picture keeps time still, counts height and width
        over its merged grid, and advances what follows by the larger side.
        """
        pieces, start = [], 0
        for pad, medium in zip(np.flatnonzero(engine_ids == self._image_pad), media, strict=True):
            pieces.append(np.tile(np.arange(position, position + pad - start), (3, 1)))
            position += int(pad) - start
            time, height, width = medium.grid_thw
            height, width = height // self._merge_size, width // self._merge_size
            grid = np.stack(np.meshgrid(np.arange(time), np.arange(height), np.arange(width), indexing="ij"))
            grid[0] = 0
            pieces.append(grid.reshape(3, -1) + position)
            position += max(height, width)
            start = int(pad) + 1
        pieces.append(np.tile(np.arange(position, position + engine_ids.size - start), (3, 1)))
        return np.concatenate(pieces, axis=1).astype(np.int64), position + engine_ids.size - start

    def _id(self, token: str) -> int:
        token_id = self._tokenizer.convert_tokens_to_ids(token)
        if token_id is None or token_id == self._tokenizer.unk_token_id:
            raise ConfigError(f"the model's tokenizer lacks {token}, which every Qwen-VL has")
        return int(token_id)
