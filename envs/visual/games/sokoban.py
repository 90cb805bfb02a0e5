"""Sokoban: push every box onto a target; boxes cannot be pulled."""

from __future__ import annotations

import numpy as np

from vlrl.envs.visual.drawing import tiles
from vlrl.envs.visual.drawing.tiles import DIRECTIONS, board
from vlrl.envs.visual.games.moves import Game, MovesEnv, Status
from vlrl.envs.visual.games.sokoban_rules import SokobanRoom, State, fields, solve
from vlrl.types import ByteArray

LEVELS = ((4, 1, 2), (5, 1, 5), (5, 2, 6), (6, 2, 9), (6, 3, 12))
"""(side of the floor, boxes, fewest pushes that are aimed at), by level."""
WALL_SHARE = 0.18
"""Of the floor that is walled up."""
MAX_DRAWS = 40
MAX_NODES = 1_500
"""Positions the solver looks at while rooms are drawn; ten times as many in the midst of a game."""


class Sokoban(Game[State]):
    """One room. Boxes pushed into a corner stay there; the episode goes on until it is cut."""

    moves = tuple(DIRECTIONS)

    def __init__(self, room: SokobanRoom, start: State, solution: list[str]) -> None:
        """Set up the room.

        Args:
            room: walls and targets.
            start: player and boxes.
            solution: moves that solve it.
        """
        self.room, self.start = room, start
        self.max_steps = 2 * len(solution) + 20
        self._best: dict[State, str] = {}
        self._learn(start, solution)

    def move(self, state: State, move: str) -> State:
        """Walk or push."""
        return self.room.move(state, move)

    def status(self, state: State) -> Status:
        """Won when every box is home."""
        return "won" if state[1] == self.room.targets else "open"

    def best(self, state: State) -> str:
        """The next move of a solution; "up" where none is found: the boxes are stuck, or it is too deep."""
        if state not in self._best:
            self._learn(state, solve(self.room, state, 10 * MAX_NODES) or ["up"])
        return self._best[state]

    def _learn(self, state: State, moves: list[str]) -> None:
        for move in moves:
            self._best[state] = move
            state = self.move(state, move)

    def draw(self, state: State, size: int) -> ByteArray:
        """The room from above."""
        player, boxes = state
        width, targets = self.room.width, self.room.targets
        painters = [tiles.floor if 1 << i & self.room.floor else tiles.wall for i in range(width * width)]
        for here in fields(targets):
            painters[here] = tiles.target
        for here in fields(boxes):
            painters[here] = tiles.box_home if 1 << here & targets else tiles.box
        painters[player] = tiles.player_on_target if 1 << player & targets else tiles.player
        return board([painters[i : i + width] for i in range(0, width * width, width)], size)


class SokobanEnv(MovesEnv[State]):
    """Rooms with 1 to 3 boxes, made by playing backwards from the solution, so that every one has one.

    Reward 1 when all boxes are home, 0 otherwise, less the penalties. A random walk solves 13 % of the
    rooms of level 1 before the episode is cut, 1 % of level 2 and none above.
    """

    name = "visual/sokoban"
    rules = (
        "The picture shows a store room from above: walls of brick, you in blue, brown boxes, red rings "
        "where boxes belong; a box on a ring is green. Walk into a box to push it; you cannot pull. "
        "Push every box onto a ring."
    )
    goal = "Push every box onto a ring."

    def make(self, rng: np.random.Generator, level: int) -> Sokoban:
        """Draw rooms until one is hard enough; the hardest of MAX_DRAWS if none is."""
        side, num_boxes, least = LEVELS[level - 1]
        hardest: tuple[int, Sokoban] | None = None
        for _ in range(MAX_DRAWS):
            room, start = _draw(rng, side, num_boxes)
            solution = solve(room, start, MAX_NODES) if start[1] != room.targets else None
            if solution is None:
                continue
            pushes = _num_pushes(room, start, solution)
            if hardest is None or pushes > hardest[0]:
                hardest = (pushes, Sokoban(room, start, solution))
            if pushes >= least:
                break
        if hardest is None:
            raise RuntimeError(f"env {self.name}: no room of level {level} was found in {MAX_DRAWS} draws")
        return hardest[1]


def _draw(rng: np.random.Generator, side: int, num_boxes: int) -> tuple[SokobanRoom, State]:
    """A room, and a state reached from its solution by random pulls."""
    width = side + 2
    walls = rng.random((width, width)) < WALL_SHARE
    walls[[0, -1]] = walls[:, [0, -1]] = True
    floor = sum(1 << int(i) for i in np.flatnonzero(~walls))
    room = SokobanRoom(width, floor, 0)
    floor = max((room.region(here, 0) for here in fields(floor)), key=int.bit_count, default=0)
    places = list(fields(floor))
    if len(places) < num_boxes + 3:
        return room, (0, 0)
    chosen = rng.choice(len(places), num_boxes + 1, replace=False)
    player, *homes = (places[i] for i in chosen)
    targets = sum(1 << home for home in homes)
    room = SokobanRoom(width, floor, targets)
    boxes, last = targets, -1
    for _ in range(8 * side):
        pulls = list(_pulls(room, player, boxes))
        if not pulls:
            break
        # One box is pulled on for a while: it gets farther from home.
        same = [pull for pull in pulls if pull[0] == last]
        chosen_from = same if same and rng.random() < 0.7 else pulls
        box, step = chosen_from[int(rng.integers(len(chosen_from)))]
        last = box + step
        player, boxes = box + 2 * step, boxes ^ 1 << box ^ 1 << last
    around = list(fields(room.region(player, boxes)))
    return room, (around[int(rng.integers(len(around)))], boxes)


def _pulls(room: SokobanRoom, player: int, boxes: int) -> list[tuple[int, int]]:
    """(box, step) of every pull: from the field beside the box, stepping back with it."""
    region, free = room.region(player, boxes), room.floor & ~boxes
    return [
        (box, step)
        for box in fields(boxes)
        for step in room.steps.values()
        if 1 << box + step & region and box + 2 * step >= 0 and 1 << box + 2 * step & free
    ]


def _num_pushes(room: SokobanRoom, state: State, moves: list[str]) -> int:
    pushes = 0
    for move in moves:
        before, state = state, room.move(state, move)
        pushes += before[1] != state[1]
    return pushes
