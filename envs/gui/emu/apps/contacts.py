"""Contacts: people's names, numbers and addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, Reply
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    Column,
    Divider,
    Entry,
    Image,
    Label,
    Line,
    MenuItem,
    Row,
    Rows,
    Space,
    Widget,
    field_row,
)

add_words("""
Contacts = Kontakte = Contacts = Contactos
New contact = Neuer Kontakt = Nouveau contact = Nuevo contacto
Phone = Telefon = Téléphone = Teléfono
E-mail = E-Mail = E-mail = Correo
City = Ort = Ville = Ciudad
Search = Suche = Recherche = Búsqueda
Nobody is chosen. = Niemand ist ausgewählt. = Personne n’est choisi. = No hay nadie elegido.
This name is taken. = Diesen Namen gibt es schon. = Ce nom existe déjà. = Ese nombre ya existe.
Delete the contact? = Kontakt löschen? = Supprimer le contact ? = ¿Eliminar el contacto?
""")
FIELDS = ("name", "phone", "email", "city")
ICONS["person"] = (
    ("purple", "disc", (12, 12, 11)),
    ("white", "disc", (12, 9, 4)),
    ("white", "poly", (5.5, 19, 6.5, 16, 10, 14, 14, 14, 17.5, 16, 18.5, 19, 15, 21.5, 9, 21.5)),
)
WORDS = {"name": "Name", "phone": "Phone", "email": "E-mail", "city": "City"}


class Contact(NamedTuple):
    """A person; the app keeps a tuple of these in the order of their names, which are all different."""

    name: str
    phone: str = ""
    email: str = ""
    city: str = ""


@dataclass(frozen=True)
class Contacts:
    """What is shown.

    Attributes:
        person: name of the one who is chosen; None for nobody.
        search: what the names in the list contain.
        mode: "view", "edit", or "new".
        name: what stands in the fields while they are edited, and so on.
    """

    person: str | None = None
    search: str = ""
    mode: str = "view"
    name: str = ""
    phone: str = ""
    email: str = ""
    city: str = ""


def people(data: object) -> tuple[Contact, ...]:
    """What the app keeps."""
    return data if isinstance(data, tuple) else ()


def sorted_people(found: tuple[Contact, ...]) -> tuple[Contact, ...]:
    """Contacts sorted by their names."""
    return tuple(sorted(found, key=lambda contact: (contact.name.casefold(), contact)))


def named(data: object, name: str | None) -> Contact | None:
    """The person of a name."""
    return next((contact for contact in people(data) if contact.name == name), None)


def start(argument: str, reader: Reader) -> Contacts:
    """Start with nobody chosen."""
    return Contacts()


def build(state: Contacts, reader: Reader) -> Widget:
    """The list at the left and the person at the right; one after the other on a phone."""
    if not reader.is_mobile:
        return Row(_list(state, reader), Divider(), _person(state, reader), gap=2, pad=2, grow=1)
    if state.person is None and state.mode == "view":
        return Column(_list(state, reader), pad=2)
    back = Row(Button("back", tr("Back"), kind="flat", icon="back"), Space())
    return Column(back if state.mode == "view" else None, _person(state, reader), pad=2)


def _list(state: Contacts, reader: Reader) -> Widget:
    wanted = state.search.casefold()
    menu = (MenuItem("edit", tr("Edit")), MenuItem("delete", tr("Delete")))
    lines = [
        Line(contact.name, (contact.name,), icon="person")
        for contact in people(reader.data)
        if wanted in contact.name.casefold()
    ]
    return Column(
        Entry("search", tr("Search"), state.search, hint=tr("Search")),
        Rows("person", tr("Contacts"), lines, state.person, menu=menu),
        Button("new", tr("New contact"), icon="plus"),
        width=150,
        grow=1 if reader.is_mobile else 0,
    )


def _person(state: Contacts, reader: Reader) -> Widget:
    if state.mode != "view":
        entries = (
            field_row(tr(WORDS[key]), Entry(key, tr(WORDS[key]), getattr(state, key), grow=1), width=60)
            for key in FIELDS
        )
        buttons = Row(
            Space(),
            Button("save", tr("Save"), kind="primary", enabled=bool(state.name.strip())),
            Button("cancel", tr("Cancel")),
        )
        title = tr("New contact") if state.mode == "new" else tr("Edit")
        return Column(Label(title, "title"), *entries, Space(), buttons, gap=2, grow=2)
    person = named(reader.data, state.person)
    if person is None:
        return Column(Space(), Label(tr("Nobody is chosen."), "muted", align="center"), Space(), grow=2)
    facts = (field_row(tr(WORDS[key]), Label(getattr(person, key), grow=1), width=60) for key in FIELDS[1:])
    return Column(
        Row(Image("person", side=40), Label(person.name, "title", grow=1), gap=2),
        Divider(),
        *facts,
        Space(),
        Row(Space(), Button("edit", tr("Edit")), Button("delete", tr("Delete"))),
        gap=2,
        grow=2,
    )


def handle(state: Contacts, event: Event, system: System) -> Contacts:
    """Choose, edit, add, remove."""
    match event:
        case Change("person"):
            return replace(state, mode="view")
        case Command("new"):
            system.focus("name")
            return replace(state, mode="new", name="", phone="", email="", city="")
        case Command("edit", on) if person := named(system.data, on or state.person):
            system.focus("name", select=True)
            return replace(state, person=person.name, mode="edit", **person._asdict())
        case Command("delete", on) if on or state.person:
            system.message("delete", tr("Delete the contact?"), ("delete", "cancel"), "question")
            return replace(state, person=on or state.person)
        case Reply("delete", "delete"):
            system.keep(tuple(known for known in people(system.data) if known.name != state.person))
            return replace(state, person=None, mode="view")
        case Command("save") | Activate("name" | "phone" | "email" | "city") if state.name.strip():
            return _save(state, system)
        case Command("back"):
            return replace(state, person=None)
        case Command("cancel"):
            return replace(state, mode="view")
    return state


def _save(state: Contacts, system: System) -> Contacts:
    contact = Contact(*(getattr(state, key).strip() for key in FIELDS))
    before = state.person if state.mode == "edit" else None
    others = tuple(known for known in people(system.data) if known.name != before)
    if named(others, contact.name):
        system.focus("name", select=True)
        system.message("taken", tr("This name is taken."), icon="warning")
        return state
    if not system.keep(sorted_people((*others, contact))):
        return state
    return replace(state, person=contact.name, mode="view")


CONTACTS = register(App("contacts", "Contacts", "contacts", start, build, handle, size=(440, 300)))
