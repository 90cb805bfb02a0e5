"""Tasks across three apps: what one knows is needed in the others."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.contacts import Contact, named, people, sorted_people
from vlrl.envs.gui.emu.apps.parts.alarms import Alarm, Kept, kept
from vlrl.envs.gui.emu.apps.parts.formulas import written
from vlrl.envs.gui.emu.apps.parts.tables import dumped, name_of, with_cell
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click, key, open_app, slide, type_into
from vlrl.envs.gui.emu.records import alarm_record, contact_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.clock import LABELS, alarms_of, at_time
from vlrl.envs.gui.emu.tasks.content import persons
from vlrl.envs.gui.emu.tasks.content.columns import Table, table
from vlrl.envs.gui.emu.tasks.sheet import FUNCTIONS, entered, opened, reckoned
from vlrl.envs.gui.emu.wording import worded

NOTES = ("reminder", "todo", "plan", "today", "memo")


def read_note(name: str) -> list[Intent]:
    """How a text is looked at."""
    return [open_app("editor"), key("ctrl+o"), type_into("name", name), click("accept")]


def write_note(name: str, text: str) -> list[Intent]:
    """How a text is written and saved."""
    saved = [key("ctrl+shift+s"), type_into("name", name), click("accept")]
    return [open_app("editor"), type_into("text", text), *saved]


def ringing(draw: Draw) -> int:
    """A time for an alarm, in minutes of the day, that neither its form's hour nor its minute stands at."""
    return draw.pick([m for m in range(65, 1435, 5) if m % 60 and m // 60 != 7])


def added(alarm: Alarm) -> list[Intent]:
    """How an alarm is made."""
    steps = [open_app("clock"), click("new"), *at_time(alarm.minutes)]
    return [*steps, type_into("label", alarm.label), click("save")]


def has_alarm(world: World, before: tuple[Alarm, ...], alarm: Alarm) -> bool:
    """Whether this alarm has come and the others have stayed."""
    return set(kept(world.store.get("clock")).alarms) == {*before, alarm}


def text_of(world: World, path: str) -> str:
    """A file's text without blanks around it; "" without a file."""
    text = world.read(path)
    return text.strip() if isinstance(text, str) else ""


@template("across/alarm_from_note", levels=(2, 3))
def alarm_from_note(draw: Draw) -> Setup:
    """A note says when to call whom; the alarm is to be called by the number from the contacts."""
    known, alarms = persons.people(draw, 4 * draw.level), alarms_of(draw, draw.level)
    who = draw.pick(known)
    minutes = ringing(draw)
    alarm = Alarm(minutes, who.phone)
    note, done = f"{draw.pick(NOTES)}.txt", "Called on time."
    path = f"/Documents/{note}"
    text = (
        f"Call {who.name} at {alarm.time}.\nIt is about the {draw.pick(('rent', 'party', 'garden', 'car'))}."
    )
    goal = (
        "The note {note} in Documents says whom I have to call and when. Add an alarm at that time with the "
        "phone number from {app} as its label"
    )
    if draw.level == 3:
        goal += ", then replace the text of the note by “{text}” and save it"
        finish = [open_app("editor"), type_into("text", done), key("ctrl+s")]
    return Setup(
        goal=worded(f"{goal}.", note=note, app=tr("Contacts"), text=done),
        files={path: text},
        data={"contacts": known, "clock": Kept(alarms)},
        milestones={
            "alarm": (2, lambda world: has_alarm(world, alarms, alarm)),
            **({"note": lambda world: text_of(world, path) == done} if draw.level == 3 else {}),
        },
        changes=[alarm_record(alarm), *([f"file:{path}"] if draw.level == 3 else [])],
        oracle=[
            *read_note(note),
            open_app("contacts"),
            choose("person", who.name),
            *added(alarm),
            *(finish if draw.level == 3 else []),
        ],
    )


@template("across/report", levels=(2, 3))
def report(draw: Draw) -> Setup:
    """A number is reckoned in a table and written into a text; at level 3 an alarm reminds of it."""
    sheet, alarms = table(draw, 4, 7), alarms_of(draw, 2)
    column, name = draw.number(1, 2), draw.pick(("SUM", "MAX", "MIN"))
    reckon = FUNCTIONS[name][1]
    letter, cell = "ABC"[column], name_of(column, sheet.last)
    result = written(reckon([float(row[column]) for row in sheet.cells[1:]]))
    wanted = with_cell(sheet.cells, cell, result)
    path = f"/Documents/{draw.pick(('report', 'result', 'summary', 'letter'))}.txt"
    minutes = ringing(draw)
    alarm = Alarm(minutes, "Report")
    goal = worded(
        "Put {what} in {file} into {cell}, save the table. Write that number, and nothing else, into a new "
        "text {path} with {app}.",
        what=reckoned(name, sheet.cells[0][column]),
        file=sheet.file,
        cell=cell,
        path=path,
        app=tr("Text Editor"),
    )
    if draw.level == 3:
        last = "Then add an alarm at {time} with the label “{label}”."
        goal += " " + worded(last, time=alarm.time, label=alarm.label)
    return Setup(
        goal=goal,
        files={sheet.path: sheet.text},
        data={"clock": Kept(alarms)},
        milestones={
            "table": lambda world: world.read(sheet.path) == dumped(wanted),
            "text": lambda world: text_of(world, path) == result,
            **({"alarm": lambda world: has_alarm(world, alarms, alarm)} if draw.level == 3 else {}),
        },
        changes=[f"file:{sheet.path}", f"file:{path}", *([alarm_record(alarm)] if draw.level == 3 else [])],
        oracle=[
            *opened(sheet),
            *entered(cell, f"={name}({letter}2:{letter}{sheet.last})"),
            key("ctrl+s"),
            *write_note(path.rpartition("/")[2], result),
            *(added(alarm) if draw.level == 3 else []),
        ],
    )


@template("across/new_person", levels=(2, 3))
def new_person(draw: Draw) -> Setup:
    """A note about somebody new: into the contacts, and as a row into a table."""
    known = persons.people(draw, 3 * draw.level)
    family = draw.pick(("Archer", "Brandt", "Castel", "Duarte"))
    new = persons.person(draw, f"{draw.pick(persons.FIRST)} {family}")
    guests = tuple((contact.name, contact.city) for contact in draw.picks(known, 1 + draw.level))
    before = (("Guest", "City"), *guests)
    guest_list, row = Table("guests", before), len(before)
    wanted = with_cell(with_cell(before, name_of(0, row), new.name), name_of(1, row), new.city)
    note = f"{draw.pick(NOTES)}.txt"
    text = f"New guest: {new.name}\nPhone: {new.phone}\nE-mail: {new.email}\nCity: {new.city}"
    fields: list[Intent] = [type_into(field, getattr(new, field)) for field in Contact._fields]
    return Setup(
        goal=worded(
            "The text {note} in Documents is about a new guest. Add the guest to {app} with everything that "
            "it says, and as a new last row (name, city) to the table guests.csv in Documents. Save the "
            "table.",
            note=note,
            app=tr("Contacts"),
        ),
        files={f"/Documents/{note}": text, guest_list.path: guest_list.text},
        data={"contacts": known},
        milestones={
            "contact": lambda world: people(world.store.get("contacts")) == sorted_people((*known, new)),
            "row": lambda world: world.read(guest_list.path) == dumped(wanted),
        },
        changes=[contact_record(new.name), f"file:{guest_list.path}"],
        oracle=[
            *read_note(note),
            open_app("contacts"),
            click("new"),
            *fields,
            click("save"),
            *opened(guest_list),
            *entered(name_of(0, row), new.name),
            *entered(name_of(1, row), new.city),
            key("ctrl+s"),
        ],
    )


@template("across/phone_list", levels=(2, 3))
def phone_list(draw: Draw) -> Setup:
    """A table of names gets its phone numbers from the contacts, and a text says how many there are."""
    known = persons.people(draw, 5 * draw.level)
    team = draw.picks(known, draw.level)
    before = (("Name", "Phone"), *((contact.name,) for contact in team))
    lists = Table(draw.pick(("team", "choir", "crew", "class")), before)
    wanted, steps = before, []
    for row, contact in enumerate(team, 1):
        wanted = with_cell(wanted, name_of(1, row), contact.phone)
        back = persons.back(draw) if row > 1 else []
        steps += [open_app("contacts"), *back, choose("person", contact.name), open_app("spreadsheet")]
        steps += entered(name_of(1, row), contact.phone)
    day = draw.pick(("Monday", "Tuesday", "Friday", "Sunday"))
    text, path = f"The list is complete since {day}.", f"/Documents/{lists.name}.txt"
    return Setup(
        goal=worded(
            "Fill in the phone numbers in {file} in Documents from {app} and save it. Then write “{text}” "
            "with {editor} and save it as {new} in Documents.",
            file=lists.file,
            app=tr("Contacts"),
            text=text,
            editor=tr("Text Editor"),
            new=f"{lists.name}.txt",
        ),
        files={lists.path: lists.text},
        data={"contacts": known},
        milestones={
            "table": (2, lambda world: world.read(lists.path) == dumped(wanted)),
            "text": lambda world: text_of(world, path) == text,
        },
        changes=[f"file:{lists.path}", f"file:{path}"],
        oracle=[*opened(lists), *steps, key("ctrl+s"), *write_note(f"{lists.name}.txt", text)],
    )


@template("across/moving", levels=(2, 3))
def moving(draw: Draw) -> Setup:
    """A note says who moved where: contact, alarm and (at level 3) settings are to follow."""
    known, alarms = persons.people(draw, 4 * draw.level), alarms_of(draw, 2)
    old = draw.pick(known)
    city = draw.pick([city for city in persons.CITIES if city != old.city])
    minutes = ringing(draw)
    label = draw.pick([label for label in LABELS if label not in {alarm.label for alarm in alarms}])
    new, alarm, note = old._replace(city=city), Alarm(minutes, label), f"{draw.pick(NOTES)}.txt"
    loud = 5 * draw.number(13, 19)
    text = f"{old.name} lives in {city} now.\nSet an alarm at {alarm.time}: {label}."
    text += f"\nSet the volume to {loud}." if draw.level == 3 else ""
    last = [open_app("settings"), choose("page", "sound"), slide("volume", loud)]

    def is_moved(world: World) -> bool:
        now = world.store.get("contacts")
        rest = {contact for contact in known if contact != old}
        return named(now, old.name) == new and set(people(now)) == {*rest, new}

    goal = "Do what the text {note} in Documents says: first in {contacts}, then in {clock} "
    goal += "(the word after the colon is the label)" + (", last in {settings}." if draw.level == 3 else ".")
    apps = {"contacts": tr("Contacts"), "clock": tr("Clock"), "settings": tr("Settings")}
    return Setup(
        goal=worded(goal, note=note, **apps),
        files={f"/Documents/{note}": text},
        data={"contacts": known, "clock": Kept(alarms)},
        milestones={
            "contact": is_moved,
            "alarm": lambda world: has_alarm(world, alarms, alarm),
            **({"volume": lambda world: world.settings["volume"] == loud} if draw.level == 3 else {}),
        },
        changes=[
            contact_record(old.name),
            alarm_record(alarm),
            *(["setting:volume"] if draw.level == 3 else []),
        ],
        oracle=[
            *read_note(note),
            open_app("contacts"),
            choose("person", old.name),
            click("edit"),
            type_into("city", city),
            click("save"),
            *added(alarm),
            *(last if draw.level == 3 else []),
        ],
    )
