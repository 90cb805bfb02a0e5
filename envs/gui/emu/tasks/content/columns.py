"""Tables that tasks of the spreadsheet are about: a heading, names, numbers; none of them alike."""

from __future__ import annotations

from typing import NamedTuple

from vlrl.envs.gui.emu.apps.parts.formulas import Cells
from vlrl.envs.gui.emu.apps.parts.tables import dumped
from vlrl.envs.gui.emu.task import Draw

SUBJECTS: dict[str, tuple[tuple[str, str, str], tuple[str, ...]]] = {
    "groceries": (
        ("Item", "Amount", "Price"),
        (
            "Bread",
            "Milk",
            "Apples",
            "Rice",
            "Cheese",
            "Coffee",
            "Honey",
            "Pasta",
            "Butter",
            "Lemons",
            "Olives",
        ),
    ),
    "budget": (
        ("Category", "Planned", "Spent"),
        (
            "Rent",
            "Food",
            "Travel",
            "Books",
            "Clothes",
            "Sports",
            "Gifts",
            "Power",
            "Phone",
            "Repairs",
            "Music",
        ),
    ),
    "marks": (
        ("Student", "Maths", "Physics"),
        ("Ada", "Bruno", "Chen", "Dalia", "Emil", "Fatima", "Goran", "Hanna", "Ivo", "Jana", "Kofi", "Lena"),
    ),
    "stock": (
        ("Part", "Stored", "Ordered"),
        (
            "Bolt",
            "Gear",
            "Hinge",
            "Lamp",
            "Motor",
            "Nut",
            "Pump",
            "Relay",
            "Screw",
            "Valve",
            "Wire",
            "Washer",
        ),
    ),
    "hikes": (
        ("Trail", "Length", "Climb"),
        (
            "Birch Loop",
            "Cliff Path",
            "Dune Walk",
            "Fern Gorge",
            "High Ridge",
            "Lake Shore",
            "Old Mill",
            "Pine Hill",
        ),
    ),
    "visitors": (
        ("Museum", "Saturday", "Sunday"),
        (
            "Aquarium",
            "Castle",
            "Gallery",
            "Observatory",
            "Planetarium",
            "Railway",
            "Theatre",
            "Zoo",
            "Harbour",
        ),
    ),
}


class Table(NamedTuple):
    """A table and its file."""

    name: str
    cells: Cells

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.csv"

    @property
    def path(self) -> str:
        """Where it is."""
        return f"/Documents/{self.file}"

    @property
    def text(self) -> str:
        """The file."""
        return dumped(self.cells)

    @property
    def last(self) -> int:
        """Number of its last row, counted from 1 as on the screen."""
        return len(self.cells)


def table(draw: Draw, least: int = 4, most: int = 8) -> Table:
    """A heading and so many rows, in a random order; no number is there twice in its column."""
    name = draw.pick(tuple(SUBJECTS))
    heading, names = SUBJECTS[name]
    rows = draw.picks(names, draw.number(least, most))
    numbers = [draw.picks(range(2, 100), len(rows)) for _ in range(2)]
    lines = ((name, str(a), str(b)) for name, a, b in zip(rows, *numbers, strict=True))
    return Table(name, (heading, *lines))
