"""One Gymnasium vector environment that serves the episodes of several members at once.

    member.ask(reset or action) ─┐
    member.ask(reset or action) ─┼─ all in, or wait_s over ─► one call, in a thread ─► a Turn to each
    member.ask(reset or action) ─┘

Everything but that call happens in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from vlrl.environment.host.calls import attempt, result
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.thread import WorkThread
from vlrl.envs.adapters.turns import AdapterTurn

if TYPE_CHECKING:
    from vlrl.envs.adapters.gymnasium.partial_vector import PartialVector

GIVE_UP_S = 3600.0
"""Limit of one call. Members' own deadlines are shorter; the first that leaves during it ends the server."""


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server; members with equal options share servers."""

    id: str
    kwargs: Mapping[str, Any]
    num_envs: int
    mode: str
    wait_s: float

    @property
    def key(self) -> str:
        """Equal for equal options."""
        return json.dumps([self.id, dict(self.kwargs), self.num_envs, self.mode, self.wait_s], default=repr)


@dataclass(frozen=True)
class Reset:
    """Asks for a new episode."""

    seed: int
    options: dict[str, Any] | None


@dataclass(frozen=True)
class Act:
    """Asks for a step."""

    action: Any


class VectorServer:
    """A vector environment that serves one member a slot, with one call for all who have asked."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._thread = WorkThread(f"vector env {options.id}")
        self._vector: PartialVector | None = None
        self._free = list(range(options.num_envs))
        self._playing: set[int] = set()
        self._asked: dict[int, tuple[Reset | Act, asyncio.Future[AdapterTurn]]] = {}
        self._in_call: set[int] = set()
        self._all_in = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self.given_up = False

    def join(self) -> int | None:
        """A free slot; None if there is none, or the server was given up."""
        return self._free.pop(0) if self._free and not self.given_up else None

    async def ask(self, slot: int, request: Reset | Act) -> AdapterTurn:
        """The result of a request, which is carried out together with those of other members.

        Raises:
            EnvFailure: if the vector environment failed, by whosever action.
        """
        if self.given_up:
            raise EnvFailure("died", f"the vector environment of {self._options.id} was given up")
        future: asyncio.Future[AdapterTurn] = asyncio.get_running_loop().create_future()
        self._playing.add(slot)
        self._asked[slot] = (request, future)
        self._look()
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await future

    async def leave(self, slot: int) -> None:
        """Give a slot back; the last one closes the server."""
        self._playing.discard(slot)
        self._asked.pop(slot, None)
        if slot in self._in_call:  # it hangs, or its member was cancelled: where it stands is not known
            self._give_up(EnvFailure("died", "a member of the same vector environment left during a call"))
        self._look()
        self._free.append(slot)
        if len(self._free) < self._options.num_envs:
            return
        self.given_up = True
        try:
            if not self._thread.busy:
                await self._thread.outcome(self._close, GIVE_UP_S)
        finally:
            self._thread.dismiss(self._close)

    async def _serve(self) -> None:
        """Serve until no request is left: wait for all members, call, answer."""
        while self._asked and not self.given_up:
            if self._playing - self._asked.keys():
                self._all_in.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._all_in.wait(), self._options.wait_s)
            asked, self._asked = self._asked, {}
            asked = {slot: ask for slot, ask in sorted(asked.items()) if not ask[1].done()}
            self._in_call = set(asked)
            requests = {slot: request for slot, (request, _) in asked.items()}
            call = partial(attempt, partial(self._call, requests))
            outcome = await self._thread.outcome(call, GIVE_UP_S)
            self._in_call = set()
            self._answer(asked, outcome)

    def _answer(self, asked: Any, outcome: Any) -> None:
        try:
            turns = result(outcome)
        except Exception as error:
            for _, future in asked.values():
                if not future.done():
                    future.set_exception(error)
            self._give_up(error)
            return
        for slot, (_, future) in asked.items():
            turn = turns[slot]
            if turn.ended:
                self._playing.discard(slot)
            if not future.done():
                future.set_result(turn)

    def _give_up(self, error: Exception) -> None:
        self.given_up = True
        for _, future in self._asked.values():
            if not future.done():
                future.set_exception(error)
        self._asked = {}

    def _look(self) -> None:
        if not self._playing - self._asked.keys():
            self._all_in.set()

    def _call(self, requests: Mapping[int, Reset | Act]) -> dict[int, AdapterTurn]:
        """Run the resets and then one step, in the thread."""
        if self._vector is None:
            from vlrl.envs.adapters.gymnasium.partial_vector import PartialVector

            options = self._options
            self._vector = PartialVector(options.id, dict(options.kwargs), options.num_envs, options.mode)
        turns: dict[int, AdapterTurn] = {}
        resets = [(slot, ask) for slot, ask in requests.items() if isinstance(ask, Reset)]
        while resets:
            alike = resets[0][1].options
            seeds = {slot: ask.seed for slot, ask in resets if ask.options == alike}
            turns |= self._vector.reset(seeds, alike)
            resets = [(slot, ask) for slot, ask in resets if slot not in seeds]
        if actions := {slot: ask.action for slot, ask in requests.items() if isinstance(ask, Act)}:
            turns |= self._vector.step(actions)
        return turns

    def _close(self) -> None:
        if self._vector is not None:
            self._vector.close()
            self._vector = None


_servers: dict[asyncio.AbstractEventLoop, dict[str, list[VectorServer]]] = {}


def take_slot(options: ServerOptions) -> tuple[VectorServer, int]:
    """A slot in one of the running event loop's servers, a new one if none is free."""
    for loop in [loop for loop in _servers if loop.is_closed()]:
        del _servers[loop]
    servers = _servers.setdefault(asyncio.get_running_loop(), {}).setdefault(options.key, [])
    servers[:] = [server for server in servers if not server.given_up]
    for server in servers:
        if (slot := server.join()) is not None:
            return server, slot
    servers.append(server := VectorServer(options))
    slot = server.join()
    assert slot is not None
    return server, slot
