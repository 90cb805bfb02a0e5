"""When a desktop has settled: no process on it works, and none is about to.

For a while no process, X server included, has used processor time: then no pixel has changed either, and they
need not be compared. What a busy machine has not yet let run counts as working, and so does a process that
was started meanwhile. A toolkit's short timer (a dialog that looks at a name a tenth of a second after it was
typed) counts as work to come; those that never end are not waited for forever.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from vlrl.envs.gui.x11.sandbox.processes import cpu_time, rest_of

QUIET_S = 0.03
_POLL_S = 0.005
_IDLE_S = 0.0002
"""Processor time within the quiet that apps may use for timers of their own; the X server none."""
_SHORT_TIMER_S = 0.3
_MOST_TIMERS_S = 1.0
"""Short timers that have drawn nothing for so long are those that never end."""


def settle(processes: Callable[[], list[int]], server: int, budget_s: float) -> bool:
    """Wait for quiet; False if it does not come within the budget.

    Args:
        processes: the desktop's at the time of the call.
        server: the X server among them.
        budget_s: how long to wait at most.
    """
    begin = time.monotonic()
    pids = processes()
    before, since = cpu_time(pids), time.monotonic()
    drawn, drawn_at = before.get(server), since
    while (now_s := time.monotonic()) - begin < budget_s:
        time.sleep(_POLL_S)
        now = cpu_time(pids)
        if now.get(server) != drawn:
            drawn, drawn_at = now.get(server), time.monotonic()
        if _worked(before, now, server):
            before, since = now, time.monotonic()
        elif now_s - since >= QUIET_S:
            found = processes()
            at_rest, timer_s = _rest(found)
            if set(found) <= set(pids) and at_rest:
                if timer_s > _SHORT_TIMER_S or now_s - drawn_at > _MOST_TIMERS_S:
                    return True
            else:
                before, since = cpu_time(found), time.monotonic()
            pids = found
    return False


def _rest(pids: list[int]) -> tuple[bool, float]:
    """(nobody works or waits for a processor, the shortest timer).

    They are looked at one after the other, and on a busy machine that takes a while: one that has not been
    looked at may meanwhile wake one that has. Then it has used processor time.
    """
    before = cpu_time(pids)
    rest = rest_of(pids)
    return not rest.is_busy and cpu_time(pids) == before, rest.timer_s


def _worked(before: dict[int, float], now: dict[int, float], server: int) -> bool:
    if now.keys() != before.keys() or now.get(server) != before.get(server):
        return True
    return sum(now.values()) - sum(before.values()) > _IDLE_S
