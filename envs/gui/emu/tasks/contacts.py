"""Tasks of the contacts: add, edit, delete, look up."""

from __future__ import annotations

from collections.abc import Iterable

from vlrl.envs.gui.emu.apps.contacts import Contact, named, people
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, click, open_app, type_into
from vlrl.envs.gui.emu.records import contact_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content import persons
from vlrl.envs.gui.emu.tasks.content.persons import back, chosen
from vlrl.envs.gui.emu.wording import listed, worded

WORDS = {"phone": "phone number", "email": "e-mail address", "city": "city"}


def is_kept(contact: Contact) -> Predicate:
    """Whether somebody is among the contacts, just so."""
    return lambda world: named(world.store.get("contacts"), contact.name) == contact


def others_are(known: tuple[Contact, ...], changed: set[str]) -> Predicate:
    """Whether all but the named are as they were, and nobody else has come."""
    rest = {contact for contact in known if contact.name not in changed}

    def are(world: World) -> bool:
        now = people(world.store.get("contacts"))
        return {contact for contact in now if contact.name not in changed} == rest

    return are


def both(*predicates: Predicate) -> Predicate:
    """All of them."""
    return lambda world: all(predicate(world) for predicate in predicates)


def filled(contact: Contact, keys: tuple[str, ...] = Contact._fields) -> list[Intent]:
    """How the fields are filled."""
    return [type_into(key, getattr(contact, key)) for key in keys]


def setup(
    draw: Draw,
    goal: str,
    known: tuple[Contact, ...],
    milestones: dict[str, Predicate],
    steps: list[Intent],
    names: Iterable[str],
) -> Setup:
    """Set up with the contacts open at level 1 and 2; `names` are those of the contacts that may change."""
    is_open = draw.level < 3
    return Setup(
        goal=goal if is_open else worded("In the app {app}: {goal}", app=tr("Contacts"), goal=goal),
        data={"contacts": known},
        windows=[("contacts", "")] if is_open else [],
        milestones=milestones,
        changes=[contact_record(name) for name in names],
        oracle=[*([] if is_open else [open_app("contacts")]), *steps],
    )


@template("contacts/add", levels=(1, 2, 3))
def add(draw: Draw) -> Setup:
    """One contact, at level 3 two, with two to four of the facts."""
    known, (a, b) = persons.people(draw, 6), draw.picks(persons.FIRST, 2)
    keys = ("name", "phone") if draw.level == 1 else Contact._fields
    news = []
    for first in (a, b)[: 2 if draw.level == 3 else 1]:
        whole = persons.person(
            draw, f"{first} {draw.pick(('Archer', 'Brandt', 'Castel', 'Duarte', 'Egger'))}"
        )
        news.append(Contact(**{key: getattr(whole, key) for key in keys}))
    steps: list[Intent] = []
    for contact in news:
        steps += [*(back(draw) if steps else []), click("new"), *filled(contact, keys), click("save")]
    told = []
    for contact in news:
        facts = (worded(f"{WORDS[key]} {{value}}", value=getattr(contact, key)) for key in keys[1:])
        told.append(worded("add the contact {name} ({facts})", name=contact.name, facts=", ".join(facts)))
    goal = listed(told)
    names = {contact.name for contact in news}
    milestones = {contact.name: both(is_kept(contact), others_are(known, names)) for contact in news}
    return setup(draw, goal[0].upper() + goal[1:] + ".", known, milestones, steps, sorted(names))


@template("contacts/edit", levels=(1, 2, 3))
def edit(draw: Draw) -> Setup:
    """A fact about one to three people has changed."""
    known = persons.people(draw, 4 + 4 * draw.level)
    milestones: dict[str, Predicate] = {}
    words: list[str] = []
    steps: list[Intent] = []
    olds = draw.picks(known, draw.level)
    for old in olds:
        key = draw.pick(("phone", "city"))
        cities = [city for city in persons.CITIES if city != old.city]
        text = persons.phone(draw) if key == "phone" else draw.pick(cities)
        new = old._replace(**{key: text})
        milestones[old.name] = both(is_kept(new), others_are(known, {c.name for c in olds}))
        words.append(worded(f"the {WORDS[key]} of {{name}} to {{value}}", name=old.name, value=text))
        steps += [*(back(draw) if steps else []), *chosen(old.name)]
        steps += [click("edit"), type_into(key, text), click("save")]
    names = [old.name for old in olds]
    goal = worded("Change {changes}.", changes=listed(words))
    return setup(draw, goal, known, milestones, steps, names)


@template("contacts/delete", levels=(1, 2, 3))
def delete(draw: Draw) -> Setup:
    """One or two people, by name or by the city they live in, are to go."""
    known = persons.people(draw, 5 + 3 * draw.level)
    if draw.level < 3:
        gone = [contact.name for contact in draw.picks(known, draw.level)]
        goal = worded("Delete {names} from the contacts.", names=listed(gone))
    else:
        city = draw.pick([contact.city for contact in known])
        gone = [contact.name for contact in known if contact.city == city]
        goal = worded("Delete everybody who lives in {city}.", city=city)
    steps: list[Intent] = []
    for name in gone:
        steps += [*chosen(name), click("delete"), click("delete")]
    rest = {contact for contact in known if contact.name not in gone}

    def is_gone(name: str) -> Predicate:
        def holds(world: World) -> bool:
            now = set(people(world.store.get("contacts")))
            return rest <= now and name not in {contact.name for contact in now}

        return holds

    return setup(draw, goal, known, {name: is_gone(name) for name in gone}, steps, gone)


@template("contacts/rename", levels=(1, 2))
def rename(draw: Draw) -> Setup:
    """Somebody has a new family name and a new address."""
    known = persons.people(draw, 4 + 4 * draw.level)
    old = draw.pick(known)
    name = f"{old.name.split()[0]} {draw.pick(('Archer', 'Brandt', 'Castel', 'Duarte', 'Egger'))}"
    keys = ("name",) if draw.level == 1 else ("name", "email")
    new = old._replace(name=name, email=old.email if draw.level == 1 else persons.person(draw, name).email)
    address = " and has the e-mail address {email}" if len(keys) > 1 else ""
    goal = f"{{name}} is now called {{new}}{address}. Change the contact."
    goal = worded(goal, name=old.name, new=name, email=new.email)
    steps = [*chosen(old.name), click("edit"), *filled(new, keys), click("save")]

    def is_old_gone(world: World) -> bool:
        return named(world.store.get("contacts"), old.name) is None

    renamed = both(is_kept(new), others_are(known, {old.name, name}), is_old_gone)
    return setup(draw, goal, known, {"renamed": renamed}, steps, (old.name, name))


@template("contacts/look_up", levels=(1, 2, 3))
def look_up(draw: Draw) -> Setup:
    """What is known about somebody is to be said."""
    known = persons.people(draw, 4 + 6 * draw.level)
    wanted, key = draw.pick(known), draw.pick(tuple(WORDS))
    said = getattr(wanted, key)
    asked = worded(f"What is the {WORDS[key]} of {{name}}?", name=wanted.name)
    return Setup(
        goal=f"{asked} {worded('Look it up in the app {app}.', app=tr('Contacts'))}",
        data={"contacts": known},
        windows=[("contacts", "")] if draw.level == 1 else [],
        answer=said,
        oracle=[*([] if draw.level == 1 else [open_app("contacts")]), *chosen(wanted.name), answer(said)],
    )


@template("contacts/who_has", levels=(2, 3))
def who_has(draw: Draw) -> Setup:
    """Whose number it is: everybody has to be looked at, until the one is found."""
    known = persons.people(draw, 2 * draw.level)
    at = draw.number(1, len(known) - 1)
    steps: list[Intent] = []
    for contact in known[: at + 1]:
        steps += [*(back(draw) if steps else []), *chosen(contact.name)]
    return Setup(
        goal=worded(
            "Somebody called from {phone}. Who is it? Answer with the name in the contacts.",
            phone=known[at].phone,
        ),
        data={"contacts": known},
        windows=[("contacts", "")],
        answer=known[at].name,
        oracle=[*steps, answer(known[at].name)],
    )
