"""Sokoban: its rules on a room drawn by hand; the solver against trying everything."""

from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.envs.visual.games.sokoban import SokobanEnv
from vlrl.envs.visual.games.sokoban_rules import SokobanRoom, State, fields, solve


def read(text: str) -> tuple[SokobanRoom, State]:
    """A room: # wall, . target, $ box, * box on a target, @ player, + player on a target."""
    rows = text.split()
    width, marks = len(rows[0]), "".join(rows)

    def bits(which: str) -> int:
        return sum(1 << i for i, mark in enumerate(marks) if mark in which)

    player = next(iter(fields(bits("@+"))))
    return SokobanRoom(width, bits("_.$*@+"), bits(".*+")), (player, bits("$*"))


def test_boxes_are_pushed_one_at_a_time_and_never_pulled() -> None:
    room, state = read("####### #@$_$.# #_$_$_# #_*$.## #######")
    assert room.move(state, "left") == state  # a wall
    pushed = room.move(state, "right")
    assert pushed[0] == state[0] + 1
    assert pushed[1] ^ state[1] == 0b11 << state[0] + 1
    assert room.move(pushed, "right") == pushed  # two boxes in a row
    back = room.move(pushed, "left")
    assert back == (state[0], pushed[1])  # the box stays
    assert room.move(pushed, "down") == pushed  # a box before a box


def test_a_box_in_a_corner_is_stuck() -> None:
    room, state = read("###### #$__.# #_@__# ######")
    assert solve(room, state, 10_000) is None
    room, state = read("###### #_$_.# #_@__# ######")
    assert solve(room, state, 10_000) == ["left", "up", "right", "right"]


def everything(room: SokobanRoom, start: State) -> bool:
    """Whether a room can be solved, by trying every sequence of moves."""
    seen, edge = {start}, deque([start])
    while edge:
        state = edge.popleft()
        if state[1] == room.targets:
            return True
        for move in room.steps:
            after = room.move(state, move)
            if after not in seen:
                seen.add(after)
                edge.append(after)
    return False


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 2))
def test_the_solver_solves_what_can_be_solved_and_nothing_else(seed: int, num_boxes: int) -> None:
    rng = np.random.default_rng(seed)
    width = 6
    walls = rng.random((width, width)) < 0.2
    walls[[0, -1]] = walls[:, [0, -1]] = True
    floor = np.flatnonzero(~walls)
    if len(floor) < 2 * num_boxes + 1:
        return
    chosen = rng.choice(floor, 2 * num_boxes + 1, replace=False).tolist()
    boxes = sum(1 << i for i in chosen[1 : num_boxes + 1])
    targets = sum(1 << i for i in chosen[num_boxes + 1 :])
    room = SokobanRoom(width, sum(1 << int(i) for i in floor), targets)
    state: State = (chosen[0], boxes)
    moves = solve(room, state, 100_000)
    assert (moves is not None) == everything(room, state)
    for move in moves or ():
        assert room.move(state, move) != state
        state = room.move(state, move)
    assert moves is None or state[1] == targets


def test_rooms_get_harder() -> None:
    lengths = []
    for level in range(1, 6):
        env = SokobanEnv(level=level)
        worlds = [env.make(*env.begin({}, seed)) for seed in range(30)]
        lengths.append(np.mean([world.max_steps for world in worlds]))
        assert {world.start[1].bit_count() for world in worlds} == {(1, 1, 2, 2, 3)[level - 1]}
    assert lengths == sorted(lengths)
