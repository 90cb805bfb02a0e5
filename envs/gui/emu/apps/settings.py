"""Settings: how the desktop looks, sounds and connects. Every change is at once that of the whole desktop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.drawing.glyphs import FAMILIES
from vlrl.envs.gui.emu.drawing.theme import PALETTES
from vlrl.envs.gui.emu.drawing.wallpaper import WALLPAPERS
from vlrl.envs.gui.emu.input.events import Change, Command, Event, Reply
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    Choice,
    Column,
    Divider,
    Label,
    Line,
    Radio,
    Row,
    Rows,
    ScrollArea,
    Slider,
    Space,
    Switch,
    Widget,
    field_row,
    section,
)
from vlrl.envs.gui.emu.windows.shade import OFF_IN_FLIGHT

DEFAULTS: dict[str, Any] = {
    "volume": 50,
    "muted": False,
    "brightness": 80,
    "night_light": False,
    "wifi": True,
    "bluetooth": False,
    "airplane": False,
    "network": "Harbour",
    "notifications": True,
    "sounds": True,
    "power_mode": "balanced",
    "screen_off": 10,
    "location": False,
    "crash_reports": True,
}
"""The settings that are only here, and what they are at first."""
PAGES = ("display", "sound", "network", "power", "privacy")
NETWORKS = ("Harbour", "Library", "Cafe Luna", "Garden-5G")
MODES = {"saver": "Power saver", "balanced": "Balanced", "performance": "Performance"}
MINUTES = (1, 2, 5, 10, 15, 30)
"""After which the screen may go off."""
LANGUAGE_NAMES = (("en", "English"), ("de", "Deutsch"), ("fr", "Français"), ("es", "Español"))

add_words("""
Settings = Einstellungen = Paramètres = Ajustes
Display = Anzeige = Affichage = Pantalla
Sound = Ton = Son = Sonido
Network = Netzwerk = Réseau = Red
Power = Energie = Énergie = Energía
Privacy = Datenschutz = Confidentialité = Privacidad
Theme = Farbschema = Thème = Tema
Font = Schrift = Police = Fuente
Language = Sprache = Langue = Idioma
Wallpaper = Hintergrund = Fond d’écran = Fondo
Brightness = Helligkeit = Luminosité = Brillo
Night light = Nachtlicht = Éclairage nocturne = Luz nocturna
Volume = Lautstärke = Volume = Volumen
Mute = Stumm = Muet = Silencio
System sounds = Systemklänge = Sons du système = Sonidos del sistema
Notifications = Benachrichtigungen = Notifications = Notificaciones
Airplane mode = Flugmodus = Mode avion = Modo avión
Power mode = Energiemodus = Mode d’énergie = Modo de energía
Power saver = Stromsparen = Économie = Ahorro
Balanced = Ausgewogen = Équilibré = Equilibrado
Performance = Leistung = Performance = Rendimiento
Screen off after = Bildschirm aus nach = Éteindre l’écran après = Apagar la pantalla tras
minutes = Minuten = minutes = minutos
Location = Standort = Localisation = Ubicación
Crash reports = Absturzberichte = Rapports d’erreur = Informes de errores
Reset all settings = Alles zurücksetzen = Tout réinitialiser = Restablecer todo
Reset all settings? = Alles zurücksetzen? = Tout réinitialiser ? = ¿Restablecer todo?
Wi-Fi = WLAN = Wi-Fi = Wifi
Pages = Seiten = Pages = Páginas
""")
WORDS = {"display": "Display", "sound": "Sound", "network": "Network", "power": "Power", "privacy": "Privacy"}


@dataclass(frozen=True)
class Settings:
    """Which page is shown."""

    page: str = "display"


def start(argument: str, reader: Reader) -> Settings:
    """Start at a page."""
    return Settings(argument if argument in PAGES else "display")


def build(state: Settings, reader: Reader) -> Widget:
    """The pages at the left, or above on a phone, and what the chosen one has."""
    page = ScrollArea("page_area", _page(state.page, reader))
    if reader.is_mobile:
        options = tuple((key, tr(WORDS[key])) for key in PAGES)
        return Column(Choice("page", tr("Pages"), options, state.page), page, pad=1)
    lines = [Line(key, (tr(WORDS[key]),)) for key in PAGES]
    return Row(Rows("page", tr("Pages"), lines, state.page, grow=0, width=105), page, gap=2, pad=1, grow=1)


def _page(page: str, reader: Reader) -> Widget:
    return Column(Label(tr(WORDS[page]), "title"), *_CONTENTS[page](reader))


def _check(reader: Reader, key: str, name: str) -> Switch:
    return Switch(key, tr(name), bool(reader.setting(key)))


def _choice(reader: Reader, key: str, name: str, options: tuple[tuple[Any, str], ...]) -> Row:
    return field_row(tr(name), Choice(key, tr(name), options, reader.setting(key)))


def _slider(reader: Reader, key: str, name: str) -> Row:
    return field_row(tr(name), Slider(key, tr(name), reader.setting(key), step=5))


def _display(reader: Reader) -> list[Widget]:
    themes, fonts, walls = (
        tuple((name, name.capitalize()) for name in names) for names in (PALETTES, FAMILIES, WALLPAPERS)
    )
    return [
        _choice(reader, "theme", "Theme", themes),
        _choice(reader, "font", "Font", fonts),
        _choice(reader, "wallpaper", "Wallpaper", walls),
        _choice(reader, "language", "Language", LANGUAGE_NAMES),
        _slider(reader, "brightness", "Brightness"),
        _check(reader, "night_light", "Night light"),
    ]


def _sound(reader: Reader) -> list[Widget]:
    return [
        _slider(reader, "volume", "Volume"),
        _check(reader, "muted", "Mute"),
        _check(reader, "sounds", "System sounds"),
        _check(reader, "notifications", "Notifications"),
    ]


def _network(reader: Reader) -> list[Widget]:
    chosen, enabled = reader.setting("network"), bool(reader.setting("wifi"))
    return [
        _check(reader, "wifi", "Wi-Fi"),
        _check(reader, "bluetooth", "Bluetooth"),
        _check(reader, "airplane", "Airplane mode"),
        Divider(),
        section(tr("Wi-Fi"), *(Radio("network", name, name, chosen, enabled=enabled) for name in NETWORKS)),
    ]


def _power(reader: Reader) -> list[Widget]:
    mode = reader.setting("power_mode")
    times = tuple((minutes, f"{minutes} {tr('minutes')}") for minutes in MINUTES)
    return [
        section(tr("Power mode"), *(Radio("power_mode", key, tr(name), mode) for key, name in MODES.items())),
        _choice(reader, "screen_off", "Screen off after", times),
    ]


def _privacy(reader: Reader) -> list[Widget]:
    return [
        _check(reader, "location", "Location"),
        _check(reader, "crash_reports", "Crash reports"),
        Row(Button("reset", tr("Reset all settings")), Space()),
    ]


_CONTENTS: dict[str, Callable[[Reader], list[Widget]]] = {
    "display": _display,
    "sound": _sound,
    "network": _network,
    "power": _power,
    "privacy": _privacy,
}


def handle(state: Settings, event: Event, system: System) -> Settings:
    """Every change is one of the system's."""
    match event:
        case Change("page"):
            pass
        case Change("airplane", True):
            system.set("airplane", True)
            for key in OFF_IN_FLIGHT:
                system.set(key, False)
        case Change(key, value):
            system.set(key, value)
        case Command("reset"):
            system.message("reset", tr("Reset all settings?"), ("yes", "no"), "warning")
        case Reply("reset", "yes"):
            for key, value in DEFAULTS.items():
                system.set(key, value)
            return replace(state, page="display")
    return state


SETTINGS = register(App("settings", "Settings", "settings", start, build, handle, size=(430, 310)))
