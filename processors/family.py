"""What every model family shares: rows to prompts in both forms, around transformers' own processor.

A family is a subclass of a few lines. It says how large a picture may be (`fit`), what its patch or tile grid
is (`grid`), which text its placeholder stands for (`expand`) and what its vision tower takes (`pixels`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.errors import ConfigError, DataError
from vlrl.processors.coordinates import FAMILY_FRAMES
from vlrl.processors.media_store import MediaStore
from vlrl.processors.messages import media_parts, message_of, split_parts, text_of
from vlrl.processors.mrope import text_positions
from vlrl.processors.plan import MediaPlan, plan_media, resolve_media
from vlrl.types import IntArray, Media, MediaShape, Prompt, ReferenceTurn, Row, Sample

if TYPE_CHECKING:
    from vlrl.config import Config
    from vlrl.session import Session

BLANK_SIDE_PIXELS = 112
"""Side of the picture that stands in where a micro-batch has none."""


class FamilyProcessor(ABC):
    """A `vlrl.protocols.Processor` in terms of a few properties of the model's family."""

    end_of_turn: str
    """The token that ends an assistant's turn."""
    end_tokens: tuple[str, ...] = ()
    """Other tokens that end what the assistant says."""
    answer_prefix: str = ""
    """What the template writes between an assistant's opening and what it says; the policy draws it."""
    media_tokens: tuple[str, ...]
    """Tokens that only a medium may put into a prompt: refused in text, and never sampled."""
    text_tokens: tuple[str, ...] = ()
    """Special tokens that text may hold, such as the marks around a box."""
    frame_multiple: int = 1
    """Frames of a video are a multiple of this."""
    takes_video: bool = False

    def __init__(self, config: Config) -> None:
        from transformers import AutoConfig, AutoProcessor

        path, remote = config.model.path, config.processor.trust_remote_code
        try:
            self._hf: Any = AutoProcessor.from_pretrained(path, trust_remote_code=remote)
            self._model_config: Any = AutoConfig.from_pretrained(path, trust_remote_code=remote)
        except (OSError, ValueError, ImportError) as error:
            raise ConfigError(
                f"model.path={path!r}: no processor found ({error}); "
                "give a folder in Hugging Face format or a hub name"
            ) from error
        self.config = config.processor
        self.store = MediaStore(config.media)
        self._tokenizer = self._hf.tokenizer
        self._end_of_turn = self._id(self.end_of_turn)
        self.stop_token_ids = (self._end_of_turn, *(self._id(token) for token in self.end_tokens))
        self.banned_token_ids = tuple(self._id(token) for token in self.media_tokens)
        self._placeholders = {"image": self._id(self._hf.image_token)}
        if self.takes_video:
            self._placeholders["video"] = self._id(self._hf.video_token)
        special = {*self._tokenizer.all_special_tokens, *self.media_tokens} - {*self.text_tokens}
        self._special = re.compile("|".join(re.escape(token) for token in sorted(special)))
        self._expansion = lru_cache(maxsize=4096)(self._expand_ids)

    # What a family says of itself.

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """What vLLM passes to its own copy of transformers' processor, so that it changes nothing."""
        return {}

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """(height, width) of a picture as the model sees it; fitting it again must change nothing.

        Raises:
            ValueError: if there is no such size.
        """
        scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
        return max(1, int(height * scale)), max(1, int(width * scale))

    @abstractmethod
    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """See Media.grid_thw."""

    @abstractmethod
    def expand(self, shape: MediaShape) -> str:
        """The text that a medium's placeholder stands for."""

    @abstractmethod
    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """The vision tower's input; see the protocol."""

    def positions(
        self, token_ids: IntArray, shapes: Sequence[MediaShape], start: int
    ) -> tuple[IntArray, int]:
        """([3, num_tokens] int64 positions of expanded tokens, the position that follows)."""
        return text_positions(len(token_ids), start), start + len(token_ids)

    # The protocol.

    def sample(self, row: Row) -> Sample:
        """Resolve a row's media and render its prompt; see the protocol."""
        messages, plans, where = self._planned(row)
        prompt = self._encode(messages, [plan.shape for plan in plans], where)
        return Sample(
            id=str(row["id"]),
            messages=messages,
            media=tuple(self._resolve(plan, where) for plan in plans),
            prompt=prompt,
            answer=row.get("answer"),
            target=self._checked(row.get("target"), where),
            source=str(row.get("source", "")),
            metadata=row.get("metadata", {}),
        )

    def num_tokens(self, row: Row) -> int:
        """Prompt tokens of a row, told from its media's headers; nothing is decoded."""
        messages, plans, where = self._planned(row)
        return len(self._encode(messages, [plan.shape for plan in plans], where).token_ids)

    def encode(self, messages: Sequence[Mapping[str, Any]], media: Sequence[Media]) -> Prompt:
        """Render a conversation that ends where the assistant is to speak."""
        return self._encode(messages, [m.shape for m in media], "prompt")

    def encode_target(self, text: str) -> IntArray:
        """Tokens of an assistant's turn and the token that ends it: [num_tokens] int64."""
        ids = self._tokenizer.encode(self.answer_prefix + text, add_special_tokens=False)
        return np.asarray([*ids, self._end_of_turn], dtype=np.int64)

    def decode(self, token_ids: IntArray) -> str:
        """Text of drawn tokens without the one that ends the turn; other special tokens are shown."""
        ids = token_ids.tolist()
        if ids and ids[-1] in self.stop_token_ids:
            ids = ids[:-1]
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

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
        where = f"sample {session.sample.id!r}"
        parts = [{"type": m.kind} for m in media] + [{"type": "text", "text": self._checked(text, where)}]
        before = [message_of("user", "?"), message_of("assistant", "!")]
        head = self._render(before, add_generation_prompt=False)
        full = self._render([*before, {"role": "user", "content": parts}], add_generation_prompt=True)
        if not full.startswith(head):
            raise DataError(f"{where}: the chat template rewrites earlier turns")
        close = head[head.rindex("!") + 1 :]  # the end of the turn and what follows it
        ended = bool(session.token_ids) and session.token_ids[-1] == self._end_of_turn
        delta = (close.removeprefix(self.end_of_turn) if ended else close) + full[len(head) :]
        prompt = self._tokenize(delta, [m.shape for m in media], where, session.next_position)
        session.append_observation(prompt, media)

    def reference_turns(self, sample: Sample) -> list[ReferenceTurn]:
        """The assistant's turns of a sample, its target last; see the protocol."""
        where = f"sample {sample.id!r}"
        messages = [*sample.messages, message_of("assistant", sample.target or "")]
        turns: list[ReferenceTurn] = []
        media, position, start, written = list(sample.media), 0, 0, ""
        for index, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            opened = self._render(messages[:index], add_generation_prompt=True)
            if not opened.startswith(written):
                raise DataError(
                    f"{where}: the chat template rewrites earlier turns; set sft.train_on=last to train on "
                    "the last turn alone"
                )
            count = sum(len(media_parts(m)) for m in messages[start:index])
            shapes = [m.shape for m in media[:count]]
            context = self._tokenize(opened[len(written) :], shapes, where, position)
            action_ids = self.encode_target(text_of(message))
            turns.append(ReferenceTurn(context, tuple(media[:count]), action_ids))
            media, position, start = media[count:], context.next_position + len(action_ids), index
            written = opened + self.answer_prefix + text_of(message) + self.end_of_turn
        return turns

    def save(self, folder: Path) -> None:
        """Write tokenizer, template and image settings beside a model's weights."""
        self._hf.save_pretrained(folder)

    # How.

    def _planned(self, row: Row) -> tuple[tuple[Mapping[str, Any], ...], list[MediaPlan], str]:
        where = f"sample {row.get('id', '?')!r}"
        if "id" not in row or not row.get("messages"):
            raise DataError(f"{where}: a row needs 'id' and a non-empty 'messages'")
        messages, parts = split_parts(row["messages"], where)
        for message in messages:
            self._checked(text_of(message), where)
        if not self.takes_video and any(part["type"] == "video" for part in parts):
            raise DataError(f"{where}: {type(self).__name__} takes no video; give its frames as pictures")
        plans = plan_media(parts, self.store, self.config, self.fit, self.frame_multiple, where)
        return messages, plans, where

    def _resolve(self, plan: MediaPlan, where: str) -> Media:
        frame = FAMILY_FRAMES.get(self._model_config.model_type, "")
        tokens = len(self._expansion(plan.shape))
        return resolve_media(plan, self.store, self.grid(plan.shape), tokens, frame, where)

    def _encode(
        self, messages: Sequence[Mapping[str, Any]], shapes: Sequence[MediaShape], where: str
    ) -> Prompt:
        return self._tokenize(self._render(messages, add_generation_prompt=True), shapes, where, 0)

    def _render(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
        return str(
            self._hf.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )

    def _tokenize(self, text: str, shapes: Sequence[MediaShape], where: str, position: int) -> Prompt:
        """Tokens of rendered text, placeholders expanded, positions going on from `position`."""
        engine_ids = np.asarray(self._tokenizer.encode(text, add_special_tokens=False), dtype=np.int64)
        places = np.flatnonzero(np.isin(engine_ids, list(self._placeholders.values())))
        wanted = [self._placeholders[shape.kind] for shape in shapes]
        if engine_ids[places].tolist() != wanted:
            raise DataError(
                f"{where}: the chat template wrote {len(places)} placeholders for {len(shapes)} media, or in "
                "another order; does it know image and video parts?"
            )
        pieces, cursor = [], 0
        for place, shape in zip(places, shapes, strict=True):
            pieces += [engine_ids[cursor:place], self._expansion(shape)]
            cursor = int(place) + 1
        token_ids = np.concatenate([*pieces, engine_ids[cursor:]])
        position_ids, next_position = self.positions(token_ids, shapes, position)
        return Prompt(token_ids, engine_ids, position_ids, next_position)

    def _expand_ids(self, shape: MediaShape) -> IntArray:
        ids = self._tokenizer.encode(self.expand(shape), add_special_tokens=False)
        return np.asarray(ids, dtype=np.int64)

    def _checked(self, text: Any, where: str) -> Any:
        """The text, if it holds none of the model's special tokens."""
        if isinstance(text, str) and (found := self._special.search(text)):
            raise DataError(
                f"{where}: text must not contain the model's special tokens, one is {found.group()!r}; "
                "media are given as parts of a message, turns as messages"
            )
        return text

    def _blank(self) -> Media:
        """A black picture, for a micro-batch that has none."""
        size = self.fit(BLANK_SIDE_PIXELS, BLANK_SIDE_PIXELS, self.config.min_pixels, self.config.max_pixels)
        shape = MediaShape("image", size)
        frames = np.zeros((1, *size, 3), np.uint8)
        return Media("image", "blank", frames, size, self.grid(shape), len(self._expansion(shape)))

    def _id(self, token: str) -> int:
        token_id = self._tokenizer.convert_tokens_to_ids(token)
        if token_id is None or token_id == self._tokenizer.unk_token_id:
            raise ConfigError(
                f"the model's tokenizer lacks {token}, which every model of {type(self).__name__} has"
            )
        return int(token_id)
