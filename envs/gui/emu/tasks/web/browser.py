"""Browsing: addresses, links, tabs and bookmarks."""

from __future__ import annotations

from vlrl.envs.gui.emu.oracle.intents import (
    choose,
    click,
)
from vlrl.envs.gui.emu.records import bookmark_record
from vlrl.envs.gui.emu.sites import wiki
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.web import (
    browse,
    follow,
    is_at,
    lands,
    library,
    visit,
)
from vlrl.envs.gui.emu.wording import chained, listed, quoted, worded

WIKI = f"{wiki.HOST}/"


def page_of(title: str) -> str:
    """The address of an article."""
    return wiki.HOST + wiki.Article(title, "").path


@template("browser/open_page", levels=(1, 2, 3))
def open_page(draw: Draw) -> Setup:
    """An address is given; at level 2 the title of an article, at level 3 one that others lead to."""
    known = lands(draw, 4 + draw.level)
    land = draw.pick(known)
    title = draw.pick((land.name, land.capital, land.river)) if draw.level < 3 else land.river
    if draw.level == 1:
        goal, oracle = worded("go to {page}.", page=page_of(title)), browse(page_of(title))
    elif draw.level == 2:
        goal = worded("open the article “{title}” of the Encyclopaedia, {host}.", title=title, host=wiki.HOST)
        oracle = browse(WIKI)
        oracle += follow(page_of(title))
    else:
        goal = "open the Encyclopaedia, {host}. Find the river at which the capital of {land} lies, and open "
        goal = worded(goal + "its article.", host=wiki.HOST, land=land.name)
        oracle = browse(WIKI)
        oracle += follow(page_of(land.name), page_of(land.capital), page_of(land.river))
    return Setup(
        goal=worded("In the {app}, {goal}", app=tr("Browser"), goal=goal),
        data={"wiki": library(draw, known)},
        milestones={
            **({} if draw.level == 1 else {"site": is_at(f"{wiki.HOST}/*")}),
            "page": (2, is_at(page_of(title))),
        },
        oracle=oracle,
    )


@template("browser/bookmark", levels=(1, 2, 3))
def bookmark(draw: Draw) -> Setup:
    """Bookmark as many pages as the level says, in the order of the goal."""
    known = lands(draw, 5)
    titles = draw.picks([land.name for land in known] + [land.capital for land in known], draw.level)
    oracle = browse(WIKI)
    for title in titles:
        oracle += [*([] if title == titles[0] else visit(WIKI)), *follow(page_of(title)), click("bookmark")]
    wanted = tuple(page_of(title) for title in titles)
    told = chained("{first}, then {next}", [quoted(title) for title in titles])
    return Setup(
        goal=worded(
            "At {host}, open and bookmark {pages} in the {app}, and nothing else.",
            host=wiki.HOST,
            pages=told,
            app=tr("Browser"),
        ),
        data={"wiki": library(draw, known)},
        milestones={
            "there": lambda world: is_at(page_of(titles[0]))(world) or bool(world.store.get("browser")),
            "kept": (2, lambda world: world.store.get("browser") == wanted),
        },
        changes=[bookmark_record(address) for address in wanted],
        oracle=oracle,
    )


@template("browser/tabs", levels=(1, 2, 3))
def tabs(draw: Draw) -> Setup:
    """Each site in a tab of its own; from level 2 on the first is to be shown again at the end."""
    hosts = draw.picks(("shop.example", "club.example", "fly.example", "forum.example"), draw.level + 1)
    wanted = [f"{host}/" for host in hosts[: max(2, draw.level)]]
    last = wanted[-1]
    oracle = browse(wanted[0])
    for page in wanted[1:]:
        oracle += [click("new_tab"), *visit(page)]
    told = listed([page.rstrip("/") for page in wanted], ", ")
    goal = "Open {pages} in the {app}, each in a tab of its own, in this order."
    goal = worded(goal, pages=told, app=tr("Browser"))
    if draw.level > 1:
        goal += " " + worded("Then go back to the tab of {host}.", host=hosts[0])
        last, oracle = wanted[0], [*oracle, choose("tab", 1)]

    def all_open(world: World) -> bool:
        browser = world.app("browser")
        return browser is not None and [tab.address for tab in browser.tabs] == wanted

    return Setup(
        goal=goal,
        milestones={
            "first": is_at(*wanted),
            "all": (2, lambda world: all_open(world) and is_at(last)(world)),
        },
        oracle=oracle,
    )
