"""How many requests an engine is given at once: a fixed number, or one that follows its KV cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

ROOM, FULL = 0.6, 0.9
"""Shares of the KV cache: below the first more requests are let in, above the second fewer."""
BACK_OFF = 0.75
"""What is left of the limit when the cache is full."""


class AdmissionQueue(Generic[T]):
    """A queue before an engine, first come, first served.

    With limit "auto" the limit rises by one with each request that ends while there is room and somebody
    waits, and falls by a quarter when the cache is full, at most once while as many requests end as the limit
    lets in (additive increase, multiplicative decrease: Chiu and Jain 1989). A full cache makes the engine
    throw requests out and compute them again, so it generates less with more of them.

    Attributes:
        limit: most requests let in at once, from 1 to the engine's own bound.
        num_inside: those that are.
    """

    def __init__(self, limit: int | Literal["auto"] | None, most: int) -> None:
        """`most` is the engine's own bound; a limit of None lets everybody in."""
        self._adapts, self._most = limit == "auto", most
        self._unbounded = limit is None
        self.limit = limit if isinstance(limit, int) else most
        self.num_inside = 0
        self._num_ended = 0
        self._waiting: deque[T] = deque()

    def enter(self, items: Iterable[T]) -> list[T]:
        """Queue items; those that may go in now."""
        self._waiting.extend(items)
        return self._admit()

    def leave(self, kv_usage: float | None, num_waiting: int = 0) -> list[T]:
        """One of those inside is done; who may go in now.

        Args:
            kv_usage: share of the KV cache in use, 0 to 1; None if unknown.
            num_waiting: requests inside for which the engine has no room.
        """
        self.num_inside -= 1
        if self._adapts and kv_usage is not None:
            self._adapt(kv_usage, num_waiting)
        return self._admit()

    def _adapt(self, kv_usage: float, num_waiting: int) -> None:
        self._num_ended += 1
        full = kv_usage > FULL or (num_waiting > 0 and kv_usage > ROOM)
        if full and self._num_ended >= self.limit:
            self.limit, self._num_ended = max(1, int(self.limit * BACK_OFF)), 0
        elif kv_usage < ROOM and not num_waiting and self._waiting:
            self.limit = min(self._most, self.limit + 1)

    def _admit(self) -> list[T]:
        room = len(self._waiting) if self._unbounded else max(0, self.limit - self.num_inside)
        admitted = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        self.num_inside += len(admitted)
        return admitted
