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
    from vlrl.envs.adapters.gymnasium.vector_client import Seats

GIVE_UP_S = 3600.0
"""Of one call. Members' own deadlines are shorter; the first that leaves in its midst gives the hub up."""


@dataclass(frozen=True)
class HubOptions:
    """What a hub is made of; members with equal options share hubs."""

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


class VectorHub:
    """A vector environment and who sits in it."""

    def __init__(self, options: HubOptions) -> None:
        self._options = options
        self._thread = WorkThread(f"vector env {options.id}")
        self._seats: Seats | None = None
        self._free = list(range(options.num_envs))
        self._playing: set[int] = set()
        self._asked: dict[int, tuple[Reset | Act, asyncio.Future[AdapterTurn]]] = {}
        self._in_call: set[int] = set()
        self._all_in = asyncio.Event()
        self._server: asyncio.Task[None] | None = None
        self.given_up = False

    def join(self) -> int | None:
        """A free seat; None if there is none, or the hub was given up."""
        return self._free.pop(0) if self._free and not self.given_up else None

    async def ask(self, seat: int, request: Reset | Act) -> AdapterTurn:
        """What comes of a request, together with those of the others.

        Raises:
            EnvFailure: if the vector environment failed, by whosever action.
        """
        if self.given_up:
            raise EnvFailure("died", f"the vector environment of {self._options.id} was given up")
        future: asyncio.Future[AdapterTurn] = asyncio.get_running_loop().create_future()
        self._playing.add(seat)
        self._asked[seat] = (request, future)
        self._look()
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        return await future

    async def leave(self, seat: int) -> None:
        """Give a seat back; the last one closes the hub."""
        self._playing.discard(seat)
        self._asked.pop(seat, None)
        if seat in self._in_call:  # it hangs, or its member was cancelled: where it stands is not known
            self._give_up(EnvFailure("died", "a member of the same vector environment left in its midst"))
        self._look()
        self._free.append(seat)
        if len(self._free) < self._options.num_envs:
            return
        self.given_up = True
        try:
            if not self._thread.busy:
                await self._thread.outcome(self._close, GIVE_UP_S)
        finally:
            self._thread.dismiss(self._close)

    async def _serve(self) -> None:
        """Serve until nobody asks: wait for all, call, answer."""
        while self._asked and not self.given_up:
            if self._playing - self._asked.keys():
                self._all_in.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._all_in.wait(), self._options.wait_s)
            asked, self._asked = self._asked, {}
            asked = {seat: ask for seat, ask in sorted(asked.items()) if not ask[1].done()}
            self._in_call = set(asked)
            requests = {seat: request for seat, (request, _) in asked.items()}
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
        for seat, (_, future) in asked.items():
            turn = turns[seat]
            if turn.ended:
                self._playing.discard(seat)
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
        if self._seats is None:
            from vlrl.envs.adapters.gymnasium.vector_client import Seats

            options = self._options
            self._seats = Seats(options.id, dict(options.kwargs), options.num_envs, options.mode)
        turns: dict[int, AdapterTurn] = {}
        resets = [(seat, ask) for seat, ask in requests.items() if isinstance(ask, Reset)]
        while resets:
            alike = resets[0][1].options
            seeds = {seat: ask.seed for seat, ask in resets if ask.options == alike}
            turns |= self._seats.reset(seeds, alike)
            resets = [(seat, ask) for seat, ask in resets if seat not in seeds]
        if actions := {seat: ask.action for seat, ask in requests.items() if isinstance(ask, Act)}:
            turns |= self._seats.step(actions)
        return turns

    def _close(self) -> None:
        if self._seats is not None:
            self._seats.close()
            self._seats = None


_hubs: dict[asyncio.AbstractEventLoop, dict[str, list[VectorHub]]] = {}


def take_seat(options: HubOptions) -> tuple[VectorHub, int]:
    """A seat in one of the running event loop's hubs, a new one if none is free."""
    for loop in [loop for loop in _hubs if loop.is_closed()]:
        del _hubs[loop]
    hubs = _hubs.setdefault(asyncio.get_running_loop(), {}).setdefault(options.key, [])
    hubs[:] = [hub for hub in hubs if not hub.given_up]
    for hub in hubs:
        if (seat := hub.join()) is not None:
            return hub, seat
    hubs.append(hub := VectorHub(options))
    seat = hub.join()
    assert seat is not None
    return hub, seat
