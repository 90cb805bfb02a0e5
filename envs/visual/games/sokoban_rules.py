"""Sokoban's rules and solver, on fields numbered row by row and sets of fields held as the bits of an int."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from vlrl.envs.visual.drawing.tiles import DIRECTIONS

State = tuple[int, int]  # (field of the player, boxes as bits)
Push = tuple[int, str]  # (field of the box, move that pushes it)


@dataclass(frozen=True)
class SokobanRoom:
    """A walled room with targets.

    Attributes:
        width: fields in a row, walls included.
        floor: the fields without a wall, as bits; the room's rim has none.
        targets: where boxes belong, as bits.
    """

    width: int
    floor: int
    targets: int
    steps: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        steps = {move: down * self.width + right for move, (down, right) in DIRECTIONS.items()}
        object.__setattr__(self, "steps", steps)

    def move(self, state: State, move: str) -> State:
        """Walk or push; the same state if that is not possible."""
        player, boxes = state
        step = self.steps[move]
        there, beyond = 1 << player + step, 1 << player + 2 * step if player + 2 * step >= 0 else 0
        if not there & self.floor:
            return state
        if not there & boxes:
            return player + step, boxes
        if not beyond & self.floor & ~boxes:
            return state
        return player + step, boxes ^ there ^ beyond

    def region(self, player: int, boxes: int) -> int:
        """The fields that the player can walk to, as bits."""
        free, seen, width = self.floor & ~boxes, 0, self.width
        grown = 1 << player
        while grown != seen:
            seen = grown
            grown = (seen | seen << 1 | seen >> 1 | seen << width | seen >> width) & free
        return seen

    def walk(self, player: int, boxes: int, goal: int) -> list[str]:
        """Moves of a shortest walk around the boxes; goal must be in the region."""
        came: dict[int, str] = {player: ""}
        edge = deque([player])
        while goal not in came:
            here = edge.popleft()
            for move, step in self.steps.items():
                there = here + step
                if there not in came and 1 << there & self.floor & ~boxes:
                    came[there] = move
                    edge.append(there)
        moves: list[str] = []
        while goal != player:
            moves.append(came[goal])
            goal -= self.steps[came[goal]]
        return moves[::-1]

    def distances(self) -> dict[int, int]:
        """Pushes from each field to its nearest target, were there no other box; a dead field has none."""
        found = dict.fromkeys(fields(self.targets), 0)
        edge = deque(found)
        while edge:
            box = edge.popleft()
            for step in self.steps.values():
                before, pusher = box - step, box - 2 * step
                inside = pusher >= 0 and 1 << before & self.floor and 1 << pusher & self.floor
                if inside and before not in found:
                    found[before] = found[box] + 1
                    edge.append(before)
        return found


def solve(room: SokobanRoom, state: State, max_nodes: int) -> list[str] | None:
    """Moves that bring every box home, in few pushes though not always in the fewest; None if none is found.

    A* over pushes; the estimate counts double, which finds a solution soon.
    """
    distances = room.distances()
    player, boxes = state
    if any(box not in distances for box in fields(boxes)):
        return None
    region = room.region(player, boxes)
    came: dict[State, tuple[State, Push] | None] = {(region, boxes): None}
    costs = {(region, boxes): 0}
    edge = [(0, 0, region, boxes)]
    for _ in range(max_nodes):
        if not edge:
            return None
        _, _, region, boxes = heapq.heappop(edge)
        if boxes == room.targets:
            return _moves(room, state, _pushes(came, (region, boxes)))
        cost = costs[region, boxes] + 1
        for box, move in _possible(room, region, boxes):
            there = box + room.steps[move]
            if there not in distances:
                continue
            after = boxes ^ 1 << box ^ 1 << there
            node = (room.region(box, after), after)
            if cost < costs.get(node, 1 << 30):
                costs[node], came[node] = cost, ((region, boxes), (box, move))
                estimate = cost + 2 * sum(distances[b] for b in fields(after))
                heapq.heappush(edge, (estimate, len(came), *node))
    return None


def fields(bits: int) -> Iterator[int]:
    """The fields of a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _possible(room: SokobanRoom, region: int, boxes: int) -> Iterator[Push]:
    free = room.floor & ~boxes
    for box in fields(boxes):
        for move, step in room.steps.items():
            if 1 << box - step & region and 1 << box + step & free:
                yield box, move


def _pushes(came: dict[State, tuple[State, Push] | None], node: State) -> list[Push]:
    pushes: list[Push] = []
    while (link := came[node]) is not None:
        node, push = link
        pushes.append(push)
    return pushes[::-1]


def _moves(room: SokobanRoom, state: State, pushes: list[Push]) -> list[str]:
    (player, boxes), moves = state, list[str]()
    for box, move in pushes:
        step = room.steps[move]
        moves += [*room.walk(player, boxes, box - step), move]
        player, boxes = box, boxes ^ 1 << box ^ 1 << box + step
    return moves
