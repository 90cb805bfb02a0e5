"""What the tasks of the emulated web are drawn from, and the steps that they share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.envs.gui.emu.oracle.intents import Intent, click, key, open_app, type_into
from vlrl.envs.gui.emu.sites import fly, forum, shop
from vlrl.envs.gui.emu.sites.wiki import Article
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Predicate

STARTS = (
    "Al",
    "Bor",
    "Cal",
    "Dun",
    "El",
    "Fer",
    "Gal",
    "Hol",
    "Kar",
    "Lor",
    "Mar",
    "Nor",
    "Or",
    "Pel",
    "Sar",
    "Tor",
)
LANDS = ("avia", "onia", "istan", "mark", "land", "eria")
TOWNS = ("ville", "stad", "burg", "ford", "haven", "minster")
STREAMS = ("ine", "une", "ow", "er", "emse", "ava")
PEOPLE = (
    "Ada Brook",
    "Bela Costa",
    "Cora Lind",
    "Dario Holm",
    "Edda Moss",
    "Fritz Keller",
    "Gina Ito",
    "Henk Duval",
)
STREETS = ("Mill Lane", "Harbour Road", "Oak Street", "Station Square", "Church Hill", "Long Row")
TOWNS_OF_SHOP = ("Ashford", "Brigg", "Calne", "Derby", "Ely", "Frome")


@dataclass(frozen=True)
class Land:
    """A country as it is in the encyclopaedia."""

    name: str
    capital: str
    river: str
    area: int
    founded: int
    length: int


def lands(draw: Draw, count: int) -> list[Land]:
    """Countries that no two facts are the same of."""

    def names(endings: tuple[str, ...]) -> list[str]:
        return [start + draw.pick(endings) for start in draw.picks(STARTS, count)]

    numbers = range(count)
    areas, lengths = (
        [draw.number(100, 999) + 1000 * at for at in draw.picks(numbers, count)] for _ in range(2)
    )
    years = [1100 + 90 * at + draw.number(0, 80) for at in draw.picks(numbers, count)]
    columns = (names(LANDS), names(TOWNS), names(STREAMS), areas, years, lengths)
    return [Land(*row) for row in zip(*columns, strict=True)]


def library(draw: Draw, known: list[Land]) -> tuple[Article, ...]:
    """Three articles for each country, in no order."""
    articles: list[Article] = []
    for land in known:
        capital = f"{land.capital} is the capital of {land.name}. It lies at the river {land.river}."
        facts = (("Capital", land.capital), ("Area", f"{land.area} km²"), ("Language", f"{land.name[:4]}ish"))
        articles += [
            Article(land.name, f"{land.name} is a country. Its capital is {land.capital}.", facts),
            Article(land.capital, capital, (("Founded", str(land.founded)), ("River", land.river))),
            Article(
                land.river, f"The {land.river} flows through {land.name}.", (("Length", f"{land.length} km"),)
            ),
        ]
    return tuple(draw.picks(articles, len(articles)))


def goods(draw: Draw) -> shop.Shop:
    """The shop with prices of the day, no two alike."""
    steps = draw.picks(range(40), len(shop.STOCK))
    return shop.Shop(
        tuple(replace(one, price=495 + 250 * step) for one, step in zip(shop.STOCK, steps, strict=True))
    )


def flights(draw: Draw, start: str, end: str, day: int, count: int) -> fly.Airline:
    """So many flights on a day, and some on others; no two cost or last the same."""
    found = []
    prices, ways = draw.picks(range(30), count + 4), draw.picks(range(30), count + 4)
    for index, (cost, way) in enumerate(zip(prices, ways, strict=True)):
        when = day if index < count else draw.number(1, fly.LAST_DAY)
        back = index >= count
        found.append(
            fly.Flight(
                f"AB {draw.number(10, 99)}{index:02d}",
                end if back else start,
                start if back else end,
                when,
                5 * draw.number(70, 250),
                80 + 7 * way,
                draw.number(0, 2) if index else 0,
                4900 + 1130 * cost,
            )
        )
    return fly.Airline(tuple(draw.picks(found, len(found))))


QUESTIONS = {
    "Slugs in the salad": ("Garden", ("Put sand around it.", "Collect them at night.", "Get a duck or two.")),
    "Night train or bus?": ("Travel", ("The train, always.", "The bus is cheaper.", "Stay another day.")),
    "My screen flickers": ("Computers", ("Change the cable.", "Is it warm?", "Try another lamp.")),
    "Bread does not rise": ("Cooking", ("Use warm water.", "Wait longer.", "Is the yeast fresh?")),
    "Roses in a pot": ("Garden", ("They need a deep one.", "Feed them in May.", "Not in full sun.")),
    "A week on islands": ("Travel", ("Take the small ferry.", "Go in September.", "Bring a tent.")),
    "Which keyboard?": ("Computers", ("A loud one.", "A small one.", "Any but mine.")),
    "Soup for forty": ("Cooking", ("Borrow a second pot.", "Lentils are easy.", "Cut all the day before.")),
}
NAMES = (
    "amber",
    "birk",
    "cleo",
    "dot",
    "ezra",
    "fern",
    "gus",
    "hazel",
    "ivo",
    "juno",
    "kit",
    "lark",
    "milo",
    "nell",
)


def talk(draw: Draw, count: int) -> tuple[forum.Thread, ...]:
    """Threads with a question and three answers, whose likes are all different."""
    found = []
    for number, title in enumerate(draw.picks(tuple(QUESTIONS), count), 41):
        board, answers = QUESTIONS[title]
        who, likes = draw.picks(NAMES, 4), draw.picks(range(1, 30), 4)
        texts = ("I need some advice. What do you say?", *draw.picks(answers, 3))
        posts = tuple(forum.Post(*row) for row in zip(who, texts, likes, strict=True))
        found.append(forum.Thread(number, board, title, posts))
    return tuple(found)


def visit(address: str) -> list[Intent]:
    """Type an address into the browser that is in front."""
    return [type_into("address", address), key("enter")]


def browse(address: str) -> list[Intent]:
    """Start the browser and go somewhere."""
    return [open_app("browser"), *visit(address)]


def follow(*addresses: str) -> list[Intent]:
    """Click links."""
    return [click(f"go:{address}") for address in addresses]


def is_at(*addresses: str) -> Predicate:
    """Whether the front tab shows one of the pages, or a page below an address that ends with a star."""

    def holds(world: World) -> bool:
        browser = world.app("browser")
        return browser is not None and any(
            browser.shown.address.startswith(address[:-1])
            if address.endswith("*")
            else browser.shown.address == address
            for address in addresses
        )

    return holds
