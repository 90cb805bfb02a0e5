"""The tabs of a browser: their histories, and how the pages of the dense web are loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.limits import HISTORY
from vlrl.envs.gui.emu.sites.dense.loading import FIRST_ROWS, READY
from vlrl.envs.gui.emu.sites.site import SITES, Site
from vlrl.envs.gui.emu.strings import tr

START = "start"


@dataclass(frozen=True)
class Tab:
    """One of the pages that are open; the later attributes are those of the dense web.

    Attributes:
        history: addresses, and `at` which of them is shown.
        fields: of the forms of the page.
        pending: the address that was asked for and has not answered, while the page before is still shown.
        since_ms: when that was asked for; without one, when the page that is shown was.
        stage: how much of the page is there; see `loading`.
        rows: how many parts of a long list are there.
        more_ms: since when more are on their way; None if none are.
        is_asked: whether the page has put its newsletter in front.
    """

    number: int
    history: tuple[str, ...] = (START,)
    at: int = 0
    fields: tuple[tuple[str, Any], ...] = ()
    pending: str = ""
    since_ms: int = 0
    stage: int = READY
    rows: int = FIRST_ROWS
    more_ms: int | None = None
    is_asked: bool = False

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


def known_address(address: str) -> str:
    """An address as it is typed, by host and path."""
    host, _, path = address.strip().removeprefix("http://").removeprefix("https://").partition("/")
    host = host.lower().removeprefix("www.")
    return f"{host}/{path}" if host in SITES else START if host in ("", START) else address.strip()


def opened(tab: Tab, address: str, time_ms: int, stage: int = READY) -> Tab:
    """The tab at an address; what lay ahead in its history is forgotten."""
    history = (*tab.history[: tab.at + 1], address)[-HISTORY:]
    return Tab(tab.number, history, len(history) - 1, since_ms=time_ms, stage=stage)


def stepped(tab: Tab, step: int, time_ms: int) -> Tab:
    """The tab a page further back or forward, which is there at once."""
    return Tab(tab.number, tab.history, tab.at + step, since_ms=time_ms)


def with_tab(state: Browser, tab: Tab) -> Browser:
    """The browser with a tab in the place of the one with its number."""
    return replace(state, tabs=tuple(tab if one.number == tab.number else one for one in state.tabs))


def shown(state: Browser, tab: Tab) -> Browser:
    """The browser with a tab's address in the bar."""
    address = tab.pending or tab.address
    return replace(with_tab(state, tab), address="" if address == START else address)
