"""What is around the content of a page of the dense web: its head, its columns, its foot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.drawing.theme import TONES
from vlrl.envs.gui.emu.input.events import Command
from vlrl.envs.gui.emu.sites import forum, shop, wiki
from vlrl.envs.gui.emu.sites.dense.images import OFFERS, Advert
from vlrl.envs.gui.emu.sites.dense.sheet import Brand
from vlrl.envs.gui.emu.sites.site import Site, left, link, page, paragraph
from vlrl.envs.gui.emu.widgets import (
    Button,
    Column,
    Divider,
    Entry,
    Label,
    Link,
    Row,
    Space,
    Widget,
)
from vlrl.seeds import derive_seed

SECTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "shop.example": (("Shop", "/"), ("Cart", "/cart"), ("Returns", "/contact"), ("About us", "/about")),
    "wiki.example": (("Articles", "/"), ("About", "/about"), ("Donate", "/contact")),
    "forum.example": (("Threads", "/"), ("New thread", "/new"), ("Rules", "/about"), ("Team", "/contact")),
    "fly.example": (("Flights", "/"), ("Baggage", "/about"), ("Service", "/contact")),
    "club.example": (("Club", "/"), ("Join", "/join"), ("Who we are", "/about"), ("Contact", "/contact")),
}
"""Host → (title, path) of what its head leads to."""
COMMON = (("Home", "/"), ("About us", "/about"), ("Contact", "/contact"))
SHORT = 3
"""Links in the head of a phone's pages."""
TEXTS: Mapping[str, tuple[str, str]] = {
    "/about": ("About us", "We are a small team that has kept this site since 2009. There are no others."),
    "/contact": ("Contact", "Write to us at any time. Answers take three working days; letters a week."),
    "/privacy": ("Privacy", "We store what is necessary, and what you allow, for no more than a year."),
}
"""Path → (title, text) of pages that every site has."""
INDEX: Mapping[str, Callable[[Reader], list[tuple[str, str]]]] = {
    wiki.HOST: lambda reader: [(one.title, one.path) for one in wiki.articles(reader)],
    shop.HOST: lambda reader: [(one.name, f"/item/{one.key}") for one in shop.shop_of(reader).goods],
    forum.HOST: lambda reader: [(one.title, f"/thread/{one.number}") for one in forum.threads(reader)],
}
"""Host → (title, path) of all that its search finds; sites that are not here have none."""
WORDS, FIND = "site.words", "site.find"
"""Ids of the search's field and button."""
HEADLINES = (
    "Ten rainy days",
    "Why bridges hum",
    "The mayor answers",
    "A goat at the gate",
    "Bread gets dearer",
    "What tides bring",
    "Old trams return",
    "Chess club wins",
    "How to read maps",
    "Snow in June?",
)
SIDE_WIDTH, COLUMN_AD, WIDE_AD = 140, (140, 118), (320, 56)
MANY_PARTS, AD_AFTER = 6, 4
"""From so many parts on, a page has an advertisement among them, and after which."""


def head(site: Site, fields: Mapping[str, Any], reader: Reader, seed: int, has_ad: bool) -> Column:
    """The name, the search, the sections; above all, once it is there, an advertisement."""
    tones = tuple(TONES)
    brand = Brand(site.title, tones[derive_seed("tone", site.host, seed) % len(tones)])
    search: tuple[Widget, ...] = ()
    if site.host in INDEX:
        entry = Entry(WORDS, f"Search {site.host}", fields.get(WORDS, ""), hint="Search…", grow=1)
        search = (entry, Button(FIND, "Go", kind="tool", icon="search", show_name=False))
    sections = SECTIONS.get(site.host, COMMON)
    links = [
        Link(f"nav.{index}", title, press=Command(f"go:{site.host}{path}"))
        for index, (title, path) in enumerate(sections[: SHORT if reader.is_mobile else None])
    ]
    top = adverts(site.host, seed, "top", 1, WIDE_AD) if has_ad else []
    return Column(
        *top, Row(brand, *(search or (Space(),)), gap=2), Row(*links, Space(), gap=3), Divider(), pad=1
    )


def adverts(host: str, seed: int, where: str, count: int, size: tuple[int, int]) -> list[Advert]:
    """Some advertisements of a page, in pixels of font size 13."""
    found = []
    for index in range(count):
        number = derive_seed("advert", host, where, index, seed)
        found.append(Advert(f"ad.{where}.{index}", number % len(OFFERS), number // 64 % 100, *size))
    return found


def sides(site: Site, reader: Reader, seed: int, has_ads: bool) -> tuple[Column, ...]:
    """Two columns: what others read, and advertisements; the first is the last to be left out."""
    first = derive_seed("read", site.host, seed) % len(HEADLINES)
    titles = [HEADLINES[(first + index) % len(HEADLINES)] for index in range(5)]
    read = [
        Link(f"side.{index}", title, press=Command(f"go:{site.host}/about"))
        for index, title in enumerate(titles)
    ]
    ads = adverts(site.host, seed, "side", 2, COLUMN_AD) if has_ads else (None, None)
    right = Column(Label("Most read", "bold"), *read, ads[0], width=SIDE_WIDTH, pad=1)
    if reader.is_mobile:
        return (right,)
    news = Link("side.news", "Newsletter", press=Command("news.open"))
    links = [
        Link(f"more.{index}", title, press=Command(f"go:{site.host}{path}"))
        for index, (title, path) in enumerate(SECTIONS.get(site.host, COMMON))
    ]
    return right, Column(Label("Sections", "bold"), *links, news, ads[1], width=SIDE_WIDTH, pad=1)


def foot(site: Site, reader: Reader) -> Column:
    """Links that every site has, the cookies and the newsletter among them."""
    links: list[Widget] = [
        Link(f"foot{path}", title, press=Command(f"go:{site.host}{path}"))
        for path, (title, _) in TEXTS.items()
    ]
    links += [Link("cookies.open", "Cookie settings"), Link("news.open", "Newsletter")]
    rows = [links[:3], links[3:]] if reader.is_mobile else [links]
    made = Label(f"© {site.title}, 2009–2026", "small")
    return Column(*(left(*row) for row in rows), made, pad=1)


def common_page(site: Site, path: str, reader: Reader) -> Column | None:
    """A page that every site has: about it, and what its search has found."""
    if path in TEXTS:
        title, text = TEXTS[path]
        return page(title, paragraph(text, reader))
    if path.startswith("/search/") and site.host in INDEX:
        words = path.removeprefix("/search/")
        found = [one for one in INDEX[site.host](reader) if words.lower() in one[0].lower()]
        links = [link(f"{site.host}{where}", title) for title, where in found]
        nothing = None if found else Label("Nothing was found.", "muted")
        return page(f"Results for “{words}”", *links, nothing)
    return None


def with_advert(parts: tuple[Widget, ...], host: str, seed: int) -> tuple[Widget, ...]:
    """The parts of a page with an advertisement among them, if they are many."""
    if len(parts) < MANY_PARTS:
        return parts
    return (*parts[:AD_AFTER], *adverts(host, seed, "inline", 1, WIDE_AD), *parts[AD_AFTER:])
