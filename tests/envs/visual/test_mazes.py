"""Mazes: perfect ones are trees, braided ones have no dead ends; walls hold."""

from __future__ import annotations

import numpy as np
import pytest

from vlrl.envs.visual.drawing.draw import INK
from vlrl.envs.visual.games.mazes import SIDES, Maze, Mazes


def maze(braid: float, level: int, seed: int) -> Maze:
    env = Mazes(level=level, braid=braid)
    env.reset({}, seed)
    assert isinstance(env.world, Maze)
    return env.world


@pytest.mark.parametrize("level", range(1, 6))
def test_a_perfect_maze_is_a_tree_and_a_braided_one_has_no_dead_ends(level: int) -> None:
    fields = SIDES[level - 1] ** 2
    for seed in range(20):
        perfect, braided = maze(0, level, seed), maze(1, level, seed)
        assert len(perfect.doors) == 2 * (fields - 1)
        assert len(perfect.distances(perfect.start)) == fields
        ways = [sum(one == field for one, _ in braided.doors) for field in braided.distances((0, 0))]
        assert len(ways) == fields
        assert min(ways) >= 2
        far = perfect.distances(perfect.start)
        assert far[perfect.flag] == max(far.values()) >= SIDES[level - 1] - 1


def test_the_image_has_a_wall_exactly_where_there_is_no_door() -> None:
    size = 224
    for seed in range(10):
        world = maze(0.5, 2, seed)
        pixels = world.draw(world.start, size)
        field = (size - size // 16) // world.side
        margin = (size - field * world.side) // 2
        dark = (pixels == np.array(INK)).all(2)
        for row in range(world.side):
            for column in range(world.side):
                y, x = margin + row * field + field // 2, margin + column * field + field // 2
                right = ((row, column), (row, column + 1)) in world.doors
                down = ((row, column), (row + 1, column)) in world.doors
                assert dark[y, x + (field + 1) // 2] != right
                assert dark[y + (field + 1) // 2, x] != down
