"""One episode of an agent: the conversations that it holds, each a session that is kept token by token."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vlrl.errors import DataError
from vlrl.foreign.failure import failure_of
from vlrl.ledger import Ledger
from vlrl.parsing.tool_calls import tools_prompt
from vlrl.rollout.endpoint.messages import Message, assistant_key
from vlrl.rollout.endpoint.refusal import Refused
from vlrl.rollout.endpoint.reply import FinishReason, Reply, split_calls
from vlrl.rollout.endpoint.request import Asked
from vlrl.rollout.session import MediaMessage, Session
from vlrl.rollout.visible import visible
from vlrl.types import Generation, Sample, Sampling

if TYPE_CHECKING:
    from vlrl.rollout.context import RolloutContext, SamplingFn

NO_TURNS, NO_ROOM = "turn_limit_exceeded", "context_length_exceeded"
"""Codes of requests that are refused because the episode has grown too long."""

_PROBE = ({"role": "user", "content": [{"type": "text", "text": "?"}]},)


@dataclass(slots=True)
class _Talk:
    """One conversation.

    Attributes:
        session: its tokens.
        tools: what it was opened with, as JSON.
        keys: of its messages up to the last action; None while that is generated, or if it never was.
        places: of its actions among the episode's, in the order of time.
    """

    session: Session
    tools: str
    keys: tuple[str, ...] | None = None
    places: list[int] = field(default_factory=list)


class EndpointRecord:
    """What an agent asked for and was answered, in one event loop.

    A request goes on with the conversation that it begins with, messages and the last reply; if there is none
    it opens another, be it a sub-agent's or a history that was rewritten. Requests may overlap.

    Attributes:
        sample: the row that is played.
        refusal: of the last request, if it was refused.
        fault: gets what the policy raises, which is not a failure of the agent.
    """

    def __init__(
        self, sample: Sample, group_index: int, sampling_of_turn: SamplingFn, context: RolloutContext
    ) -> None:
        """Begin an episode.

        Args:
            sample: the row that is played.
            group_index: which of the group's n.
            sampling_of_turn: how an action is generated; a turn's name is what is shown and how often it was
                before, so that requests that overlap have the same seeds in whatever order they come.
            context: policy, processor and the options.
        """
        self.sample = sample
        self.refusal: Refused | None = None
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._group_index, self._sampling_of_turn, self._context = group_index, sampling_of_turn, context
        self._talks: list[_Talk] = []
        self._known: dict[str, MediaMessage] = {}
        self._num_shown: Counter[str] = Counter()
        self._num_asked = self._num_generated = 0

    @property
    def outgrown(self) -> bool:
        """True if the last request was refused because the episode has grown too long: the policy's doing."""
        return self.refusal is not None and self.refusal.code in (NO_TURNS, NO_ROOM)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """What was seen and generated, in the order of each ledger's last action."""
        found: list[tuple[int, Ledger]] = []
        for talk in self._talks:
            places = iter(talk.places)
            for ledger in talk.session.trajectory("", "ok", 0.0).ledgers:
                found.append(([next(places) for _ in ledger.turns][-1], ledger))
        return tuple(ledger for _, ledger in sorted(found, key=lambda each: each[0]))

    async def answer(self, asked: Asked) -> Reply:
        """Generate the next action of the conversation that a request ends.

        Raises:
            Refused: if it cannot be shown to the model, or the episode has no room for it.
        """
        self.refusal = None
        try:
            try:
                said = [await self._said(message) for message in asked.messages]
                talk = self._continued(asked, said) or self._opened(asked, said)
                session = talk.session
                seen = visible(session.conversation, self._context.config.episodes.context)
                session.state = _state_of(seen)
                self._context.processor.show(session, seen)
            except Refused:
                raise
            except Exception as error:  # of a template or a decoder, on what the client wrote
                raise Refused(f"this cannot be shown to the model: {failure_of(error).reason}") from error
            return await self._reply(talk, asked)
        except Refused as refused:
            self.refusal = refused
            raise

    async def _said(self, message: Message) -> MediaMessage:
        """A message with its images resolved, once an episode."""
        known = self._known.get(message.key)
        if known is None:
            read, where = self._context.processor.message, f"{self.sample.id}, request"
            for part in message.parts:
                _check_unicode(part.get("text", ""))
            if any(part["type"] != "text" for part in message.parts):
                known = await asyncio.to_thread(read, message.role, message.parts, where)
            else:
                known = read(message.role, message.parts, where)
            self._known[message.key] = known
        return known

    def _continued(self, asked: Asked, said: Sequence[MediaMessage]) -> _Talk | None:
        """The conversation that the request continues, extended by what is new."""
        keys, tools = tuple(message.key for message in asked.messages), _written(asked.tools)
        for talk in reversed(self._talks):
            if talk.keys is None or talk.tools != tools or keys[: len(talk.keys)] != talk.keys:
                continue
            for each in said[len(talk.keys) :]:
                talk.session.append_message(each, "")
            talk.keys = None
            return talk
        return None

    def _opened(self, asked: Asked, said: Sequence[MediaMessage]) -> _Talk:
        written, processor = _written(asked.tools), self._context.processor
        tools = asked.tools
        if tools:
            _check_unicode(written)
            shown = processor.message("system", [{"type": "text", "text": written}], "tools")
            if shown.message["content"] != [{"type": "text", "text": written}]:
                raise Refused("tools hold the model's special tokens; rename what does", field="tools")
            if not self._template_tells(tools):
                said, tools = _telling(said, tools_prompt(tools)), ()
        messages = tuple(each.message for each in said)
        media = tuple(medium for each in said for medium in each.media)
        prompt = processor.encode(messages, media, tools)
        sample = replace(self.sample, messages=messages, media=media, prompt=prompt, tools=tools)
        self._talks.append(_Talk(Session(sample, self._group_index), written))
        return self._talks[-1]

    def _template_tells(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """False for a chat template that has no place for tools; Qwen2.5-VL's is one."""
        encode = self._context.processor.encode
        try:
            declared = encode(_PROBE, (), tools)
        except DataError:
            return False
        return bool(declared.token_ids.tolist() != encode(_PROBE, ()).token_ids.tolist())

    async def _reply(self, talk: _Talk, asked: Asked) -> Reply:
        sampling, num_prompt_tokens = self._sampling(talk.session, asked), len(talk.session.token_ids)
        number = self._num_asked
        self._num_asked += 1
        generation = await self._generate(talk.session, sampling)
        text = self._context.processor.act(talk.session, generation)
        talk.places.append(self._num_generated)
        self._num_generated += 1
        content, calls = split_calls(text, number) if asked.tools else (text, ())
        talk.keys = (*(message.key for message in asked.messages), assistant_key(content, calls))
        ended: FinishReason = "length" if not generation.finished else "tool_calls" if calls else "stop"
        return Reply(number, content, calls, ended, num_prompt_tokens, len(generation.token_ids))

    def _sampling(self, session: Session, asked: Asked) -> Sampling:
        """How the action is generated, if there is room for it: nothing is ever cut (law 4)."""
        max_turns = self._context.config.episodes.max_turns
        if self._num_asked >= max_turns:
            raise Refused(f"the episode has used its episodes.max_turns={max_turns} actions", code=NO_TURNS)
        sampling = self._sampling_of_turn(f"{session.state}/{self._num_shown[session.state]}")
        if asked.max_tokens is not None:
            sampling = replace(sampling, max_tokens=min(sampling.max_tokens, asked.max_tokens))
        num_tokens, most = len(session.token_ids), self._context.config.generator.max_model_len
        if num_tokens + sampling.max_tokens > most:
            raise Refused(
                f"{num_tokens} tokens of messages and {sampling.max_tokens} of an action are more than "
                f"generator.max_model_len={most}",
                code=NO_ROOM,
                field="messages",
            )
        self._num_shown[session.state] += 1
        return sampling

    async def _generate(self, session: Session, sampling: Sampling) -> Generation:
        try:
            return await self._context.policy.generate(session, sampling)
        except Exception as error:  # whatever it was, it ends the run and not the episode
            if not self.fault.done():
                self.fault.set_exception(error)
            raise Refused("the engine failed", status=500, code="engine_failed") from error


def _telling(said: Sequence[MediaMessage], declared: str) -> list[MediaMessage]:
    """The conversation with this at the end of its system message."""
    first = said[0]
    if first.message["role"] != "system":
        return [MediaMessage({"role": "system", "content": [{"type": "text", "text": declared}]}), *said]
    content = [*first.message["content"], {"type": "text", "text": f"\n\n{declared}"}]
    return [replace(first, message={**first.message, "content": content}), *said[1:]]


def _state_of(seen: Sequence[MediaMessage]) -> str:
    """A name for what is shown; see `Turn.state`."""
    digest = hashlib.sha256()
    for said in seen:
        digest.update(repr((said.message, [medium.sha256 for medium in said.media])).encode())
    return digest.hexdigest()[:16]


def _written(tools: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(tools, ensure_ascii=False)


def _check_unicode(text: str) -> None:
    """Raise Refused for half a surrogate pair, which JSON can write and no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"a text is not Unicode: {error}") from error
