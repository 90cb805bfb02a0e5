"""A policy on engines that others own: routes requests, bounds their number, and shares their media."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from vlrl.config import Config
from vlrl.config.learning.policies import number_of_agent, require_policy
from vlrl.engine.client.admission import AdmissionQueue
from vlrl.engine.client.link import EngineLink
from vlrl.engine.client.router import Router, engine_of_position
from vlrl.engine.client.shared_media import SharedMedia
from vlrl.engine.requests import EngineRequest, GenerationResult, JointBatch, Load
from vlrl.protocols import Policy
from vlrl.rollout.groups import require_room
from vlrl.rollout.session import Session
from vlrl.types import Generation, Media, Sampling

MEDIA_SHARE = 0.5
"""Share of Ray's object store that media may be kept in for further requests; the rest is for what passes."""


class EngineClient:
    """A `vlrl.protocols.Policy` on one or several engines.

    The sessions of one event-loop turn are sent together. In batches they are generated together and nothing
    else meanwhile; in continuous mode they join what runs, and each is answered as it is done.

    Attributes:
        media: that it has put into shared memory.
        joint_batches: by engine, what this client's batches there are part of, while several play in
            lockstep. Each of these engines is sent something in every turn of the episodes, if only that
            nothing is asked.
    """

    def __init__(
        self,
        config: Config,
        links: Sequence[EngineLink],
        *,
        name: str = "",
        engines: Collection[int] | None = None,
        num_sharing: int = 1,
    ) -> None:
        """Send requests to engines that are there, or that are being started.

        Args:
            config: the whole config.
            links: one an engine of the run.
            name: of this client among all of them; its requests' names begin with it.
            engines: numbers of those that are asked; None is all.
            num_sharing: clients that send requests to each of them.
        """
        generator = config.generator
        self._links, self._name = links, name
        limit = generator.max_concurrency
        if isinstance(limit, int):
            limit = max(1, limit // num_sharing)
        most = max(1, generator.max_num_seqs // num_sharing)
        self._gates = [AdmissionQueue[_Ask](limit, most) for _ in links]
        self._router = Router(len(links), engines)
        self._in_batches = generator.mode == "batch"
        self._max_model_len = generator.max_model_len
        self._policies = number_of_agent(config)
        self.media = SharedMedia(int(MEDIA_SHARE / num_sharing * config.ray.object_store_gib * 2**30))
        self.joint_batches: dict[int, JointBatch] = {}
        self._waiting: list[tuple[Session, _Way, Sampling, asyncio.Future[Generation]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._idle_turns: set[asyncio.Task[None]] = set()
        self._num_requests = 0

    def of_position(self, position: int) -> Policy:
        """The policy of the episodes of a position of the run's samples.

        While batches are kept apart it is on an engine that the position alone decides: so they do not hang
        on how many processes play, or on what they have played (law 8).
        """
        if not self._in_batches:
            return self
        return _Placed(self, _Way(engine_of_position(position, len(self._links)), position))

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Generate the session's next action."""
        return await self._ask(session, _Way(), sampling)

    async def _ask(self, session: Session, way: _Way, sampling: Sampling) -> Generation:
        require_room(session.sample.id, len(session.token_ids), sampling.max_tokens, self._max_model_len)
        if self._policies:
            require_policy(session.sample.id, session.sample.agent, self._policies)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Generation] = loop.create_future()
        self._waiting.append((session, way, sampling, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._send)
        return await future

    def _send(self) -> None:
        if self._idle_turns:  # the next turn begins when every engine has ended this one
            next(iter(self._idle_turns)).add_done_callback(lambda _: self._send())
            return
        waiting, self._waiting = self._waiting, []
        shares: defaultdict[int, list[_Ask]] = defaultdict(list)
        for session, way, sampling, future in waiting:
            number = self._router.place(session, way.engine)
            request = self._request(session, sampling, way.position)
            shares[number].append(_Ask(request, session.media, future))
        for number, asks in shares.items():
            self._start(number, asks if self._in_batches else self._gates[number].enter(asks))
        for number in self.joint_batches.keys() - shares.keys():  # which wait for this client
            turn = self._begin(number, [])
            self._idle_turns.add(turn)
            turn.add_done_callback(self._idle_turns.discard)

    def _request(self, session: Session, sampling: Sampling, position: int) -> EngineRequest:
        self._num_requests += 1
        return EngineRequest(
            name=f"{self._name}{self._num_requests}",
            sample_id=session.sample.id,
            engine_ids=np.asarray(session.engine_ids),
            expected_ids=np.asarray(session.token_ids),
            media=tuple(m.sha256 for m in session.media),
            sampling=sampling,
            order=(position, session.group_index),
            policy=self._policies[session.sample.agent] if self._policies else 0,
            begins=session.num_turns == 0,
            form=session.form,
        )

    def _start(self, number: int, asks: Sequence[_Ask]) -> None:
        if asks:
            self._begin(number, asks)

    def _begin(self, number: int, asks: Sequence[_Ask]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._generate(number, asks))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return task

    async def _generate(self, number: int, asks: Sequence[_Ask]) -> None:
        """Have an engine generate what is asked; whatever happens, everybody who asks is answered."""
        link, unanswered = self._links[number], dict(enumerate(asks))
        try:
            references = self.media.references(medium for ask in asks for medium in ask.media)
            requests = [ask.request for ask in asks]
            if not self._in_batches:
                for ask in asks:
                    ask.abort_if_cancelled(link)
            whole, joint = self._in_batches, self.joint_batches.get(number)
            async for index, result, load in link.generate(requests, references, whole=whole, joint=joint):
                self._answer(number, unanswered.pop(index), result, load)
        except Exception as error:  # handed on to every session that was part of this
            for ask in unanswered.values():
                self._answer(number, ask, error, None)
        except asyncio.CancelledError:  # the event loop ends
            for ask in unanswered.values():
                link.abort(ask.request.name)
                ask.future.cancel()
                self._leave(number, None)
            raise

    def _answer(self, number: int, ask: _Ask, result: GenerationResult, load: Load | None) -> None:
        self._start(number, self._leave(number, load))
        if ask.future.done():  # an episode over its time no longer waits
            return
        if isinstance(result, Exception):
            ask.future.set_exception(result)
        else:
            ask.future.set_result(result)

    def _leave(self, number: int, load: Load | None) -> list[_Ask]:
        """The requests that may be sent next, now that one of the engine's is done."""
        self._router.leave(number)
        if self._in_batches:
            return []
        queue = self._gates[number]
        return queue.leave(load.kv_usage, load.num_waiting) if load else queue.leave(None)


@dataclass(frozen=True, slots=True)
class _Way:
    """Where a request goes.

    Attributes:
        engine: its number; None for the router to say.
        position: of its episode's sample; 0 where there is none.
    """

    engine: int | None = None
    position: int = 0


class _Placed:
    """The policy of one position."""

    def __init__(self, client: EngineClient, way: _Way) -> None:
        self._client, self._way = client, way

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Generate the session's next action."""
        return await self._client._ask(session, self._way, sampling)


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request and who waits for it."""

    request: EngineRequest
    media: Sequence[Media]
    future: asyncio.Future[Generation]

    def abort_if_cancelled(self, link: EngineLink) -> None:
        """Let the engine forget the request as soon as nobody waits for it."""
        self.future.add_done_callback(lambda f: link.abort(self.request.name) if f.cancelled() else None)
