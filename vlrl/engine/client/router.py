"""Which engine generates an episode: the same one to its end, and the others of its group beside it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from weakref import WeakKeyDictionary

from vlrl.rollout.session import Session

SLACK = 16
"""Requests by which the engine of a group may be ahead of the idlest before its episodes go elsewhere."""
MAX_GROUPS = 4096
"""Groups whose engine is remembered."""


def engine_of_position(position: int, num_engines: int) -> int:
    """The engine of a position's episodes while batches are kept apart, the same for every client."""
    return position % num_engines


class Router:
    """Places sessions on engines, by what was asked so far and nothing else (law 8).

    An engine has computed an episode's turns and its group's prompt, images included, and keeps them in its
    prefix cache, so both stay there; groups go where the fewest requests are open. When none is open groups
    are forgotten: a sample that comes again finds other weights, and a run that is resumed has never seen it.
    """

    def __init__(self, num_engines: int, engines: Collection[int] | None = None) -> None:
        """Place sessions on some of the run's engines, by default on all."""
        self._open = [0] * num_engines
        self._numbers = sorted(range(num_engines) if engines is None else engines)
        self._of_session: WeakKeyDictionary[Session, int] = WeakKeyDictionary()
        self._of_group: OrderedDict[str, int] = OrderedDict()

    def place(self, session: Session, engine: int | None = None) -> int:
        """The engine that generates the session's next action, which is open until `leave`.

        Where `engine` is given, it is that one.
        """
        engine = self._of_session.get(session) if engine is None else engine
        if engine is None:
            engine = self._of_session[session] = self._of_new(session.sample.id)
        self._open[engine] += 1
        return engine

    def leave(self, engine: int) -> None:
        """A request of this engine is done."""
        self._open[engine] -= 1
        if not any(self._open):
            self._of_group.clear()

    def _of_new(self, sample_id: str) -> int:
        idlest = min(self._numbers, key=self._open.__getitem__)
        engine = self._of_group.get(sample_id, idlest)
        if self._open[engine] > self._open[idlest] + SLACK:
            engine = idlest
        self._of_group[sample_id] = engine
        self._of_group.move_to_end(sample_id)
        if len(self._of_group) > MAX_GROUPS:
            self._of_group.popitem(last=False)
        return engine
