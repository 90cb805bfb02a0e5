"""The dense web: cookies to refuse, accounts to sign in to, lists without an end, newsletters in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vlrl.envs.gui.emu.oracle.intents import Intent, answer, click, open_app, type_into
from vlrl.envs.gui.emu.records import READINGS, listing_record, newsletter_record
from vlrl.envs.gui.emu.sites import market, power
from vlrl.envs.gui.emu.sites.dense.visits import OPTIONAL, STORE, Visits
from vlrl.envs.gui.emu.sites.site import price
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.web import PEOPLE, TOWNS_OF_SHOP, browse, follow, is_at, visit
from vlrl.envs.gui.emu.wording import listed, worded

DENSE = {"pages": "dense"}
HOSTS = ("shop.example", "wiki.example", "forum.example", "fly.example", "club.example", "market.example")
THINGS = ("bicycle", "table", "lamp", "sofa", "guitar", "tent", "mirror", "kettle", "piano", "ladder")
KINDS = ("Old", "Blue", "Small", "Oak", "Folding", "Tall", "Red", "Heavy")
MONTHS = ("January", "February", "March", "April", "May")
LIST_SIZE = {1: 26, 2: 42, 3: 60}


def visits(draw: Draw, **known: Any) -> Visits:
    """What sites know at the beginning: of what is drawn, the seed."""
    return Visits(seed=draw.number(0, 2**30), **known)


def consent_is(host: str, kinds: tuple[str, ...]) -> Predicate:
    """Whether a site's banner was answered so."""

    def holds(world: World) -> bool:
        given = world.store[STORE].consent(host)
        return given is not None and set(given) == set(kinds)

    return holds


@template("web/cookies", levels=(1, 2, 3))
def cookies(draw: Draw) -> Setup:
    """Cookies are to be refused: by a button, by unchecking them; at level 3 one kind only, at two sites."""
    hosts = draw.picks(HOSTS, 1 + draw.level // 3)
    kept = {host: (draw.pick(OPTIONAL),) if draw.level == 3 and host == hosts[0] else () for host in hosts}
    banner = {1: draw.pick(("bar", "dialog")), 2: "settings", 3: "settings"}[draw.level]
    told = [
        worded(
            "at {host} allow cookies for {kind} and no others that are optional"
            if kinds
            else "at {host} allow only the necessary cookies",
            host=host,
            kind=" ".join(kinds),
        )
        for host, kinds in kept.items()
    ]
    oracle: list[Intent] = [] if draw.level == 1 else [open_app("browser")]
    for host, kinds in kept.items():
        oracle += [] if draw.level == 1 else visit(f"{host}/")
        if banner != "settings":
            oracle.append(click("cookies.reject"))
            continue
        refused = [click(f"cookies.{kind}") for kind in OPTIONAL if kind not in kinds]
        oracle += [click("cookies.choose"), *refused, click("cookies.save")]
    return Setup(
        goal=worded("In the {app}, {goal}", app=tr("Browser"), goal=f"{listed(told, ', and ')}."),
        settings=DENSE,
        data={STORE: visits(draw, banners=tuple((host, banner) for host in hosts))},
        windows=[("browser", f"{hosts[0]}/")] if draw.level == 1 else [],
        milestones={f"cookies {host}": consent_is(host, kinds) for host, kinds in kept.items()},
        oracle=oracle,
    )


def account(draw: Draw) -> power.Account:
    """A customer of the supplier of electricity."""
    who = draw.pick(PEOPLE).lower().replace(" ", ".")
    password = draw.pick(("copper", "willow", "harvest", "anchor")) + str(draw.number(100, 9999))
    bills = tuple((month, 100 * draw.number(20, 180) + draw.number(0, 99)) for month in MONTHS)
    first = draw.number(2_000, 60_000)
    return power.Account(who, password, bills, (first, first + draw.number(80, 400)))


def passwords(draw: Draw, own: power.Account) -> str:
    """A file with the passwords of many sites."""
    lines = [f"{host}: {account(draw).user} / {account(draw).password}" for host in draw.picks(HOSTS, 4)]
    lines.insert(draw.number(0, 4), f"{power.HOST}: {own.user} / {own.password}")
    return "\n".join(lines)


def power_of(world: World) -> power.Account:
    """The account as it is now."""
    return power.account_of(world.store["power"])


@template("web/login", levels=(1, 2, 3))
def login(draw: Draw) -> Setup:
    """Sign in; then what a bill was, with the password from a file; then give a reading and sign out."""
    own, path = account(draw), "/Documents/passwords.txt"
    month, cents = draw.pick(own.bills)
    reading = own.readings[-1] + draw.number(50, 400)
    sign_in = [type_into("user", own.user), type_into("password", own.password), click("sign_in")]
    known = "as {user} with the password {password}"
    if draw.level > 1:
        known = "with the user name and password in {path}"
    goal = f"Sign in at {{host}} {known}"
    goal += {
        1: ".",
        2: ", and look up the bill for {month}. Answer with the amount as it is shown.",
        3: ", send the new reading {reading}, and sign out.",
    }[draw.level]
    fields = {"user": own.user, "password": own.password, "path": path, "month": month, "reading": reading}
    start = [*browse(f"{power.HOST}/"), *follow(f"{power.HOST}/sign-in")]
    if draw.level == 3:
        end = [type_into("reading", str(reading)), click("give"), click("sign_out")]
    else:
        end = [answer(price(cents))] if draw.level == 2 else []
    readings = (*own.readings, reading) if draw.level == 3 else own.readings
    is_done = replace(own, readings=readings, is_in=draw.level < 3)
    return Setup(
        goal=worded(goal, host=power.HOST, **fields),
        settings=DENSE,
        files={path: passwords(draw, own)} if draw.level > 1 else {},
        data={STORE: visits(draw), "power": own},
        windows=[("browser", f"{power.HOST}/sign-in")] if draw.level == 1 else [],
        milestones={
            "signed in": lambda world: power_of(world).is_in or power_of(world).readings != own.readings,
            **({"sent": (2, lambda world: power_of(world) == is_done)} if draw.level == 3 else {}),
        },
        answer=price(cents) if draw.level == 2 else None,
        changes=[READINGS] if draw.level == 3 else [],
        over=lambda world: power_of(world).is_locked or len(power_of(world).readings) > len(readings),
        oracle=[*([] if draw.level == 1 else start), *sign_in, *end],
    )


def stock(draw: Draw, count: int) -> tuple[market.Listing, ...]:
    """A long list of different things; no two cost the same."""
    names = [f"{kind} {thing}" for kind in KINDS for thing in THINGS]
    prices = draw.picks(range(60, 900), count)
    return tuple(
        market.Listing(1000 + index, title, draw.pick(TOWNS_OF_SHOP), 25 * price)
        for index, (title, price) in enumerate(zip(draw.picks(names, count), prices, strict=True))
    )


@template("web/lazy", levels=(1, 2, 3))
def lazy(draw: Draw) -> Setup:
    """Something far down a list that gets longer as one scrolls: opened, its price, one of two saved."""
    known = list(stock(draw, LIST_SIZE[draw.level]))
    at = draw.number(12 * draw.level, len(known) - 3)
    wanted, where = known[at], f"{market.HOST}{known[at].path}"
    goal = "open the listing “{title}”."
    if draw.level == 2:
        goal = "find the listing “{title}”. What does it cost? Answer with the price as it is shown."
    if draw.level == 3:
        other = draw.pick([town for town in TOWNS_OF_SHOP if town != wanted.town])
        twin = draw.number(3, at - 3)
        known[twin] = replace(known[twin], title=wanted.title, town=other)
        goal = "save the listing “{title}” from {town}, and no other."
    record = listing_record(wanted.number)

    saved = tuple(replace(one, is_saved=one is wanted) for one in known)

    def is_saved(world: World) -> bool:
        return bool(world.store["market"] == saved)

    return Setup(
        goal=worded(
            f"At {{host}} in the {{app}}, {goal}",
            host=market.HOST,
            app=tr("Browser"),
            title=wanted.title,
            town=wanted.town,
        ),
        settings=DENSE,
        data={STORE: visits(draw), "market": tuple(known)},
        windows=[("browser", f"{market.HOST}/")] if draw.level == 1 else [],
        milestones={
            "found": lambda world: is_at(where)(world) or is_saved(world),
            **({"saved": (2, is_saved)} if draw.level == 3 else {}),
        },
        answer=price(wanted.price) if draw.level == 2 else None,
        changes=[record] if draw.level == 3 else [],
        max_steps=30 + 5 * at // 2,
        oracle=[
            *([] if draw.level == 1 else browse(f"{market.HOST}/")),
            *follow(where),
            *([answer(price(wanted.price))] if draw.level == 2 else []),
            *([click("save")] if draw.level == 3 else []),
        ],
    )


def is_subscribed(host: str, email: str) -> Predicate:
    """Whether a site sends its newsletter to an address."""
    return lambda world: (host, email) in world.store[STORE].subscribed


@template("web/newsletter", levels=(1, 2, 3))
def newsletter(draw: Draw) -> Setup:
    """Subscribe to what a site puts in front after a while; at level 3 two sites, the address in a file."""
    hosts = draw.picks(HOSTS, 1 + draw.level // 3)
    email = f"{draw.pick(PEOPLE).lower().replace(' ', '.')}{draw.number(1, 99)}@delta.example"
    path = "/Documents/address.txt"
    goal = "Subscribe to the newsletter of {host} with {email}."
    if draw.level == 3:
        goal = "Subscribe to the newsletter of {host} and of {second} with the e-mail address in {path}."
    oracle: list[Intent] = [] if draw.level == 1 else [open_app("browser")]
    for host in hosts:
        oracle += [] if draw.level == 1 else visit(f"{host}/")
        oracle += [type_into("news.email", email), click("news.join")]
    answered = tuple((host, ()) for host in hosts) if draw.level == 1 else ()
    return Setup(
        goal=worded(goal, host=hosts[0], second=hosts[-1], email=email, path=path),
        settings=DENSE,
        files={path: email} if draw.level == 3 else {},
        data={STORE: visits(draw, asking=tuple(hosts), consents=answered)},
        windows=[("browser", f"{hosts[0]}/")] if draw.level == 1 else [],
        milestones={f"subscribed {host}": is_subscribed(host, email) for host in hosts},
        changes=[newsletter_record(host) for host in hosts],
        max_steps=60 if draw.level == 3 else None,
        oracle=oracle,
    )
