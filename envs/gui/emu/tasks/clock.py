"""Tasks of the clock: alarms, the timer, the stopwatch."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.parts.alarms import Alarm, Kept, kept, time_text
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    choose,
    click,
    context,
    open_app,
    slide,
    type_into,
)
from vlrl.envs.gui.emu.records import alarm_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.wording import listed, worded

LABELS = (
    *("Yoga", "Bus", "Medicine", "Bakery", "Choir", "School", "Garden", "Meeting", "Laundry", "Swimming"),
    *("Call Mum", "Night shift", "Market", "Rehearsal", "Dentist", "Feed the cat"),
)


def alarms_of(draw: Draw, count: int) -> tuple[Alarm, ...]:
    """Alarms with different labels and times, on or off."""
    times, labels = draw.picks(range(4, 92), count), draw.picks(LABELS, count)
    both = zip(times, labels, strict=True)
    return tuple(sorted(Alarm(15 * time, label, False, draw.number(0, 3) > 0) for time, label in both))


def changed(
    draw: Draw, goal: str, alarms: tuple[Alarm, ...], steps: list[Intent], wanted: tuple[Alarm, ...]
) -> Setup:
    """A task that makes other alarms of these; each that comes or goes is a milestone."""
    before, final = set(alarms), set(wanted)
    news, gone = final - before, before - final

    def share(number: int) -> Predicate:
        """Whether so many of the changes have been made, and no others."""

        def holds(world: World) -> bool:
            now = kept(world.store.get("clock")).alarms
            made = len(news & set(now)) + len(gone - set(now))
            is_clean = set(now) <= before | final and final & before <= set(now) and len(now) == len(set(now))
            return is_clean and made >= number

        return holds

    count = len(news) + len(gone)
    is_open = draw.level == 1
    return Setup(
        goal=goal if is_open else worded("In the app {app}: {goal}", app=tr("Clock"), goal=goal),
        data={"clock": Kept(alarms)},
        windows=[("clock", "")] if is_open else [],
        milestones={f"change {n}": share(n) for n in range(1, count + 1)},
        changes=sorted(map(alarm_record, news | gone)),
        oracle=[*([] if is_open else [open_app("clock")]), *steps],
    )


def at_time(minutes: int) -> list[Intent]:
    """How a time is set in the form."""
    return [slide("hour", minutes // 60), slide("minute", minutes % 60)]


@template("clock/add_alarm", levels=(1, 2, 3))
def add_alarm(draw: Draw) -> Setup:
    """One alarm, at level 2 with a label, at level 3 two of them, one for weekdays."""
    alarms = alarms_of(draw, draw.number(1, 4))
    labels = draw.picks(sorted(set(LABELS) - {alarm.label for alarm in alarms}), 2)
    times = draw.picks([t for t in range(60, 1435, 5) if t % 60 and t // 60 != 7], 2)
    news, words, steps = [], [], []
    for place in range(2 if draw.level == 3 else 1):
        alarm = Alarm(times[place], labels[place] if draw.level > 1 else "", draw.level == 3 and place == 0)
        news.append(alarm)
        said = "at {time}" + " with the label “{label}”" * bool(alarm.label)
        said += " on weekdays" * alarm.weekdays
        words.append(worded(said, time=alarm.time, label=alarm.label))
        steps += [click("new"), *at_time(alarm.minutes)]
        steps += [type_into("label", alarm.label)] if alarm.label else []
        steps += [click("weekdays")] if alarm.weekdays else []
        steps += [click("save")]
    goal = worded("Add an alarm {alarm}.", alarm=words[0])
    if draw.level == 3:
        goal = worded("Add an alarm {first} and another one {second}.", first=words[0], second=words[1])
    return changed(draw, goal, alarms, steps, (*alarms, *news))


@template("clock/switch_alarms", levels=(1, 2, 3))
def switch_alarms(draw: Draw) -> Setup:
    """Alarms are to be switched on or off, by label, or all that are on."""
    alarms = alarms_of(draw, 3 + draw.level)
    if draw.level < 3:
        chosen = draw.picks(alarms, draw.level)
        words = [worded(f"“{{label}}” {'off' if one.on else 'on'}", label=one.label) for one in chosen]
        them = "alarm" if len(chosen) == 1 else "alarms"
        goal = worded(f"Switch the {them} {{alarms}}.", alarms=listed(words))
    else:
        is_on = any(alarm.on for alarm in alarms)
        chosen = [alarm for alarm in alarms if alarm.on == is_on]
        goal = worded("Switch all alarms off." if is_on else "Switch all alarms on.")
    final = tuple(alarm._replace(on=not alarm.on) if alarm in chosen else alarm for alarm in alarms)
    steps: list[Intent] = [context(f"alarm.{alarms.index(alarm)}", "switch") for alarm in chosen]
    return changed(draw, goal, alarms, steps, final)


@template("clock/move_alarm", levels=(1, 2, 3))
def move_alarm(draw: Draw) -> Setup:
    """An alarm is to ring at another time; at levels 2 and 3 it is said by how much sooner or later."""
    alarms = tuple(alarm._replace(on=True) for alarm in alarms_of(draw, 2 + draw.level))
    old, later = draw.pick(alarms), 5 * draw.number(3, 20)
    if old.minutes > 1300 or (old.minutes > 120 and draw.number(0, 1)):
        later = -later
    new = old._replace(minutes=old.minutes + later)
    place = alarms.index(old)
    words = f"{{minutes}} minutes {'later' if later > 0 else 'earlier'} than now"
    goal = f"Let the alarm “{{label}}” ring {'at {time}' if draw.level == 1 else words}."
    goal = worded(goal, label=old.label, time=new.time, minutes=abs(later))
    final = (*(alarm for alarm in alarms if alarm != old), new)
    steps = [context(f"alarm.{place}", "edit"), *at_time(new.minutes), click("save")]
    return changed(draw, goal, alarms, steps, final)


@template("clock/delete_alarms", levels=(1, 2, 3))
def delete_alarms(draw: Draw) -> Setup:
    """Alarms are to go: one by its label, those that are off, those before a time."""
    alarms = alarms_of(draw, 3 + draw.level)
    if draw.level == 1:
        gone = [draw.pick(alarms)]
        goal = worded("Delete the alarm “{label}”.", label=gone[0].label)
    elif draw.level == 2:
        is_on = all(alarm.on for alarm in alarms)
        gone = [alarm for alarm in alarms if alarm.on == is_on]
        goal = worded(f"Delete every alarm that is switched {'on' if is_on else 'off'}.")
    else:
        first = alarms[draw.number(1, 3)]
        gone = [alarm for alarm in alarms if alarm.minutes < first.minutes]
        goal = worded("Delete every alarm that rings before {time}.", time=first.time)
    steps: list[Intent] = []
    left = list(alarms)
    for alarm in gone:
        steps += [context(f"alarm.{left.index(alarm)}", "delete"), click("delete")]
        left.remove(alarm)
    return changed(draw, goal, alarms, steps, tuple(left))


@template("clock/timer", levels=(1, 2))
def timer(draw: Draw) -> Setup:
    """The timer is to be set and started."""
    minutes = draw.pick([number for number in range(1, 12) if number != 5])
    seconds = 15 * draw.number(1, 3) if draw.level == 2 else 0
    wanted = minutes * 60_000 + seconds * 1000
    steps = [click(f"minutes.{'less' if minutes < 5 else 'more'}")] * abs(minutes - 5)
    said = "{minutes} minutes" if minutes > 1 else "1 minute"
    goal = f"Start a timer of {said}{' and {seconds} seconds' if seconds else ''}."
    return Setup(
        goal=worded(goal, minutes=minutes, seconds=seconds),
        windows=[("clock", "alarms")] if draw.level == 1 else [],
        milestones={"runs": lambda world: kept(world.store.get("clock")).timer_ms == wanted},
        changes=["data:clock/timer"],
        over=lambda world: kept(world.store.get("clock")).timer_ms not in (0, wanted),
        oracle=[
            *([] if draw.level == 1 else [open_app("clock")]),
            choose("page", "timer"),
            *steps,
            *[click("seconds.more")] * (seconds // 15),
            click("timer"),
        ],
    )


@template("clock/laps", levels=(1, 2, 3))
def laps(draw: Draw) -> Setup:
    """The stopwatch is to be started and stopped after some laps."""
    count = draw.number(1, 2) + 2 * (draw.level - 1)
    said = "1 lap" if count == 1 else "{count} laps"

    def counted(world: World) -> int:
        return len(kept(world.store.get("clock")).laps)

    def is_stopped(world: World) -> bool:
        now = kept(world.store.get("clock"))
        return counted(world) == count and now.watch_from is None and now.watch_ms > 0

    return Setup(
        goal=worded(
            f"Start the stopwatch in the app {{app}}, take {said}, then stop it.",
            app=tr("Clock"),
            count=count,
        ),
        data={"clock": Kept(alarms_of(draw, draw.number(1, 4)))},
        windows=[("clock", draw.pick(("alarms", "timer")))] if draw.level == 1 else [],
        milestones={
            "started": lambda world: (
                kept(world.store.get("clock")).watch_from is not None or is_stopped(world)
            ),
            "laps": (2, lambda world: counted(world) == count),
            "stopped": is_stopped,
        },
        changes=["data:clock/stopwatch"],
        over=lambda world: counted(world) > count,
        oracle=[
            *([] if draw.level == 1 else [open_app("clock")]),
            choose("page", "stopwatch"),
            click("watch"),
            *[click("lap")] * count,
            click("watch"),
        ],
    )


@template("clock/question", levels=(1, 2))
def question(draw: Draw) -> Setup:
    """When an alarm rings; at level 2, which of those that are on rings first after a time."""
    alarms = tuple(alarm._replace(on=True) for alarm in alarms_of(draw, 2 + 3 * draw.level))
    wanted = draw.pick(alarms[1:])
    if draw.level == 1:
        goal = worded("When does the alarm “{label}” ring? Answer as 07:30.", label=wanted.label)
        said = wanted.time
    else:
        off = {alarm for alarm in alarms if draw.number(0, 2) == 0 and alarm != wanted}
        before = alarms[alarms.index(wanted) - 1].minutes
        alarms = tuple(alarm._replace(on=alarm not in off) for alarm in alarms)
        said = next(alarm.label for alarm in alarms if alarm.on and alarm.minutes > before)
        goal = worded(
            "Which alarm that is switched on rings first after {time}? Answer with its label.",
            time=time_text(before),
        )
    return Setup(
        goal=f"{goal} {worded('Look it up in the app {app}.', app=tr('Clock'))}",
        data={"clock": Kept(alarms)},
        answer=said,
        oracle=[open_app("clock"), answer(said)],
    )
