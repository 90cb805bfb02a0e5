"""What the clock keeps: alarms, the timer, the stopwatch, all in the virtual time."""

from __future__ import annotations

from typing import NamedTuple


class Alarm(NamedTuple):
    """When it rings, in minutes of the day; what for; whether on weekdays only; whether it is on."""

    minutes: int
    label: str = ""
    weekdays: bool = False
    on: bool = True

    @property
    def time(self) -> str:
        """Time as "07:30"."""
        return time_text(self.minutes)


class Kept(NamedTuple):
    """What the app keeps.

    Attributes:
        alarms: in the order of their times.
        timer_ms: how long the timer is to run; 0 where none was started.
        timer_from: the virtual time when it was started.
        watch_ms: what the stopwatch counted before it was stopped last.
        watch_from: when it was started; None while it stands.
        laps: what it showed at each lap, in ms.
    """

    alarms: tuple[Alarm, ...] = ()
    timer_ms: int = 0
    timer_from: int = 0
    watch_ms: int = 0
    watch_from: int | None = None
    laps: tuple[int, ...] = ()


def time_text(minutes: int) -> str:
    """Minutes of the day as "07:30"."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def length_text(ms: int) -> str:
    """A length of time as "12:05"."""
    return f"{ms // 60_000:02d}:{ms // 1000 % 60:02d}"


def kept(data: object) -> Kept:
    """What the app keeps, or nothing yet."""
    return data if isinstance(data, Kept) else Kept()
