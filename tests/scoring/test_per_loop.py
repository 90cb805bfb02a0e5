"""A value of an event loop: one for all who ask in it, closed at its end; another loop has another."""

from __future__ import annotations

import asyncio

from vlrl.scoring.per_loop import PerLoop


def test_a_loop_has_one_value_and_closes_it_at_its_end() -> None:
    closed: list[object] = []

    async def close(value: object) -> None:
        await asyncio.sleep(0)
        closed.append(value)

    values = PerLoop(object, close)

    async def ask() -> list[object]:
        return list(await asyncio.gather(*(values.get() for _ in range(5))))

    first = asyncio.run(ask())
    assert len(set(first)) == 1 and closed == first[:1]
    second = asyncio.run(ask())
    assert second[0] is not first[0] and closed == [first[0], second[0]]
