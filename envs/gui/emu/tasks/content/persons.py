"""People drawn for tasks: the contacts of somebody."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.contacts import Contact, sorted_people
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click
from vlrl.envs.gui.emu.task import Draw

FIRST = (
    *(
        "Aisha",
        "Bela",
        "Clara",
        "Dimitri",
        "Elena",
        "Felix",
        "Grace",
        "Henrik",
        "Iris",
        "Jamal",
        "Karin",
        "Luis",
    ),
    *(
        "Mona",
        "Noah",
        "Oskar",
        "Petra",
        "Quentin",
        "Rania",
        "Stefan",
        "Tomoko",
        "Uma",
        "Viktor",
        "Wanda",
        "Zoe",
    ),
)
LAST = (
    *("Abbott", "Bauer", "Conti", "Dahl", "Evans", "Fischer", "Garcia", "Haddad", "Ivanov", "Jensen", "Kaya"),
    *("Lopez", "Meyer", "Novak", "Okoro", "Perez", "Rossi", "Sato", "Tanaka", "Ueda", "Vogel", "Weber"),
)
CITIES = ("Aarhus", "Bergen", "Cork", "Dresden", "Evora", "Florence", "Ghent", "Helsinki", "Lyon", "Porto")


def phone(draw: Draw) -> str:
    """A number as "555-0182"."""
    return f"{draw.number(200, 989)}-{draw.number(1000, 9989)}"


def people(draw: Draw, count: int) -> tuple[Contact, ...]:
    """Contacts with different first and last names, in the order of the list."""
    names = zip(draw.picks(FIRST, count), draw.picks(LAST, count), strict=True)
    return sorted_people(tuple(person(draw, f"{first} {last}") for first, last in names))


def person(draw: Draw, name: str) -> Contact:
    """One with a name."""
    email = name.lower().replace(" ", ".") + draw.pick(("@mail.example", "@post.example", "@home.example"))
    return Contact(name, phone(draw), email, draw.pick(CITIES))


def chosen(name: str) -> list[Intent]:
    """How a person is shown."""
    return [choose("person", name)]


def back(draw: Draw) -> list[Intent]:
    """Steps from a person to the list, where only one of the two is seen."""
    return [click("back")] if draw.looks["form"] == "mobile" else []
