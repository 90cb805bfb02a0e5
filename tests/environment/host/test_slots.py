"""Slots, whatever happens to those that wait for one."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from vlrl.environment.host.slots import Slots

events = st.lists(
    st.tuples(st.sampled_from(["come", "leave", "cancel", "turn"]), st.integers(0, 9)), max_size=40
)


HANDED_AND_CANCELLED = ["come", "turn", "come", "turn", "leave", "turn", "cancel"]


@given(st.integers(1, 3), events)
@example(1, list(zip(HANDED_AND_CANCELLED, [0, 0, 0, 0, 0, 0, 1], strict=True)))
def test_no_place_is_lost_or_given_twice(num_slots: int, happens: list[tuple[str, int]]) -> None:
    """Also when one is cancelled while it is handed a slot; "turn" lets the loop run."""
    inside: set[int] = set()

    async def visit(slots: Slots, number: int, leave: asyncio.Event) -> None:
        await slots.take()
        inside.add(number)
        assert len(inside) <= num_slots
        try:
            await leave.wait()
        finally:
            inside.discard(number)
            slots.give_back()

    async def all_of_it() -> None:
        slots = Slots(num_slots)
        visits: list[tuple[asyncio.Task[None], asyncio.Event]] = []
        for what, which in happens:
            if what == "come":
                leave = asyncio.Event()
                visits.append((asyncio.create_task(visit(slots, len(visits), leave)), leave))
            elif what == "turn":
                await asyncio.sleep(0)
            elif visits:
                task, leave = visits[which % len(visits)]
                task.cancel() if what == "cancel" else leave.set()
        for _, leave in visits:
            leave.set()
        outcomes = await asyncio.gather(*(task for task, _ in visits), return_exceptions=True)
        assert all(outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        async with asyncio.timeout(10):
            for _ in range(num_slots):
                await slots.take()

    asyncio.run(all_of_it())
