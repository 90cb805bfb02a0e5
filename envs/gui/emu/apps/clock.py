"""Clock: alarms, a timer, a stopwatch, by the virtual clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts.alarms import Alarm, Kept, kept, length_text, time_text
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, Reply
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    Check,
    Column,
    Divider,
    Entry,
    Image,
    Label,
    Line,
    MenuItem,
    Row,
    Rows,
    Slider,
    Space,
    Widget,
    field_row,
    spinner,
    tabs,
    tool_button,
)

add_words("""
Clock = Uhr = Horloge = Reloj
Alarms = Wecker = Alarmes = Alarmas
Timer = Timer = Minuteur = Temporizador
Stopwatch = Stoppuhr = Chronomètre = Cronómetro
New alarm = Neuer Wecker = Nouvelle alarme = Nueva alarma
Switch on or off = Ein- oder ausschalten = Activer ou désactiver = Activar o desactivar
Hour = Stunde = Heure = Hora
Minute = Minute = Minute = Minuto
Minutes = Minuten = Minutes = Minutos
Seconds = Sekunden = Secondes = Segundos
Label = Bezeichnung = Nom = Etiqueta
On weekdays = Werktags = En semaine = Entre semana
on = an = active = activa
off = aus = inactive = inactiva
Start = Starten = Démarrer = Iniciar
Stop = Anhalten = Arrêter = Detener
Lap = Runde = Tour = Vuelta
Reset = Zurücksetzen = Remettre à zéro = Restablecer
Time is up! = Die Zeit ist um! = C’est l’heure ! = ¡Se acabó el tiempo!
Running until = Läuft bis = Jusqu’à = Hasta las
Running = Läuft = En marche = En marcha
Delete the alarm? = Wecker löschen? = Supprimer l’alarme ? = ¿Eliminar la alarma?
""")
ICONS["bell"] = (
    ("sand", "poly", (12, 2, 15, 4, 18, 8, 18.6, 15, 21, 18, 3, 18, 5.4, 15, 6, 8, 9, 4)),
    ("sand", "disc", (12, 20, 2.4)),
)


@dataclass(frozen=True)
class Clock:
    """What is shown.

    Attributes:
        page: "alarms", "timer" or "stopwatch".
        alarm: place of the chosen one; None for none.
        mode: "list", "edit" or "new".
        hour: what stands in the form of an alarm, and so on.
        minutes: what the timer is set to, with `seconds`.
    """

    page: str = "alarms"
    alarm: int | None = None
    mode: str = "list"
    hour: int = 7
    minute: int = 0
    label: str = ""
    weekdays: bool = False
    minutes: int = 5
    seconds: int = 0


def start(argument: str, reader: Reader) -> Clock:
    """Start at a page."""
    return Clock(argument or "alarms")


def build(state: Clock, reader: Reader) -> Widget:
    """The tabs, and the page under them."""
    pages = (("alarms", tr("Alarms")), ("timer", tr("Timer")), ("stopwatch", tr("Stopwatch")))
    now = kept(reader.data)
    if state.page == "timer":
        page = _timer(state, now, reader.minute)
    elif state.page == "stopwatch":
        page = _stopwatch(now)
    else:
        page = _alarms(state, now) if state.mode == "list" else _form(state)
    return Column(tabs("page", pages, state.page), page, pad=1, gap=2)


def _alarms(state: Clock, now: Kept) -> Widget:
    menu = (
        MenuItem("edit", tr("Edit")),
        MenuItem("switch", tr("Switch on or off")),
        MenuItem("delete", tr("Delete")),
    )
    lines = [
        Line(place, (alarm.time, alarm.label, tr("on" if alarm.on else "off")), icon="clock", bold=alarm.on)
        for place, alarm in enumerate(now.alarms)
    ]
    columns = ((tr("Hour"), 90), (tr("Label"), 0), ("", 70))
    is_one = state.alarm is not None
    buttons = Row(
        Button("new", tr("New alarm"), kind="primary"),
        Space(),
        tool_button("switch", tr("Switch on or off"), "bell", enabled=is_one),
        tool_button("edit", tr("Edit"), "editor", enabled=is_one),
        tool_button("delete", tr("Delete"), "trash", enabled=is_one),
    )
    return Column(
        Rows("alarm", tr("Alarms"), lines, state.alarm, columns=columns, menu=menu), buttons, grow=1
    )


def _form(state: Clock) -> Widget:
    return Column(
        Label(time_text(state.hour * 60 + state.minute), "title", align="center"),
        Divider(),
        field_row(tr("Hour"), Slider("hour", tr("Hour"), state.hour, 0, 23), width=80),
        field_row(tr("Minute"), Slider("minute", tr("Minute"), state.minute, 0, 55, step=5), width=80),
        field_row(tr("Label"), Entry("label", tr("Label"), state.label, grow=1), width=80),
        Check("weekdays", tr("On weekdays"), state.weekdays),
        Space(),
        Row(Space(), Button("save", tr("Save"), kind="primary"), Button("cancel", tr("Cancel"))),
        gap=2,
        grow=1,
    )


def _timer(state: Clock, now: Kept, minute: int) -> Widget:
    if not now.timer_ms:
        return Column(
            Space(),
            Label(length_text(state.minutes * 60_000 + state.seconds * 1000), "title", align="center"),
            Space(),
            field_row(tr("Minutes"), spinner("minutes", tr("Minutes"), state.minutes, 0, 90)),
            field_row(tr("Seconds"), spinner("seconds", tr("Seconds"), state.seconds, 0, 45, step=15)),
            Space(),
            Row(Space(), Button("timer", tr("Start"), kind="primary"), Space()),
            grow=1,
        )
    end = (now.timer_from + now.timer_ms) // 60_000
    is_over = minute >= end
    text = tr("Time is up!") if is_over else f"{tr('Running until')} {time_text(end % (24 * 60))}"
    return Column(
        Space(),
        Row(Space(), Image("bell" if is_over else "clock", side=48), Space()),
        Label(length_text(now.timer_ms), "title", align="center"),
        Label(text, "bold" if is_over else "", align="center"),
        Space(),
        Row(Space(), Button("timer_stop", tr("Stop"), kind="primary"), Space()),
        grow=1,
    )


def _stopwatch(now: Kept) -> Widget:
    runs = now.watch_from is not None
    lines = [
        Line(place, (f"{tr('Lap')} {place + 1}", length_text(lap))) for place, lap in enumerate(now.laps)
    ]
    columns = ((tr("Lap"), 0), ("", 90))
    return Column(
        Label(tr("Running") if runs else length_text(now.watch_ms), "title", align="center"),
        Row(
            Space(),
            Button("watch", tr("Stop" if runs else "Start"), kind="primary"),
            Button("lap", tr("Lap"), enabled=runs),
            Button("watch_reset", tr("Reset"), enabled=not runs and bool(now.watch_ms)),
            Space(),
        ),
        Rows("laps", tr("Lap"), lines, columns=columns),
        gap=2,
        grow=1,
    )


def handle(state: Clock, event: Event, system: System) -> Clock:
    """Alarms first; what they do not take is the timer's or the stopwatch's."""
    now, place = kept(system.data), state.alarm
    match event:
        case Change("page"):
            return replace(state, mode="list", alarm=None)
        case Command("new"):
            return replace(state, mode="new", hour=7, minute=0, label="", weekdays=False)
        case Command("edit" | "switch" | "delete" as what, on) if on is not None or place is not None:
            return _on_alarm(replace(state, alarm=place if on is None else on), what, now, system)
        case Activate("alarm", int()):
            return state if system.is_mobile else _on_alarm(state, "edit", now, system)
        case Reply("delete", "delete") if place is not None:
            alarms = tuple(alarm for n, alarm in enumerate(now.alarms) if n != place)
            system.keep(now._replace(alarms=alarms))
            return replace(state, alarm=None)
        case Command("save") | Activate("label"):
            return _save(state, now, system)
        case Command("cancel"):
            return replace(state, mode="list")
        case Command(id):
            _run(state, id, now, system)
    return state


def _on_alarm(state: Clock, what: str, now: Kept, system: System) -> Clock:
    assert state.alarm is not None
    alarm = now.alarms[state.alarm]
    if what == "switch":
        alarms = list(now.alarms)
        alarms[state.alarm] = alarm._replace(on=not alarm.on)
        system.keep(now._replace(alarms=tuple(alarms)))
    elif what == "delete":
        system.message("delete", tr("Delete the alarm?"), ("delete", "cancel"), "question")
    else:
        hour, minute = divmod(alarm.minutes, 60)
        form = {"hour": hour, "minute": minute, "label": alarm.label, "weekdays": alarm.weekdays}
        return replace(state, mode="edit", **form)  # type: ignore[arg-type]
    return state


def _save(state: Clock, now: Kept, system: System) -> Clock:
    alarm = Alarm(state.hour * 60 + state.minute, state.label.strip(), state.weekdays)
    others = [other for n, other in enumerate(now.alarms) if state.mode == "new" or n != state.alarm]
    if not system.keep(now._replace(alarms=tuple(sorted([*others, alarm])))):
        return state
    return replace(state, mode="list", alarm=None)


def _run(state: Clock, id: str, now: Kept, system: System) -> None:
    """The buttons of the timer and the stopwatch."""
    time = system.world.time_ms
    counted = now.watch_ms + (0 if now.watch_from is None else time - now.watch_from)
    match id:
        case "timer" if state.minutes or state.seconds:
            length = state.minutes * 60_000 + state.seconds * 1000
            system.keep(now._replace(timer_ms=length, timer_from=time))
        case "timer_stop":
            system.keep(now._replace(timer_ms=0, timer_from=0))
        case "watch" if now.watch_from is None:
            system.keep(now._replace(watch_from=time))
        case "watch":
            system.keep(now._replace(watch_ms=counted, watch_from=None))
        case "lap" if now.watch_from is not None:
            system.keep(now._replace(laps=(*now.laps, counted)))
        case "watch_reset":
            system.keep(now._replace(watch_ms=0, watch_from=None, laps=()))


CLOCK = register(App("clock", "Clock", "clock", start, build, handle, size=(340, 300), shows_time=True))
