"""Forms in the browser that join and book: a membership, a flight."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.oracle.intents import choose, click, type_into
from vlrl.envs.gui.emu.records import booking_record, member_record
from vlrl.envs.gui.emu.sites import club, fly
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.web import PEOPLE, browse, flights, follow, is_at
from vlrl.envs.gui.emu.wording import listed, worded


@template("forms/sign_up", levels=(1, 2, 3))
def sign_up(draw: Draw) -> Setup:
    """Somebody is to become a member; at higher levels with interests, without the newsletter."""
    name, plan = draw.pick(PEOPLE), draw.pick(tuple(club.PLANS))
    likes = tuple(key for key in club.INTERESTS if draw.number(0, 1)) if draw.level > 1 else ()
    email = name.lower().replace(" ", ".") + "@delta.example"
    password = draw.pick(("lantern", "meadow", "compass", "thimble")) + str(draw.number(10, 9999))
    has_news = draw.level < 3
    member = club.Member(
        name, email, password, draw.number(1930, 2010), draw.pick(club.COUNTRIES), plan, likes, has_news
    )
    texts = {"name": name, "email": email, "password": password, "again": password, "year": str(member.year)}
    goal = "{name} wants to become a member of {host}: e-mail {email}, password {password}, born {year}, "
    goal += "{country}, membership {plan}, {likes}, {news}. Fill in the form."
    interests = worded("interests: {likes}", likes=listed(likes)) if likes else worded("no interests")
    news = worded(f"{'with' if has_news else 'without'} the newsletter")
    return Setup(
        goal=worded(
            goal,
            **{"name": name, "host": club.HOST, "email": email, "password": password, "year": member.year},
            **{"country": member.country, "plan": club.PLANS[plan], "likes": interests, "news": news},
        ),
        windows=[("browser", f"{club.HOST}/join")] if draw.level == 1 else [],
        milestones={
            "begun": lambda world: (
                bool(world.store.get("club"))
                or any(dict(tab.fields).get("name") == name for tab in _tabs(world))
            ),
            "joined": (3, lambda world: world.store.get("club") == (member,)),
        },
        changes=[member_record(name)],
        oracle=[
            *([] if draw.level == 1 else [*browse(f"{club.HOST}/"), *follow(f"{club.HOST}/join")]),
            *(type_into(id, text) for id, text in texts.items()),
            choose("country", member.country),
            choose("plan", plan),
            *(click(f"likes.{key}") for key in likes),
            *([] if has_news else [click("newsletter")]),
            click("terms"),
            click("join"),
        ],
    )


def _tabs(world: World) -> tuple[Any, ...]:
    browser = world.app("browser")
    return () if browser is None else browser.tabs


@template("forms/flight", levels=(1, 2, 3))
def flight(draw: Draw) -> Setup:
    """A flight is to be booked: at level 1 a certain one of those shown, then the cheapest, the shortest."""
    start, end = draw.picks(fly.CITIES, 2)
    day = draw.number(2, 8)
    known = flights(draw, start, end, day, 4 + draw.level)
    there = [one for one in known.flights if (one.start, one.day) == (start, day)]
    which = {1: "number", 2: "price", 3: "minutes"}[draw.level]
    chosen = draw.pick(there) if draw.level == 1 else min(there, key=lambda one: int(getattr(one, which)))
    word = {1: "flight {number}", 2: "the cheapest flight", 3: "the flight that takes the least time"}
    booking = fly.Booking(
        chosen.number, draw.pick(PEOPLE), draw.pick(tuple(fly.SEATS)), draw.number(0, 1) == 1
    )
    found = f"{fly.HOST}/from/{start}/{end}/{day}"
    search = [choose("from", start), choose("to", end), *[click("day.more")] * (day - 1), click("search")]
    if draw.level > 1:
        search = [*browse(f"{fly.HOST}/"), *search, choose("order", which)]
    bag = worded(f"{'with' if booking.has_bag else 'without'} a suitcase")
    said = worded(word[draw.level], number=chosen.number)
    return Setup(
        goal=worded(
            "Book {flight} from {start} to {end} on {day} June at {host} for {name}, {seat} seat, {bag}.",
            **{"flight": said, "start": start, "end": end, "day": day, "host": fly.HOST},
            **{"name": booking.name, "seat": booking.seat, "bag": bag},
        ),
        data={"fly": known},
        windows=[("browser", found)] if draw.level == 1 else [],
        milestones={
            "chosen": lambda world: (
                is_at(f"{fly.HOST}/book/{chosen.number}")(world) or bool(world.store["fly"].bookings)
            ),
            "booked": (2, lambda world: world.store["fly"].bookings == (booking,)),
        },
        changes=[booking_record(booking.flight, booking.name)],
        oracle=[
            *([] if draw.level == 1 else search),
            click(f"book.{chosen.number}"),
            type_into("passenger", booking.name),
            choose("seat", booking.seat),
            *([click("bag")] if booking.has_bag else []),
            click("pay"),
        ],
    )
