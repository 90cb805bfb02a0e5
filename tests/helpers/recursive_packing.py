"""How trees and units were made before, branch by branch and by recursion: slow, to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.ledger import Ledger
from vlrl.packing.pack import PAIRS_PER_TOKEN, PIXELS_PER_TOKEN, PackUnit, worth_sharing
from vlrl.packing.prefix_tree import Branch, TreeNode, distinct, num_pairs, preorder


def unit_of(branches: Sequence[Branch]) -> PackUnit:
    """Measure some branches."""
    nodes = [node for node, _ in preorder(grow(branches))]
    num_tokens = sum(node.end - node.start for node in nodes)
    shown = distinct([medium for node in nodes for medium, _ in node.media])
    num_pixels = sum(medium.frames[..., 0].size for medium in shown.values())
    pairs = sum(map(num_pairs, nodes))
    cost = num_tokens + pairs / PAIRS_PER_TOKEN + num_pixels / PIXELS_PER_TOKEN
    return PackUnit(tuple(branches), num_tokens, num_pixels, cost)


def grow(branches: Sequence[Branch]) -> TreeNode:
    """The tree of some branches: a root without tokens, forks as late as the keys allow."""
    root = TreeNode(branches[0], 0, 0) if branches else _nothing()
    for branch in branches:
        _insert(root, branch)
    return root


def _insert(root: TreeNode, branch: Branch) -> None:
    node, num_tokens = root, branch.keys.shape[1]
    while node.end < num_tokens:
        key = _key(branch, node.end)
        child = node.children.get(key)
        if child is None:
            child = node.children[key] = TreeNode(branch, node.end, num_tokens)
        else:
            place = _first_difference(child, branch)
            if place < child.end:
                child.fork(place)
        node = child
    node.ending.append(branch)


def _first_difference(node: TreeNode, branch: Branch) -> int:
    """The place where a branch leaves a node's tokens, or the node's end."""
    end = min(node.end, branch.keys.shape[1])
    same = (node.branch.keys[:, node.start : end] == branch.keys[:, node.start : end]).all(axis=0)
    return end if same.all() else node.start + int(same.argmin())


def _key(branch: Branch, place: int) -> tuple[int, ...]:
    return tuple(branch.keys[:, place].tolist())


def _nothing() -> TreeNode:
    empty = np.zeros(0, np.float32)
    ledger = Ledger(empty.astype(np.int64), np.zeros((3, 0), np.int64), empty > 0, empty, (), (), ())
    return TreeNode(Branch("", ledger, empty, empty > 0, 0.0, np.zeros((5, 0), np.int64)), 0, 0)


def units_of(node: TreeNode, max_tokens: int) -> list[PackUnit]:
    """The branches beneath a node, those together that are worth it and fit."""
    parts = [unit_of([branch]) for branch in node.ending]
    parts += [unit for child in node.children.values() for unit in units_of(child, max_tokens)]
    if not worth_sharing(node.end, [part.num_tokens for part in parts]):
        return parts
    units: list[list[PackUnit]] = []
    used = 0
    for part in parts:
        if units and used + part.num_tokens - node.end <= max_tokens:
            units[-1].append(part)
            used += part.num_tokens - node.end
        else:
            units.append([part])
            used = part.num_tokens
    return [u[0] if len(u) == 1 else unit_of([b for part in u for b in part.branches]) for u in units]
