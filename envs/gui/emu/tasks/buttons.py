"""Large coloured buttons: the first thing to learn. A wrong one ends it; a click beside them does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vlrl.envs.gui.emu.apps.board import Board, argument
from vlrl.envs.gui.emu.drawing.theme import TONES
from vlrl.envs.gui.emu.oracle.intents import click
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.wording import worded

add_words("""
Apple = Apfel = Pomme = Manzana
Bread = Brot = Pain = Pan
Bridge = Brücke = Pont = Puente
Candle = Kerze = Bougie = Vela
Castle = Burg = Château = Castillo
Chair = Stuhl = Chaise = Silla
Cloud = Wolke = Nuage = Nube
Forest = Wald = Forêt = Bosque
Garden = Garten = Jardin = Jardín
Guitar = Gitarre = Guitare = Guitarra
Island = Insel = Île = Isla
Lemon = Zitrone = Citron = Limón
Mirror = Spiegel = Miroir = Espejo
Moon = Mond = Lune = Luna
Mountain = Berg = Montagne = Montaña
Night = Nacht = Nuit = Noche
River = Fluss = Rivière = Río
Snow = Schnee = Neige = Nieve
Spoon = Löffel = Cuillère = Cuchara
Train = Zug = Train = Tren
Umbrella = Regenschirm = Parapluie = Paraguas
Window = Fenster = Fenêtre = Ventana
Winter = Winter = Hiver = Invierno
Wolf = Wolf = Loup = Lobo
""")
NOUNS = (
    *("Apple", "Bread", "Bridge", "Candle", "Castle", "Cloud", "Forest", "Garden", "Guitar", "Island"),
    *("Lemon", "Mirror", "Moon", "Mountain", "Night", "River", "Snow", "Spoon", "Chair", "Train"),
    *("Umbrella", "Window", "Winter", "Wolf"),
)
LARGE = {1: (260, 80), 2: (240, 150), 4: (124, 220)}
SMALL = {1: (118, 78), 2: (118, 78), 4: (88, 74)}
"""Width and height of a button in pixels, by how many lie side by side."""
ICONS = ("star", "home", "music", "mail", "clock", "search", "lock", "trash")


def _pressed(world: World) -> tuple[str, ...]:
    return world.store.get("board") or ()


def _begins_with(ids: tuple[str, ...], world: World) -> bool:
    return _pressed(world)[: len(ids)] == ids


def _is_beginning_of(ids: tuple[str, ...], world: World) -> bool:
    pressed = _pressed(world)
    return pressed == ids[: len(pressed)]


def _has_of(ids: frozenset[str], count: int, world: World) -> bool:
    return len(ids & set(_pressed(world))) >= count


def _only_once(ids: frozenset[str], world: World) -> bool:
    pressed = _pressed(world)
    return ids.issuperset(pressed) and len(set(pressed)) == len(pressed)


def _setup(
    draw: Draw,
    goal: str,
    buttons: Sequence[tuple[str, str, str, str]],
    wanted: list[str],
    in_any_order: bool = False,
) -> Setup:
    """A board where the buttons with the ids `wanted` are to be pressed, one after the other.

    At level 1 they fill it; from level 2 on they are smaller and lie anywhere on it. What may be pressed in
    any order loses its colour when it is.
    """
    across = draw.pick((2, 1 if draw.looks["form"] == "mobile" else 4)) if len(buttons) == 4 else 2
    if draw.level == 1:
        room, key = (0, 0, 0, 0), LARGE[across]
    else:
        left, above = draw.number(0, 3), draw.number(0, 3)
        room, key = (left, 3 - left, above, 3 - above), SMALL[across]

    board = Board(across, room, key, len(wanted), in_any_order, tuple(buttons))
    counts, ids = range(1, len(wanted) + 1), frozenset(wanted)
    if in_any_order:
        reached = {count: partial(_has_of, ids, count) for count in counts}
        may_go_on = partial(_only_once, ids)
    else:
        reached = {count: partial(_begins_with, tuple(wanted[:count])) for count in counts}
        may_go_on = partial(_is_beginning_of, tuple(wanted))
    milestones: dict[str, Predicate] = {f"pressed {count}": test for count, test in reached.items()}
    last, has_all = milestones.popitem()
    milestones[last] = lambda world: has_all(world) and may_go_on(world)  # and nothing else was pressed
    return Setup(
        goal=goal,
        windows=[("board", argument(board))],
        milestones=milestones,
        over=lambda world: not may_go_on(world) or not world.windows,
        changes=["data:board"],
        oracle=[click(id) for id in wanted],
        max_steps=3 * len(wanted),
    )


def _coloured(draw: Draw, texts: Sequence[str] = ()) -> list[tuple[str, str, str, str]]:
    """Four buttons of four colours; each says its colour, or what is given."""
    tones = draw.picks(tuple(TONES), 4)
    said = texts or [tr(tone).capitalize() for tone in tones]  # words of the app Paint
    return [(tone, tone, "", text) for tone, text in zip(tones, said, strict=True)]


@template("buttons/colour", levels=(1, 2, 3))
def colour(draw: Draw) -> Setup:
    """One colour of four; the text is the colour's name, then another word, then another colour's name."""
    if draw.level == 1:
        buttons = _coloured(draw)
    elif draw.level == 2:
        buttons = _coloured(draw, [tr(noun) for noun in draw.picks(NOUNS, 4)])
    else:
        buttons = _coloured(draw)
        buttons = [
            (*one[:3], other[3]) for one, other in zip(buttons, [*buttons[1:], buttons[0]], strict=True)
        ]
    wanted = draw.pick(buttons)[0]
    goal = worded("Click the {colour} button.", colour=worded(f"{wanted}|adjective"))
    if draw.level == 3:
        goal += " " + worded("It is the colour that counts, not the text.")
    return _setup(draw, goal, buttons, [wanted])


@template("buttons/odd", levels=(1, 2, 3))
def odd(draw: Draw) -> Setup:
    """The one of four that is coloured; the one of another colour than the others; the one of six."""
    count = 6 if draw.level == 3 else 4
    tone, *others = draw.picks(tuple(TONES), 2)
    usual = "" if draw.level == 1 else others[0]
    at = draw.number(0, count - 1)
    nouns = draw.picks(NOUNS, count)
    buttons = [
        (noun.lower(), tone if number == at else usual, "", tr(noun)) for number, noun in enumerate(nouns)
    ]
    goal = worded("Click the button of another colour than the rest.")
    return _setup(draw, goal, buttons, [buttons[at][0]])


@template("buttons/lights", levels=(1, 2, 3))
def lights(draw: Draw) -> Setup:
    """Two of four are coloured, and put out by a click; three of six; four of six, of one colour each."""
    count, num_lit = (4 if draw.level == 1 else 6), draw.level + 1
    nouns = draw.picks(NOUNS, count)
    tones = draw.picks(tuple(TONES), num_lit)
    lit = dict(zip(draw.picks(nouns, num_lit), tones, strict=True))
    buttons = [(noun.lower(), lit.get(noun, ""), "", tr(noun)) for noun in nouns]
    wanted = [noun.lower() for noun in nouns if noun in lit]
    goal = worded("Click the coloured buttons until none is left.")
    return _setup(draw, goal, buttons, wanted, in_any_order=True)


@template("buttons/named", levels=(1, 2, 3))
def named(draw: Draw) -> Setup:
    """One text of four; without colours at level 2; six buttons without colours and icons at level 3."""
    count = 6 if draw.level == 3 else 4
    nouns = draw.picks(NOUNS, count)
    tones = draw.picks(tuple(TONES), count) if draw.level == 1 else [""] * count
    icons = draw.picks(ICONS, count) if draw.level < 3 else [""] * count
    buttons = [
        (noun.lower(), tone, icon, tr(noun)) for noun, tone, icon in zip(nouns, tones, icons, strict=True)
    ]
    wanted = draw.pick(buttons)
    return _setup(draw, worded("Click the button “{text}”.", text=wanted[3]), buttons, [wanted[0]])


@template("buttons/sequence", levels=(1, 2, 3))
def sequence(draw: Draw) -> Setup:
    """Two colours of four in the order that is said; three from level 2 on; other texts at level 3."""
    buttons = _coloured(draw, [tr(noun) for noun in draw.picks(NOUNS, 4)] if draw.level == 3 else ())
    wanted = [id for id, *_ in draw.picks(buttons, 2 if draw.level == 1 else 3)]
    goal = "Click the {first} button, then the {second} one"
    goal += ", then the {third} one." if len(wanted) == 3 else "."
    order = ("first", "second", "third")
    said = {at: worded(f"{tone}|adjective") for at, tone in zip(order, wanted, strict=False)}
    return _setup(draw, worded(goal, **said), buttons, wanted)
