"""Sliding puzzle and jigsaw: only what can be solved is asked, and the image shows the state."""

from __future__ import annotations

import numpy as np
import pytest

from vlrl.envs.visual.drawing.scenery import MIN_DIFFERENCE, difference, scenery
from vlrl.envs.visual.games.jigsaw import JigsawEnv
from vlrl.envs.visual.games.sliding_puzzle import LEVELS, SlidingPuzzle, SlidingPuzzleEnv


def can_be_solved(state: tuple[int, ...], side: int) -> bool:
    """Whether it can be solved, by counting inversions, the textbook's rule."""
    tiles = [tile for tile in state if tile]
    inversions = sum(a > b for i, a in enumerate(tiles) for b in tiles[i + 1 :])
    if side % 2:
        return inversions % 2 == 0
    return (inversions + side - 1 - state.index(0) // side) % 2 == 0


@pytest.mark.parametrize("level", range(1, 6))
def test_scrambles_have_the_parity_of_the_solution(level: int) -> None:
    env, side = SlidingPuzzleEnv(level=level), LEVELS[level - 1][0]
    starts = {env.make(*env.begin({}, seed)).start for seed in range(100)}
    assert all(can_be_solved(start, side) for start in starts)
    assert all(sorted(start) == list(range(side * side)) for start in starts)
    assert len(starts) > (15 if level == 1 else 50)
    swapped = (2, 1, *range(3, side * side), 0)
    assert not can_be_solved(swapped, side)


def test_a_move_names_the_direction_in_which_a_tile_slides() -> None:
    game = SlidingPuzzle(3, (1, 2, 3, 4, 0, 5, 7, 8, 6))
    assert game.move(game.start, "left") == (1, 2, 3, 4, 5, 0, 7, 8, 6)
    assert game.move(game.start, "right") == (1, 2, 3, 0, 4, 5, 7, 8, 6)
    assert game.move(game.start, "up") == (1, 2, 3, 4, 8, 5, 7, 0, 6)
    assert game.move(game.start, "down") == (1, 0, 3, 4, 2, 5, 7, 8, 6)
    assert game.move(game.solution, "up") == game.solution
    assert [game.best(game.start), game.best(game.move(game.start, "left"))] == ["left", "up"]


def test_the_hardest_arrangement_of_eight_tiles_is_solved() -> None:
    hardest = SlidingPuzzle(3, (8, 6, 7, 2, 5, 4, 3, 0, 1))  # 31 moves at best
    assert 31 <= (hardest.max_steps - 10) / 2 <= 61


def test_pieces_of_a_landscape_differ() -> None:
    for seed in range(30):
        assert difference(scenery(np.random.default_rng(seed), 224, (4, 4)), (4, 4)) >= MIN_DIFFERENCE


def test_the_jigsaw_is_whole_when_it_is_solved() -> None:
    env = JigsawEnv(level=4)
    env.reset({}, 3)
    result = env.step(env.oracle())
    while not result.terminated:
        result = env.step(env.oracle())
    different = (np.asarray(result.observation.images[0]) != env.world.image).any(2)
    assert different.mean() < 0.15  # seams and the numbers in the corners


def test_a_jigsaw_can_be_answered_in_one_go() -> None:
    env = JigsawEnv(level=2, mode="order")
    env.reset({}, 0)
    for wrong in ("1 2 3 4 5", "1 2 3 4 5 5", "1, 2, 3, 4, 5, 6", "1 2 3 4 5 7", "swap 1 2"):
        env.reset({}, 0)
        assert env.step(f"<action>{wrong}</action>").info["invalid"], wrong
    env.reset({}, 0)
    state = env.state
    order = " ".join(str(state.index(piece) + 1) for piece in range(6))
    result = env.step(f"<action>{order}</action>")
    assert (result.reward, result.terminated) == (1.0, True)
    env.reset({}, 0)
    assert env.step(f"<action>{order[::-1]}</action>").reward == 0


def test_a_swap_may_name_either_place_first() -> None:
    one, other = JigsawEnv(), JigsawEnv()
    one.reset({}, 0)
    other.reset({}, 0)
    one.step("<action>swap 1 3</action>")
    other.step("<action>SWAP  3 1</action>")
    assert one.state == other.state
    assert one.step("<action>swap 2 2</action>").info["invalid"]
    assert one.step("<action>swap 0 1</action>").info["invalid"]
