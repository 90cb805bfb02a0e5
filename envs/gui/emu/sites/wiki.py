"""wiki.example: an encyclopaedia of countries that are drawn for the task, with tables and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Activate, Command, Event
from vlrl.envs.gui.emu.sites.site import Fields, left, link, page, paragraph, site
from vlrl.envs.gui.emu.widgets import Button, Divider, Entry, Label, Row, Widget, section

HOST = "wiki.example"


@dataclass(frozen=True)
class Article:
    """A page.

    Attributes:
        facts: (label, value) of its table; a value that is the title of an article leads to it.
    """

    title: str
    text: str
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Where it is."""
        return "/" + self.title.lower().replace(" ", "-")


LIBRARY = (
    Article(
        "Ostavia", "Ostavia is a country by the sea.", (("Capital", "Port Lume"), ("Area", "41 200 km²"))
    ),
    Article("Port Lume", "Port Lume is the capital of Ostavia.", (("Founded", "1412"), ("River", "Ister"))),
    Article("Ister", "The Ister is a river of Ostavia.", (("Length", "318 km"),)),
)


def articles(reader: Reader) -> tuple[Article, ...]:
    """All of them."""
    found = reader.data_of("wiki")
    return found if isinstance(found, tuple) else LIBRARY


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The index, or an article."""
    known = articles(reader)
    if path == "/":
        words = str(fields.get("search", "")).lower()
        found = [article for article in known if words in f"{article.title} {article.text}".lower()]
        return page(
            "Encyclopaedia",
            Row(
                Entry("search", "Search", fields.get("search", ""), hint="Search…", grow=1),
                Button("find", "Search"),
            ),
            *(link(HOST + article.path, article.title) for article in found),
        )
    article = next((article for article in known if article.path == path), None)
    if article is None:
        return None
    titles = {other.title: other for other in known}
    rows = []
    for label, value in article.facts:
        target = titles.get(value)
        shown = Label(value) if target is None else link(HOST + target.path, value)
        rows += [left(Label(label, "muted", width=130), shown), Divider()]
    return page(
        article.title,
        paragraph(article.text, reader),
        section("Facts", *rows) if rows else None,
        link(f"{HOST}/", "All articles"),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Straight to what has just the title that is searched for."""
    match event:
        case Command("find") | Activate("search"):
            wanted = str(fields.get("search", "")).strip().lower()
            return next((one.path for one in articles(system) if one.title.lower() == wanted), path)
    return path


WIKI = site(HOST, "Encyclopaedia", "text", build, handle)
