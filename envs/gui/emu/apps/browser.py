"""Browser: tabs, an address, the pages of the emulated web, bookmarks."""

from __future__ import annotations

from dataclasses import replace

from vlrl.envs.gui.emu import sites
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts.browsing import (
    START,
    Browser,
    Tab,
    known_address,
    opened,
    shown,
    site_of,
    stepped,
    title_of,
    with_tab,
)
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, KeyPress, Open
from vlrl.envs.gui.emu.sites.dense.images import Coming
from vlrl.envs.gui.emu.sites.dense.loading import (
    MORE_ROWS,
    NEWSLETTER_MS,
    READY,
    ROWS_MS,
    SKELETON,
    Loaded,
    delay_ms,
    has_answered,
    stage_after,
)
from vlrl.envs.gui.emu.sites.dense.overlays import NEWS_OPEN
from vlrl.envs.gui.emu.sites.dense.pages import content, dense_page, has_more, on_furniture
from vlrl.envs.gui.emu.sites.dense.sheet import Underway
from vlrl.envs.gui.emu.sites.dense.visits import is_dense, visits_of
from vlrl.envs.gui.emu.sites.site import SITES, left, link, page
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
    View,
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
Loading… = Wird geladen… = Chargement… = Cargando…
There is no such page. = Diese Seite gibt es nicht. = Cette page n’existe pas. = Esta página no existe.
""")
ICONS["bag"] = (
    ("orange", "poly", (3, 8, 21, 8, 23, 22, 1, 22)),
    ("dark", "ring", (12, 8, 5, 3.6)),
    ("orange", "box", (5, 8, 19, 13)),
)
MOST_TABS = 6
__all__ = ["BROWSER", "sites"]


def start(argument: str, reader: Reader) -> Browser:
    """Start with one tab, whose page is there."""
    if not argument:
        return Browser()
    now = reader.world.time_ms
    return shown(Browser(), opened(Tab(1), known_address(argument), now))


def bookmarks(reader: Reader) -> tuple[str, ...]:
    """Addresses."""
    return tuple(reader.data or ())


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

    names = tuple((one.number, _tab_title(one)[:12]) for one in state.tabs)
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
        Divider() if not (tab.pending or tab.stage < READY) else Underway(),
        _page(f"page:{tab.address}", tab, reader),
        gap=0,
    )


def _tab_title(tab: Tab) -> str:
    return tr("Loading…") if tab.pending or tab.stage == SKELETON else title_of(tab.address)


def _page(id: str, tab: Tab, reader: Reader) -> Widget:
    site, path = site_of(tab.address)
    fields = dict(tab.fields)
    if site is not None and is_dense(reader) and not site.is_bare:
        main = content(site, path, fields, reader)
        if isinstance(main, Column):
            loaded = Loaded(tab.stage, tab.rows, tab.is_asked)
            return dense_page(id, main, site, path, fields, reader, loaded)
    found = site.build(path, fields, reader) if site else None
    return ScrollArea(id, _page_of_browser(tab, reader) if found is None else found)


def _page_of_browser(tab: Tab, reader: Reader) -> Widget:
    if tab.address != START:
        return page("404", Label(tr("There is no such page.")), Label(tab.address, "muted"))
    hosts = (
        left(Image(one.icon, side=20), link(f"{one.host}/", one.title), Label(one.host, "small"))
        for one in SITES.values()
        if not one.is_dense or (is_dense(reader) and not one.is_bare)
    )
    marks = [link(address, title_of(address)) for address in bookmarks(reader) if address.partition("/")[2]]
    return page(
        tr("New tab"), section(tr("Sites"), *hosts), section(tr("Bookmarks"), *marks) if marks else None
    )


def handle(state: Browser, event: Event, system: System) -> Browser:
    """The browser's own buttons; all else goes to the page."""
    tab, now = state.shown, system.world.time_ms
    match event:
        case Activate("address", str(text)):
            return _go(state, text, system)
        case Command(id) if id.startswith("go:"):
            return _go(state, id.removeprefix("go:"), system)
        case Open(address):
            return _go(state, address, system)
        case Command("back") if tab.at:
            return shown(state, stepped(tab, -1, now))
        case Command("forward") if tab.at + 1 < len(tab.history):
            return shown(state, stepped(tab, 1, now))
        case Command("home"):
            return shown(state, opened(tab, START, now))
        case Command("new_tab") if len(state.tabs) < MOST_TABS:
            new = Tab(1 + max(one.number for one in state.tabs))
            return replace(state, tabs=(*state.tabs, new), tab=new.number, address="")
        case Command("close_tab") if len(state.tabs) > 1:
            kept = tuple(one for one in state.tabs if one is not tab)
            return shown(replace(state, tabs=kept, tab=kept[-1].number), kept[-1])
        case Change("tab"):
            return shown(state, tab)
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
    after = on_furniture(site, event, fields, system) if is_dense(system) else None
    if after is None:
        after = site.handle(path, event, fields, system)
    elif fields.get(NEWS_OPEN) is None:
        tab = replace(tab, is_asked=tab.is_asked and visits_of(system).asks(site.host))
    if after and after != path:
        return _go(state, site.host + after, system)
    tab = replace(tab, fields=tuple(fields.items()))
    return with_tab(state, tab) if tab.pending else shown(state, tab)


def _go(state: Browser, address: str, system: System) -> Browser:
    """Show an address in the front tab: at once, or on the dense web when it has answered."""
    known, now = known_address(address), system.world.time_ms
    if is_dense(system) and site_of(known)[0] is not None:
        system.focus("")
        return shown(state, replace(state.shown, pending=known, since_ms=now))
    return shown(state, opened(state.shown, known, now))


def tick(state: Browser, reader: Reader, view: View | None) -> Browser:
    """What the clock does to pages of the dense web."""
    passed = tuple(_later(tab, reader) for tab in state.tabs)
    after = replace(state, tabs=passed)
    if view is not None:
        after = with_tab(after, _seen(after.shown, reader, view))
    if after == state:
        return state
    has_come = after.shown.at != state.shown.at or after.shown.pending != state.shown.pending
    return shown(after, after.shown) if has_come else after


def _later(tab: Tab, reader: Reader) -> Tab:
    """A tab whose page may have answered or got further."""
    now, seed = reader.world.time_ms, visits_of(reader).seed
    if tab.pending:
        if not has_answered(now - tab.since_ms, seed, tab.pending):
            return tab
        tab = opened(tab, tab.pending, tab.since_ms, SKELETON)
    if tab.stage == READY:
        return tab
    return replace(tab, stage=stage_after(now - tab.since_ms, seed, tab.address))


def _seen(tab: Tab, reader: Reader, view: View) -> Tab:
    """The tab in front, whose list may get longer, and which may put its newsletter in front."""
    site, path = site_of(tab.address)
    if site is None or site.is_bare or tab.stage == SKELETON:
        return tab
    now, visits = reader.world.time_ms, visits_of(reader)
    late = delay_ms("newsletter", NEWSLETTER_MS, visits.seed, site.host)
    if not tab.is_asked and now - tab.since_ms >= late and visits.asks(site.host):
        tab = replace(tab, is_asked=True)
    if tab.more_ms is not None:
        if now - tab.more_ms < delay_ms(f"rows {tab.rows}", ROWS_MS, visits.seed, tab.address):
            return tab
        return replace(tab, rows=tab.rows + MORE_ROWS, more_ms=None)
    is_at_end = any(isinstance(one.widget, Coming) and one.seen[1] < one.seen[3] for one in view.placed)
    if is_at_end and has_more(site, path, dict(tab.fields), reader, tab.rows):
        return replace(tab, more_ms=now)
    return tab


def title(state: Browser) -> str:
    """The page's."""
    return f"{title_of(state.shown.address)} – {tr('Browser')}"


BROWSER = register(
    App("browser", "Browser", "browser", start, build, handle, title=title, size=(520, 390), tick=tick)
)
