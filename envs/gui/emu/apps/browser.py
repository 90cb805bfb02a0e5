"""Browser: tabs, an address, the pages of the emulated web, bookmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu import sites
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, KeyPress, Open
from vlrl.envs.gui.emu.limits import HISTORY
from vlrl.envs.gui.emu.sites.site import SITES, Site, left, link, page
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    Column,
    Divider,
    Entry,
    Image,
    Label,
    MenuBar,
    MenuItem,
    Row,
    ScrollArea,
    Space,
    Widget,
    section,
    tabs,
    tool_button,
)
from vlrl.envs.gui.emu.windows.menus import edit_items

add_words("""
Browser = Browser = Navigateur = Navegador
Address = Adresse = Adresse = Dirección
Forward|page = Vorwärts = Suivant = Adelante
New tab = Neuer Tab = Nouvel onglet = Nueva pestaña
Close tab = Tab schließen = Fermer l’onglet = Cerrar pestaña
Bookmark = Lesezeichen setzen = Marquer la page = Guardar marcador
Bookmarks = Lesezeichen = Marque-pages = Marcadores
Sites = Seiten = Sites = Sitios
There is no such page. = Diese Seite gibt es nicht. = Cette page n’existe pas. = Esta página no existe.
""")
ICONS["bag"] = (
    ("orange", "poly", (3, 8, 21, 8, 23, 22, 1, 22)),
    ("dark", "ring", (12, 8, 5, 3.6)),
    ("orange", "box", (5, 8, 19, 13)),
)
START = "start"
MOST_TABS = 6
__all__ = ["BROWSER", "sites"]


@dataclass(frozen=True)
class Tab:
    """One of the pages that are open.

    Attributes:
        history: addresses, and `at` which of them is shown.
        fields: of the forms of the page.
    """

    number: int
    history: tuple[str, ...] = (START,)
    at: int = 0
    fields: tuple[tuple[str, Any], ...] = ()

    @property
    def address(self) -> str:
        """Host and path."""
        return self.history[self.at]


@dataclass(frozen=True)
class Browser:
    """The tabs, which is shown, and what stands in the address bar."""

    tabs: tuple[Tab, ...] = (Tab(1),)
    tab: int = 1
    address: str = ""

    @property
    def shown(self) -> Tab:
        """The tab in front."""
        return next(tab for tab in self.tabs if tab.number == self.tab)


def start(argument: str, reader: Reader) -> Browser:
    """Start with one tab."""
    return _go(Browser(), argument) if argument else Browser()


def bookmarks(reader: Reader) -> tuple[str, ...]:
    """Addresses."""
    return tuple(reader.data or ())


def title_of(address: str) -> str:
    """What a page is called: the last part of its path, or its site."""
    host, _, path = address.partition("/")
    last = path.rpartition("/")[2].replace("-", " ")
    return (last if not last.isdecimal() else "").capitalize() or (
        SITES[host].title if host in SITES else tr("New tab")
    )


def site_of(address: str) -> tuple[Site | None, str]:
    """The site, and the path on it."""
    host, _, path = address.partition("/")
    return SITES.get(host), f"/{path}"


def build(state: Browser, reader: Reader) -> Widget:
    """Menus, tabs, the address, the page."""
    tab = state.shown
    marks = tuple(MenuItem(f"go:{address}", title_of(address)) for address in bookmarks(reader))
    menus = MenuBar(
        (
            "file",
            tr("File"),
            (
                MenuItem("new_tab", tr("New tab"), "ctrl+t"),
                MenuItem("close_tab", tr("Close tab"), "ctrl+w"),
                MenuItem("window.close", tr("Quit"), "ctrl+q"),
            ),
        ),
        ("edit", tr("Edit"), edit_items()),
        ("bookmarks", tr("Bookmarks"), (MenuItem("bookmark", tr("Bookmark"), "ctrl+d"), *marks)),
    )

    def tool(id: str, name: str, icon: str, enabled: bool = True, pressed: bool | None = None) -> Button:
        return tool_button(id, tr(name), icon, enabled=enabled, pressed=pressed)

    names = tuple((one.number, title_of(one.address)[:12]) for one in state.tabs)
    return Column(
        menus,
        Row(
            tabs("tab", names, state.tab),
            tool("new_tab", "New tab", "plus", len(names) < MOST_TABS),
            tool("close_tab", "Close tab", "minus", len(names) > 1),
            Space(),
            gap=0,
        ),
        Row(
            tool("back", "Back", "back", tab.at > 0),
            tool("forward", "Forward|page", "next", tab.at + 1 < len(tab.history)),
            tool("home", "Home", "home"),
            Entry("address", tr("Address"), state.address, hint="www", grow=1),
            tool("bookmark", "Bookmark", "star", pressed=tab.address in bookmarks(reader)),
            gap=0,
            pad=1,
        ),
        Divider(),
        ScrollArea(f"page:{tab.address}", _page(tab, reader)),
        gap=0,
    )


def _page(tab: Tab, reader: Reader) -> Widget:
    site, path = site_of(tab.address)
    shown = site.build(path, dict(tab.fields), reader) if site else None
    if shown is not None:
        return shown
    if tab.address != START:
        return page("404", Label(tr("There is no such page.")), Label(tab.address, "muted"))
    hosts = (
        left(Image(one.icon, side=20), link(f"{one.host}/", one.title), Label(one.host, "small"))
        for one in SITES.values()
    )
    marks = [link(address, title_of(address)) for address in bookmarks(reader) if address.partition("/")[2]]
    return page(
        tr("New tab"), section(tr("Sites"), *hosts), section(tr("Bookmarks"), *marks) if marks else None
    )


def handle(state: Browser, event: Event, system: System) -> Browser:
    """The browser's own buttons; all else goes to the page."""
    tab = state.shown
    match event:
        case Activate("address", str(text)):
            return _go(state, text)
        case Command(id) if id.startswith("go:"):
            return _go(state, id.removeprefix("go:"))
        case Open(address):
            return _go(state, address)
        case Command("back") if tab.at:
            return _shown(state, replace(tab, at=tab.at - 1, fields=()))
        case Command("forward") if tab.at + 1 < len(tab.history):
            return _shown(state, replace(tab, at=tab.at + 1, fields=()))
        case Command("home"):
            return _go(state, START)
        case Command("new_tab") if len(state.tabs) < MOST_TABS:
            new = Tab(1 + max(one.number for one in state.tabs))
            return replace(state, tabs=(*state.tabs, new), tab=new.number, address="")
        case Command("close_tab") if len(state.tabs) > 1:
            kept = tuple(one for one in state.tabs if one is not tab)
            return _shown(replace(state, tabs=kept, tab=kept[-1].number), kept[-1])
        case Change("tab"):
            return _shown(state, tab)
        case Command("bookmark") if tab.address != START:
            known = bookmarks(system)
            others = tuple(address for address in known if address != tab.address)
            system.keep(others if tab.address in known else (*known, tab.address))
        case KeyPress("ctrl+l" | "f6"):
            system.focus("address")
        case Change("address") | Command("back" | "forward" | "new_tab" | "close_tab" | "bookmark"):
            pass
        case _:
            return _on_page(state, event, system)
    return state


def _on_page(state: Browser, event: Event, system: System) -> Browser:
    tab = state.shown
    site, path = site_of(tab.address)
    if site is None:
        return state
    fields = dict(tab.fields)
    if isinstance(event, Change):
        fields[event.id] = event.value
    after = site.handle(path, event, fields, system)
    if after != path:
        return _go(state, site.host + after)
    return _shown(state, replace(tab, fields=tuple(fields.items())))


def _go(state: Browser, address: str) -> Browser:
    """Show an address in the front tab; what lay ahead in its history is forgotten."""
    host, _, path = address.strip().removeprefix("http://").removeprefix("https://").partition("/")
    host = host.lower().removeprefix("www.")
    known = f"{host}/{path}" if host in SITES else START if host in ("", START) else address.strip()
    tab = state.shown
    history = (*tab.history[: tab.at + 1], known)[-HISTORY:]
    return _shown(state, replace(tab, history=history, at=len(history) - 1, fields=()))


def _shown(state: Browser, tab: Tab) -> Browser:
    known = tuple(tab if one.number == tab.number else one for one in state.tabs)
    return replace(state, tabs=known, address="" if tab.address == START else tab.address)


def title(state: Browser) -> str:
    """The page's."""
    return f"{title_of(state.shown.address)} – {tr('Browser')}"


BROWSER = register(App("browser", "Browser", "browser", start, build, handle, title=title, size=(520, 390)))
