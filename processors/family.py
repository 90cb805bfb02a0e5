"""What every model family shares: rows to prompts in both forms, around transformers' own processor.

A family is a subclass of a few lines. It says how large an image may be (`fit`), what its patch or tile grid
is (`grid`), which text its placeholder stands for (`expand`) and what its vision tower takes (`pixels`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.coordinates import FAMILY_FRAMES
from vlrl.errors import ConfigError, DataError
from vlrl.model.structured.forms import form_of
from vlrl.processors.media.audio import Hearing
from vlrl.processors.media.plan import MediaPlan, plan_media, resolve_media
from vlrl.processors.media.store import MediaStore
from vlrl.processors.messages import message_of, split_parts, text_of
from vlrl.processors.prompts.mrope import text_positions
from vlrl.processors.prompts.supervised import supervised_turns
from vlrl.processors.prompts.template import ChatTemplate, TextPieces, without_opened
from vlrl.rollout.session import MediaMessage
from vlrl.types import EnvTask, Generation, IntArray, Media, MediaShape, Prompt, ReferenceTurn, Row, Sample

if TYPE_CHECKING:
    from vlrl.config import Config
    from vlrl.rollout.session import Session

BLANK_SIDE_PIXELS = 112
"""Side of the image that stands in where a micro-batch has none."""


class FamilyProcessor(ABC):
    """A `vlrl.protocols.Processor` in terms of a few properties of the model's family."""

    end_of_turn: str = ""
    """The token that ends an assistant's turn; empty where it follows from the model's own template."""
    end_tokens: tuple[str, ...] = ()
    """Other tokens that end what the assistant says."""
    answer_prefix: str = ""
    """What the template writes between an assistant's opening and what it says; the policy generates it."""
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
        self.config, self.store = config.processor, MediaStore(config.media)
        structured = config.rollout.structured_outputs
        self._form = "" if structured is None else structured.form
        self._tokenizer = self._hf.tokenizer
        self._pieces = TextPieces(self._tokenizer, type(self).__name__)
        special = {*self._tokenizer.all_special_tokens, *self.media_tokens} - {*self.text_tokens}
        self.template = ChatTemplate(self._hf, special)
        self.end_of_turn = self.end_of_turn or self.template.end_of_turn()
        self.stop_token_ids = tuple(map(self._pieces.id_of, (self.end_of_turn, *self.end_tokens)))
        self.banned_token_ids = tuple(map(self._pieces.id_of, self.media_tokens))
        self.hears = self.hearing()
        kinds = ["image", *["video"] * self.takes_video, *["audio"] * (self.hears is not None)]
        self._placeholders = {kind: self._pieces.id_of(getattr(self._hf, f"{kind}_token")) for kind in kinds}
        self._expansion = lru_cache(maxsize=4096)(self._expand_ids)

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """What vLLM passes to its own copy of transformers' processor, so that it changes nothing."""
        return {}

    def hearing(self) -> Hearing | None:
        """What of audio the model takes; None if it does not hear."""
        return None

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """(height, width) of an image as the model sees it; fitting it again must change nothing.

        Raises:
            ValueError: if there is no such size.
        """
        scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
        return max(1, int(height * scale)), max(1, int(width * scale))

    def fit_video(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """The same of a video's frames."""
        return self.fit(height, width, min_pixels, max_pixels)

    @abstractmethod
    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """See Media.grid_thw."""

    @abstractmethod
    def expand(self, shape: MediaShape) -> str:
        """The text that a medium's placeholder stands for."""

    def number(self, index: int) -> str:
        """What the text of a prompt's image, or video, begins with; `index` counts either from 0."""
        return ""

    @abstractmethod
    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """The vision tower's input; see the protocol."""

    def positions(
        self, token_ids: IntArray, shapes: Sequence[MediaShape], start: int
    ) -> tuple[IntArray, int]:
        """([3, num_tokens] int64 positions of expanded tokens, the position that follows)."""
        return text_positions(len(token_ids), start), start + len(token_ids)

    def sample(self, row: Row) -> Sample:
        """Resolve a row's media and render its prompt; see the protocol."""
        messages, plans, where = self._planned(row)
        tools = tuple(row.get("tools") or ())
        return Sample(
            id=str(row["id"]),
            messages=messages,
            prompt=self._encode(messages, [plan.shape for plan in plans], tools, where),
            media=tuple(self._resolve(plan, where) for plan in plans),
            answer=row.get("answer"),
            target=self.template.checked(row.get("target"), where),
            rejected=self.template.checked(row.get("rejected"), where),
            label=row.get("label"),
            source=str(row.get("source", "")),
            env=EnvTask(**row["env"]) if row.get("env") else None,
            tools=tools,
            metadata=row.get("metadata", {}),
            form=form_of(row.get("structured_outputs"), where) or self._form,
        )

    def num_tokens(self, row: Row) -> int:
        """Prompt tokens of a row, counted from its media's headers; nothing is decoded."""
        messages, plans, where = self._planned(row)
        return len(self._encode(messages, [p.shape for p in plans], row.get("tools") or (), where).token_ids)

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        media: Sequence[Media],
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Prompt:
        """Render a conversation that ends where the assistant is to speak."""
        return self._encode(messages, [m.shape for m in media], tools, "prompt")

    def encode_target(self, text: str, opened: str = "", *, closed: bool = False) -> IntArray:
        """Tokens of an assistant's turn and the token that ends it: [num_tokens] int64; see the protocol."""
        ids = self._pieces.encode(self.answer_prefix + without_opened(text, opened))
        end = self._pieces.encode(self.template.closing(self.end_of_turn), self.end_of_turn) if closed else []
        return np.asarray([*ids, self.stop_token_ids[0], *end], dtype=np.int64)

    def decode(self, token_ids: IntArray) -> str:
        """Text of generated tokens without the one that ends the turn; other special tokens are shown."""
        ids = token_ids.tolist()
        return self._pieces.decode(ids[:-1] if ids and ids[-1] in self.stop_token_ids else ids)

    def token_texts(self, token_ids: IntArray) -> list[str]:
        """Each token's own text, special tokens shown."""
        return [self._pieces.decode([i]) for i in token_ids.tolist()]

    def message(self, role: str, parts: Sequence[Mapping[str, Any]], where: str) -> MediaMessage:
        """What an environment says, its media resolved and the model's special tokens in it broken up."""
        plain = [
            {**part, "text": self.template.broken_up(part["text"])} if "text" in part else part
            for part in parts
        ]
        messages, plans, _ = self._planned({"id": where, "messages": [{"role": role, "content": plain}]})
        return MediaMessage(messages[0], tuple(self._resolve(plan, where) for plan in plans))

    def act(self, session: Session, generation: Generation) -> str:
        """Append what was generated to the session and return the whole assistant message."""
        text = session.opened + self.decode(generation.token_ids)
        session.append_action(generation, text, said=text.removeprefix(self.answer_prefix))
        return text

    def show(self, session: Session, seen: Sequence[MediaMessage]) -> None:
        """Bring the ledger to what the policy is to see next; see the protocol."""
        where, tools = f"sample {session.sample.id!r}", session.sample.tools
        spelled = self.template.render([said.message for said in session.shown], tools, opening=True)
        full = self.template.render([said.message for said in seen], tools, opening=True)
        if (last := session.last_turn) is not None and last.action[1] == len(session.token_ids):
            spelled += last.text.removeprefix(self.template.opened(spelled))
            [end] = self.token_texts(np.asarray(session.token_ids[-1:]))
            is_header = end in self.end_tokens and full.startswith(spelled + end)  # GLM's, of a tool's answer
            spelled += end if end == self.end_of_turn or is_header else ""
        media, known = [m for said in seen for m in said.media], [m.sha256 for m in session.media]
        if full.startswith(spelled) and [m.sha256 for m in media[: len(known)]] == known:
            media = media[len(known) :]
            delta = full[len(spelled) :]
            prompt = self._tokenize(delta, [m.shape for m in media], where, session.next_position, full)
            session.append_observation(prompt, media, seen)
        else:
            session.fork(self._tokenize(full, [m.shape for m in media], where, 0), media, seen)

    def reference_turns(self, sample: Sample) -> list[ReferenceTurn]:
        """The assistant's turns of a sample, its target last; see the protocol."""
        messages = [*sample.messages, message_of("assistant", sample.target or "")]
        turns: list[ReferenceTurn] = []
        media, position = list(sample.media), 0
        for turn in supervised_turns(self.template, messages, sample, self.answer_prefix, self.end_of_turn):
            shown, media = media[: turn.num_media], media[turn.num_media :]
            shapes, where = [m.shape for m in shown], f"sample {sample.id!r}"
            context = self._tokenize(turn.added, shapes, where, position, turn.opened)
            action_ids = self.encode_target(turn.said)
            turns.append(ReferenceTurn(context, tuple(shown), action_ids))
            position = context.next_position + len(action_ids)
        return turns

    def save(self, folder: Path) -> None:
        """Write tokenizer, template and image settings beside a model's weights."""
        self._hf.save_pretrained(folder)

    def _planned(self, row: Row) -> tuple[tuple[Mapping[str, Any], ...], list[MediaPlan], str]:
        where = f"sample {row.get('id', '?')!r}"
        if "id" not in row or not row.get("messages"):
            raise DataError(f"{where}: a row needs 'id' and a non-empty 'messages'")
        messages, parts = split_parts(row["messages"], where)
        for message in messages:
            self.template.checked(text_of(message), where)
        if not self.takes_video and any(part["type"] == "video" for part in parts):
            raise DataError(f"{where}: {type(self).__name__} takes no video; give its frames as images")
        if not self.hears and any(part["type"] == "audio" for part in parts):
            raise DataError(f"{where}: {type(self).__name__} takes no audio; docs/families.md says which do")
        sizes = self.fit, self.fit_video, self.frame_multiple, self.hears
        plans = plan_media(parts, self.store, self.config, *sizes, where)
        return messages, plans, where

    def _resolve(self, plan: MediaPlan, where: str) -> Media:
        frame = FAMILY_FRAMES.get(self._model_config.model_type, "")
        tokens = len(self._expansion(plan.shape, self.number(0)))
        return resolve_media(plan, self.store, self.grid(plan.shape), tokens, frame, where)

    def _encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        shapes: Sequence[MediaShape],
        tools: Sequence[Mapping[str, Any]],
        where: str,
    ) -> Prompt:
        return self._tokenize(self.template.render(messages, tools, opening=True), shapes, where, 0)

    def _tokenize(
        self, text: str, shapes: Sequence[MediaShape], where: str, position: int, whole: str = ""
    ) -> Prompt:
        """Tokens of a rendered text, the last part of `whole`; positions go on from `position`."""
        before = whole[: -len(text)]
        engine_ids = np.asarray(self._pieces.encode(text, self.end_of_turn if before else ""), np.int64)
        places = np.flatnonzero(self.is_placeholder(engine_ids))
        wanted = [self._placeholders[shape.kind] for shape in shapes]
        if engine_ids[places].tolist() != wanted:
            raise DataError(
                f"{where}: the chat template wrote {len(places)} placeholders for {len(shapes)} media, or in "
                "another order; does it know image and video parts?"
            )
        pieces, starts, cursor = [], [], 0
        numbers = {k: count(before.count(getattr(self._hf, f"{k}_token"))) for k in self._placeholders}
        for place, shape in zip(places, shapes, strict=True):
            number = self.number(next(numbers[shape.kind]))
            pieces += [engine_ids[cursor:place], self._expansion(shape, number)]
            starts.append(sum(map(len, pieces[:-1])))
            cursor = int(place) + 1
        token_ids = np.concatenate([*pieces, engine_ids[cursor:]])
        position_ids, next_position = self.positions(token_ids, shapes, position)
        opened = self.template.opened(whole or text)
        return Prompt(token_ids, engine_ids, position_ids, next_position, tuple(starts), opened)

    def is_placeholder(self, token_ids: IntArray) -> npt.NDArray[np.bool_]:
        """Which tokens stand for a medium; quicker than np.isin."""
        return np.any([token_ids == i for i in self._placeholders.values()], axis=0)  # type: ignore[no-any-return]

    def _expand_ids(self, shape: MediaShape, number: str) -> IntArray:
        return np.asarray(self._pieces.encode(number + self.expand(shape)), np.int64)

    def _blank(self) -> Media:
        """A black image, for a micro-batch that has none; it stands in no prompt."""
        size = self.fit(BLANK_SIDE_PIXELS, BLANK_SIDE_PIXELS, self.config.min_pixels, self.config.max_pixels)
        grid = self.grid(MediaShape("image", size))
        return Media("image", "blank", np.zeros((1, *size, 3), np.uint8), size, grid, 0)
