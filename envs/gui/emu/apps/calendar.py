"""Calendar: a month, and the events of its days."""

from __future__ import annotations

import calendar as months
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Drop, Event, Open
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    Choice,
    Column,
    Divider,
    Entry,
    Grid,
    Label,
    Line,
    MenuItem,
    Row,
    Rows,
    Space,
    Widget,
    field_row,
    tool_button,
)

add_words("""
Calendar = Kalender = Calendrier = Calendario
January = Januar = Janvier = Enero
February = Februar = Février = Febrero
March = März = Mars = Marzo
April = April = Avril = Abril
May = Mai = Mai = Mayo
June = Juni = Juin = Junio
July = Juli = Juillet = Julio
August = August = Août = Agosto
September = September = Septembre = Septiembre
October = Oktober = Octobre = Octubre
November = November = Novembre = Noviembre
December = Dezember = Décembre = Diciembre
Mo = Mo = Lu = Lu
Tu = Di = Ma = Ma
We = Mi = Me = Mi
Th = Do = Je = Ju
Fr = Fr = Ve = Vi
Sa = Sa = Sa = Sá
Su = So = Di = Do
New event = Neuer Termin = Nouvel événement = Nuevo evento
Events = Termine = Événements = Eventos
Date = Datum = Date = Fecha
Time = Uhrzeit = Heure = Hora
Title = Titel = Titre = Título
Edit… = Bearbeiten… = Modifier… = Editar…
Previous month = Voriger Monat = Mois précédent = Mes anterior
Next month = Nächster Monat = Mois suivant = Mes siguiente
""")
MONTHS = tuple(months.month_name)[1:]
WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
HOURS = tuple(f"{hour:02d}:00" for hour in range(8, 20))
FIRST_MONTH = (2026, 3)
_weeks = months.Calendar()


class Appointment(NamedTuple):
    """What happens when: day as "2026-03-14", time as "09:30"."""

    day: str
    time: str
    title: str


@dataclass(frozen=True)
class Calendar:
    """What is shown, and what is being written.

    Attributes:
        chosen: a day, "" for none; `event` an index into the kept appointments.
        editing: None while nothing is; -1 for a new event, or the index of the one that is changed.
        title: of the form, like `day` and `time`.
    """

    month: tuple[int, int] = FIRST_MONTH
    chosen: str = ""
    event: int | None = None
    editing: int | None = None
    title: str = ""
    day: str = ""
    time: str = "09:00"


def start(argument: str, reader: Reader) -> Calendar:
    """Start at a month given as "2026-05", or at the first."""
    if not argument:
        return Calendar()
    return Calendar((int(argument[:4]), int(argument[5:7])), argument if len(argument) > 7 else "")


def build(state: Calendar, reader: Reader) -> Widget:
    """The month, and below it the day's events or the form."""
    kept: tuple[Appointment, ...] = reader.data or ()
    year, month = state.month
    head = Row(
        tool_button("back", tr("Previous month"), "back"),
        Label(f"{tr(MONTHS[month - 1])} {year}", "title", grow=1, align="center"),
        tool_button("next", tr("Next month"), "next"),
    )
    busy = {appointment.day for appointment in kept}
    days = [
        _day(day.isoformat(), day.month == month, state, busy) for day in _weeks.itermonthdates(year, month)
    ]
    names = [Label(tr(name), "small", align="center") for name in WEEKDAYS]
    return Column(
        head,
        Grid(7, *names, gap=0),
        Grid(7, *days, gap=0, grow=3),
        Divider(),
        _day_events(state, kept) if state.editing is None else _form(state),
        pad=1,
    )


def _day(day: str, is_inside: bool, state: Calendar, busy: set[str]) -> Widget:
    if not is_inside:
        return Space()
    text = f"{int(day[8:])}" + (" •" if day in busy else "")
    press = Change("chosen", day)
    is_chosen = day == state.chosen
    return Button(
        f"day.{day}", text, kind="tool", pressed=is_chosen, width=34, height=22, grow=1, press=press
    )


def _day_events(state: Calendar, kept: tuple[Appointment, ...]) -> Widget:
    lines = [
        Line(index, (one.title, one.time))
        for index, one in sorted(enumerate(kept), key=lambda pair: pair[1].time)
        if one.day == state.chosen
    ]
    menu = (MenuItem("edit", tr("Edit…")), MenuItem("delete", tr("Delete")))
    events = Rows(
        "event",
        tr("Events"),
        lines,
        state.event,
        columns=((state.chosen or tr("Events"), 0), (tr("Time"), 60)),
        drags=True,
        menu=menu,
        grow=2,
        height=84,
    )
    some = state.event is not None
    buttons = Row(
        Button("new", tr("New event"), kind="primary"),
        Button("edit", tr("Edit…"), enabled=some),
        Button("delete", tr("Delete"), enabled=some),
    )
    return Column(events, buttons, grow=2)


def _form(state: Calendar) -> Widget:
    times = tuple((time, time) for time in HOURS)
    return Column(
        field_row(tr("Title"), Entry("title", tr("Title"), state.title, grow=1), width=70),
        field_row(tr("Date"), Entry("day", tr("Date"), state.day, hint="2026-03-31", grow=1), width=70),
        field_row(tr("Time"), Choice("time", tr("Time"), times, state.time), width=70),
        Row(
            Space(),
            Button("save", tr("Save"), kind="primary", enabled=_is_complete(state)),
            Button("cancel", tr("Cancel")),
        ),
        grow=2,
    )


def _is_complete(state: Calendar) -> bool:
    try:
        return bool(state.title.strip()) and len(date.fromisoformat(state.day.strip()).isoformat()) == 10
    except ValueError:
        return False


def handle(state: Calendar, event: Event, system: System) -> Calendar:
    """Go about, and change events."""
    kept: tuple[Appointment, ...] = system.data or ()
    match event:
        case Open(argument):
            return start(argument, system)
        case Command("back" | "next" as way):
            number = state.month[0] * 12 + state.month[1] - 1 + (1 if way == "next" else -1)
            return replace(state, month=(number // 12, number % 12 + 1), chosen="", event=None)
        case Change("chosen"):
            return replace(state, event=None, day=state.chosen if state.editing is not None else state.day)
        case Command("new"):
            system.focus("title")
            return replace(state, editing=-1, title="", day=state.chosen, time="09:00")
        case Command("edit") | Activate("event") if state.event is not None:
            one = kept[state.event]
            return replace(state, editing=state.event, title=one.title, day=one.day, time=one.time)
        case Command("delete") if state.event is not None:
            system.keep(kept[: state.event] + kept[state.event + 1 :])
            return replace(state, event=None)
        case Command("save") if state.editing is not None and _is_complete(state):
            return _save(state, kept, system)
        case Command("cancel"):
            return replace(state, editing=None)
        case Drop(id, int(index), _) if id.startswith("day.") and index < len(kept):
            moved = kept[index]._replace(day=id.removeprefix("day."))
            system.keep((*kept[:index], moved, *kept[index + 1 :]))
            return replace(state, chosen=moved.day, event=index)
    return state


def _save(state: Calendar, kept: tuple[Appointment, ...], system: System) -> Calendar:
    made = Appointment(state.day.strip(), state.time, state.title.strip())
    index = len(kept) if state.editing == -1 else state.editing
    assert index is not None
    if not system.keep((*kept[:index], made, *kept[index + 1 :])):
        return state
    month = int(made.day[:4]), int(made.day[5:7])
    return replace(state, month=month, chosen=made.day, event=index, editing=None)


CALENDAR = register(App("calendar", "Calendar", "calendar", start, build, handle, size=(330, 370)))
