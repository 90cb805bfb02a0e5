"""Tasks with notices and the quick settings beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vlrl.envs.gui.emu.app import APPS
from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.oracle.at_notices import dismiss, open_shade, turn
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, click, slide
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import address, mailbox
from vlrl.envs.gui.emu.tasks.content.news import SAYINGS, said_by
from vlrl.envs.gui.emu.tasks.content.words import TITLES
from vlrl.envs.gui.emu.tasks.mail.letters import SECRETS
from vlrl.envs.gui.emu.windows import notices
from vlrl.envs.gui.emu.windows.notices import Notice
from vlrl.envs.gui.emu.windows.shade import TILES
from vlrl.envs.gui.emu.wording import listed, worded

MORNING_MS = 8 * 3_600_000
"""Notices of tasks came in the hour and a half before an episode begins."""


def _times(draw: Draw, count: int) -> list[int]:
    """When notices came, one minute or more apart."""
    return [MORNING_MS + 60_000 * minute for minute in draw.picks(range(85), count)]


def _said(draw: Draw, apps: Sequence[str], first: int) -> list[Notice]:
    """A notice of each app, numbered from the first on."""
    times = _times(draw, len(apps))
    return [said_by(draw.rng, app, first + n, times[n]) for n, app in enumerate(apps)]


@template("notices/read", levels=(1, 2, 3))
def read(draw: Draw) -> Setup:
    """Answer what a notice says; from level 2 on one of a mail, whose text is in the mail."""
    if draw.level == 1:
        return _read_time(draw)
    what, number, sender = draw.pick(SECRETS), draw.number(1000, 99999), address(draw)
    secret = Letter(0, "inbox", sender, f"Your {what}", f"The {what} is {number}. Do not tell anybody.")
    letters = mailbox(draw, 8, secret)
    mails = [letter for letter in letters if letter.other != sender]
    told = [next(one for one in letters if one.other == sender), *draw.picks(mails, draw.level - 1)]
    come = [
        Notice(11 + n, "mail", person(letter.other), letter.subject, time, str(letter.number))
        for n, (letter, time) in enumerate(zip(told, _times(draw, len(told)), strict=True))
    ]
    apps = draw.picks(("calendar", "files", "clock"), 1)
    return Setup(
        goal=worded(
            "Open the notification of {person}’s mail. What is the {what}? Answer with the number.",
            person=person(sender),
            what=what,
        ),
        data={"mail": letters, notices.STORE: (*come, *_said(draw, apps, 31))},
        windows=[] if draw.level == 2 else [(draw.pick(("editor", "calculator", "files")), "")],
        answer=str(number),
        oracle=[open_shade(), click(f"notice:{come[0].number}"), answer(str(number))],
    )


def _read_time(draw: Draw) -> Setup:
    """When an appointment is, which its notice says."""
    titles, times = draw.picks(TITLES, 3), _times(draw, 3)
    hours = [f"{draw.number(10, 21)}:{5 * draw.number(0, 11):02d}" for _ in titles]
    come = [
        Notice(11 + n, "calendar", title, f"Today at {hour}", time)
        for n, (title, hour, time) in enumerate(zip(titles, hours, times, strict=True))
    ]
    return Setup(
        goal=worded(
            "At what time is “{title}”? A notification says it. Answer with the time.", title=titles[0]
        ),
        data={notices.STORE: tuple(come)},
        windows=[("editor", "")],
        answer=hours[0],
        oracle=[open_shade(), answer(hours[0])],
    )


def _is_dismissed(world: World, number: int, kept: frozenset[int]) -> bool:
    left = {notice.number for notice in notices.kept(world)}
    return number not in left and kept <= left


@template("notices/dismiss", levels=(1, 2, 3))
def dismiss_all(draw: Draw) -> Setup:
    """Dismiss the notices of one app, as many as the level says, and keep the others."""
    app, *others = draw.picks(tuple(SAYINGS), 3 if draw.level < 3 else 2)
    come = _said(draw, [*(draw.level * (app,)), *others], 11)
    gone, left = come[: draw.level], frozenset(one.number for one in come[draw.level :])
    return Setup(
        goal=worded("Dismiss all notifications of {app}, and keep the others.", app=tr(APPS[app].label)),
        data={notices.STORE: tuple(come)},
        milestones={
            f"dismissed {one.number}": partial(_is_dismissed, number=one.number, kept=left) for one in gone
        },
        over=lambda world: not left <= {notice.number for notice in notices.kept(world)},
        oracle=[open_shade(), *(dismiss(one.number) for one in gone)],
    )


@template("notices/quick_setting", levels=(1, 2, 3))
def quick_setting(draw: Draw) -> Setup:
    """Turn quick settings on or off; set the brightness, too, at level 3."""
    keys = [key for key in TILES if key != "airplane"]  # which turns others off
    before = {key: draw.number(0, 1) == 1 for key in keys} | {"brightness": 5 * draw.number(1, 9)}
    chosen = draw.picks(keys, min(2, draw.level))
    wanted: dict[str, object] = {key: not before[key] for key in chosen}
    changes = [(tr(TILES[key].name), "on" if TILES[key].is_on(wanted[key]) else "off") for key in chosen]
    said = listed([worded(f"turn “{{name}}” {state}", name=name) for name, state in changes])
    steps: list[Intent] = [turn(key) for key in chosen]
    if draw.level == 3:
        light = 5 * draw.number(10, 20)
        wanted["brightness"] = light
        said = worded("{changes}, and set the brightness to {brightness}", changes=said, brightness=light)
        steps.append(slide("brightness", light))
    where = "they are pulled down" if draw.looks["form"] == "mobile" else "they open at the clock"
    return Setup(
        goal=worded(f"In the quick settings ({where}), {{changes}}.", changes=said),
        settings=before,
        windows=[("editor", "")] if draw.level < 3 else [],
        milestones={key: partial(_is_set, key=key, value=value) for key, value in wanted.items()},
        changes=[f"setting:{key}" for key in wanted],
        oracle=[open_shade(), *steps],
    )


def _is_set(world: World, key: str, value: object) -> bool:
    return bool(world.settings[key] == value)
