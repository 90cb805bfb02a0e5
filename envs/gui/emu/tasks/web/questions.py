"""Questions that pages answer, and what is to be done with what they say."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    choose,
    click,
    menu,
    open_app,
    type_into,
)
from vlrl.envs.gui.emu.sites import fly, forum, wiki
from vlrl.envs.gui.emu.sites.site import price
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import address, mailbox, numbered, sending, sent
from vlrl.envs.gui.emu.tasks.content.web import (
    Land,
    browse,
    flights,
    follow,
    is_at,
    lands,
    library,
    talk,
    visit,
)
from vlrl.envs.gui.emu.tasks.web.browser import WIKI, page_of
from vlrl.envs.gui.emu.wording import listed, worded

FACTS = {
    "area": ("What is the area of {name}, in km²?", "name", "area"),
    "founded": ("In which year was {name} founded?", "capital", "founded"),
    "length": ("How long is the river {name}, in km?", "river", "length"),
}


@template("browser/look_up", levels=(1, 2, 3))
def look_up(draw: Draw) -> Setup:
    """A fact is asked for; at level 3 the article is two links away from what is said."""
    known = lands(draw, 4 + 2 * draw.level)
    land = draw.pick(known)
    question, at, what = FACTS[draw.pick(tuple(FACTS))]
    goal, way = worded(question, name=getattr(land, at)), [getattr(land, at)]
    if draw.level == 3:
        question, at, what = (
            "How long, in km, is the river at which the capital of {name} lies?",
            "river",
            "length",
        )
        goal = worded(question, name=land.name)
        way = [land.name, land.capital, land.river]
    said = str(getattr(land, what))
    return Setup(
        goal=worded(
            "Look it up in the Encyclopaedia, {host}: {question} Answer with the number.",
            host=wiki.HOST,
            question=goal,
        ),
        data={"wiki": library(draw, known)},
        windows=[("browser", WIKI)] if draw.level == 1 else [],
        milestones={"found": is_at(page_of(getattr(land, at)))},
        answer=said,
        oracle=[*([] if draw.level == 1 else browse(WIKI)), *follow(*map(page_of, way)), answer(said)],
    )


def largest(known: list[Land], what: str) -> Land:
    """Land that has the most of something."""
    return max(known, key=lambda land: int(getattr(land, what)))


@template("browser/compare", levels=(2, 3))
def compare(draw: Draw) -> Setup:
    """Three or four articles are to be read to say which river is the longest, which country the largest."""
    known = lands(draw, 7)
    some = draw.picks(known, draw.level + 1)
    what, at, word = draw.pick(
        (("length", "river", "river is the longest"), ("area", "name", "country is the largest"))
    )
    titles = [str(getattr(land, at)) for land in some]
    said = str(getattr(largest(some, what), at))
    letters = dict(zip("ABCD", titles, strict=False))
    letter = next(letter for letter, title in letters.items() if title == said)
    told = ", ".join(f"{letter}: {title}" for letter, title in letters.items())
    oracle: list[Intent] = [open_app("browser")]
    for title in titles:
        oracle += [*visit(WIKI), *follow(page_of(title))]
    value = str(getattr(largest(some, what), what))
    return Setup(
        goal=worded(
            f"Which {word}? {{places}}. Look it up at {{host}}. Answer with the letter and the number in its "
            "article, as “A 1234”.",
            places=told,
            host=wiki.HOST,
        ),
        data={"wiki": library(draw, known)},
        milestones={"read": is_at(*map(page_of, titles))},
        answer=f"{letter} {value}",
        oracle=[*oracle, answer(f"{letter} {value}")],
    )


@template("browser/thread", levels=(1, 2))
def thread(draw: Draw) -> Setup:
    """Who wrote the answer that most people like, and how many do?"""
    known = talk(draw, 4 * draw.level)
    chosen = draw.pick(known)
    best = max(chosen.posts[1:], key=lambda post: post.likes)
    said = f"{best.author} {best.likes}"
    where = f"{forum.HOST}/thread/{chosen.number}"
    return Setup(
        goal=worded(
            "In the thread “{title}” at {host}, who wrote the answer with the most likes, and how many does "
            "it have? Answer as “anna 5”.",
            title=chosen.title,
            host=forum.HOST,
        ),
        data={"forum": known},
        milestones={"found": is_at(where)},
        answer=said,
        oracle=[*browse(f"{forum.HOST}/"), *follow(where), answer(said)],
    )


@template("browser/cheapest", levels=(2, 3))
def cheapest(draw: Draw) -> Setup:
    """What the cheapest flight costs, at level 3 the cheapest that is direct."""
    start, end = draw.picks(fly.CITIES, 2)
    day, is_direct = draw.number(2, 9), draw.level == 3
    known = flights(draw, start, end, day, 5 + draw.level)
    there = [f for f in known.flights if (f.start, f.day) == (start, day) and not (is_direct and f.stops)]
    said = price(min(flight.price for flight in there))
    return Setup(
        goal=worded(
            f"What does the cheapest {'direct ' if is_direct else ''}flight from {{start}} to {{end}} on "
            "{day} June cost at {host}? Answer with the price as it is shown.",
            start=start,
            end=end,
            day=day,
            host=fly.HOST,
        ),
        data={"fly": known},
        milestones={"found": is_at(f"{fly.HOST}/from/{start}/{end}/{day}")},
        answer=said,
        oracle=[
            *browse(f"{fly.HOST}/"),
            choose("from", start),
            choose("to", end),
            *[click("day.more")] * (day - 1),
            click("search"),
            choose("order", "price"),
            *([click("direct")] if is_direct else []),
            answer(said),
        ],
    )


@template("browser/to_file", levels=(2, 3))
def to_file(draw: Draw) -> Setup:
    """A fact is to be written into a text file; at level 3 two, one a line."""
    known = lands(draw, 6)
    some = draw.picks(known, draw.level - 1)
    texts = [str(land.length) for land in some]
    rivers = listed([land.river for land in some])
    oracle = [open_app("browser")]
    for land in some:
        oracle += [*visit(WIKI), *follow(page_of(land.river))]
    each = " each in a line of its own, in this order," if len(some) > 1 else ""
    goal = (
        f"Look up at {{host}} how many km long {{rivers}} is; write just the number,{each} into a new text "
    )
    goal += "file rivers.txt in Documents."
    path, text = "/Documents/rivers.txt", "\n".join(texts)
    return Setup(
        goal=worded(goal, host=wiki.HOST, rivers=rivers),
        data={"wiki": library(draw, known)},
        milestones={
            "read": is_at(*(page_of(land.river) for land in some)),
            "typed": lambda world: bool((editor := world.app("editor")) and editor.text.strip() == text),
            "saved": (2, lambda world: str(world.read(path)).strip() == text),
        },
        changes=[f"file:{path}"],
        oracle=[
            *oracle,
            open_app("editor"),
            type_into("text", text),
            menu("file", "save_as"),
            type_into("name", "rivers.txt"),
            click("accept"),
        ],
    )


@template("browser/to_mail", levels=(2, 3))
def to_mail(draw: Draw) -> Setup:
    """Somebody asks by mail for a fact that the encyclopaedia has."""
    known = lands(draw, 3 + draw.level)
    land, sender = draw.pick(known), address(draw)
    asked = f"Do you know in which year {land.capital} was founded? Just the year, please."
    if draw.level == 3:
        asked = f"Do you know in which year the capital of {land.name} was founded? Just the year, please."
    letters = mailbox(draw, 4 * draw.level, Letter(0, "inbox", sender, "A question", asked))
    number = numbered(letters, lambda letter: letter.other == sender)[0]
    way = [land.capital] if draw.level == 2 else [land.name, land.capital]
    return Setup(
        goal=worded(
            "Reply to the mail from {person}; what is asked for is at {host}.",
            person=person(sender),
            host=wiki.HOST,
        ),
        data={"wiki": library(draw, known), "mail": letters},
        milestones={
            "looked": is_at(page_of(land.capital)),
            "sent": (3, sent(letters, (sender, "Re: A question", str(land.founded)))),
        },
        changes=sending(letters, (sender, "Re: A question")),
        oracle=[
            open_app("mail"),
            choose("letter", number),
            *browse(WIKI),
            *follow(*map(page_of, way)),
            open_app("mail"),
            click("reply"),
            type_into("body", str(land.founded)),
            click("send"),
        ],
    )
