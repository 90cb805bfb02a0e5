"""Layers one over the other, brought up to date: always as if all of them were painted at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlrl.envs.gui.emu.drawing.look import look_of
from vlrl.envs.gui.emu.drawing.paint import Compositor, Layer
from vlrl.envs.gui.emu.drawing.rasters import fill
from vlrl.envs.gui.emu.state import Box, Interface
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget

SIZE = (40, 30)


@dataclass(slots=True, kw_only=True)
class Spots(Widget):
    colours: tuple[int, ...] = ()

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        items.append((*box, clip, fill, ((9, 9, 9),)))
        for index, colour in enumerate(self.colours):
            items.append((3 * index, index, 3 * index + 5, index + 4, clip, fill, ((colour, 0, 0),)))


def layer(key: int, box: Box, colours: tuple[int, ...]) -> Layer:
    view = View(look_of({}), Interface(), True)
    inside = (0, 0, box[2] - box[0], box[3] - box[1])
    Spots(colours=colours).place(view, inside, inside)
    return Layer(key, box, view, radius=key % 3 * 3, shadow=key % 2 * 5)


BOXES = st.tuples(st.integers(-5, 30), st.integers(-5, 20), st.integers(1, 40), st.integers(1, 30)).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)
STACKS = st.lists(
    st.tuples(st.integers(1, 4), BOXES, st.lists(st.integers(0, 3), max_size=4).map(tuple)),
    max_size=4,
    unique_by=lambda one: one[0],
)


@given(st.lists(STACKS, min_size=1, max_size=5))
def test_any_change_of_layers_shows_what_a_fresh_screen_shows(
    stacks: list[list[tuple[int, Box, tuple[int, ...]]]],
) -> None:
    screen = Compositor(SIZE)
    for stack in stacks:
        layers = [layer(0, (0, 0, *SIZE), ()), *(layer(*one) for one in stack)]
        assert np.array_equal(screen.show(layers), Compositor(SIZE).show(layers))


@given(st.tuples(STACKS, STACKS, STACKS))
def test_a_copy_and_what_it_is_a_copy_of_go_their_own_ways(stacks: tuple[Any, Any, Any]) -> None:
    first, one, other = ([layer(0, (0, 0, *SIZE), ()), *(layer(*each) for each in stack)] for stack in stacks)
    screen = Compositor(SIZE)
    screen.show(first)
    copies = [screen.copy(), screen.copy()]
    for shown, layers in zip([*copies, screen], (one, other, other), strict=True):
        assert np.array_equal(shown.show(layers), Compositor(SIZE).show(layers))
    assert np.array_equal(copies[0].show(first), Compositor(SIZE).show(first))


def test_two_layers_change_places() -> None:
    back, one, other = (
        layer(0, (0, 0, *SIZE), ()),
        layer(1, (2, 2, 20, 20), (1,)),
        layer(2, (8, 8, 30, 25), (2,)),
    )
    screen = Compositor(SIZE)
    first = screen.show([back, one, other]).copy()
    assert not np.array_equal(screen.show([back, other, one]), first)
    assert np.array_equal(screen.show([back, one, other]), first)
