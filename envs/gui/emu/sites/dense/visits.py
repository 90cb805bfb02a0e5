"""What the dense web remembers of its visitor: cookies that were allowed, newsletters, pop-ups put away."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.seeds import derive_seed

STORE = "web"
"""Where it is among what apps keep."""
OPTIONAL = ("statistics", "marketing")
"""Cookies that one may refuse."""
BANNERS = ("bar", "settings", "dialog")
"""Kinds of cookie banners: a bar with all choices; one that hides the refusal; a dialog before the page."""
NEWSLETTER_OF_THREE = 2
"""So many of three sites put their newsletter in front."""


@dataclass(frozen=True)
class Visits:
    """What sites know.

    Attributes:
        seed: of everything that is sampled for the episode's pages.
        consents: (host, kinds of optional cookies that are allowed) of each site that was answered.
        put_away: hosts whose newsletter is not put in front any more.
        subscribed: (host, e-mail) of each newsletter.
        banners: (host, kind of banner) where it is not the seed's.
        asking: hosts that do put their newsletter in front, whatever the seed says.
    """

    seed: int = 0
    consents: tuple[tuple[str, tuple[str, ...]], ...] = ()
    put_away: tuple[str, ...] = ()
    subscribed: tuple[tuple[str, str], ...] = ()
    banners: tuple[tuple[str, str], ...] = ()
    asking: tuple[str, ...] = ()

    def consent(self, host: str) -> tuple[str, ...] | None:
        """The optional cookies that a site may set; None before it was answered."""
        return dict(self.consents).get(host)

    def banner(self, host: str) -> str:
        """The kind of banner that a site has."""
        return dict(self.banners).get(host) or BANNERS[derive_seed("banner", host, self.seed) % len(BANNERS)]

    def asks(self, host: str) -> bool:
        """Whether a site still puts its newsletter in front; only after its cookies were answered."""
        if host in self.put_away or self.consent(host) is None:
            return False
        return host in self.asking or derive_seed("asks", host, self.seed) % 3 < NEWSLETTER_OF_THREE


def is_dense(reader: Reader) -> bool:
    """Whether pages are like real ones."""
    return bool(reader.setting("pages") == "dense")


def visits_of(reader: Reader) -> Visits:
    """What sites know now."""
    found = reader.data_of(STORE)
    return found if isinstance(found, Visits) else Visits()


def allow(system: System, host: str, kinds: tuple[str, ...]) -> None:
    """Answer a site's banner."""
    now = visits_of(system)
    others = tuple(one for one in now.consents if one[0] != host)
    system.keep_for(STORE, replace(now, consents=(*others, (host, kinds))))


def put_away(system: System, host: str, email: str = "") -> bool:
    """Put a site's newsletter away, with an address to send it to or without."""
    now = visits_of(system)
    joined = now.subscribed
    if email:
        joined = (*(one for one in joined if one[0] != host), (host, email))
    away = (*(one for one in now.put_away if one != host), host)
    return system.keep_for(STORE, replace(now, put_away=away, subscribed=joined))
