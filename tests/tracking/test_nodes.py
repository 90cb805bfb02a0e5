"""Which problems of machines are reported, and when they are reported again."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from vlrl.tracking.metrics import METRICS, NODE_GAUGES, describe, repeatable
from vlrl.tracking.nodes import NodeWatch

HEALTHY = {"alive": 1.0, "memory_used": 0.5, "run_disk_used": 0.5, "run_disk_free_gib": 500.0}


def events(watch: NodeWatch, readings: Iterable[dict[str, float]]) -> list[list[str]]:
    return [[event for event, _ in watch.note({"a": {**HEALTHY, **each}})] for each in readings]


def test_nothing_is_reported_of_a_healthy_node() -> None:
    assert events(NodeWatch(), [{}, {}]) == [[], []]


def test_memory_is_told_once_until_there_was_room_again() -> None:
    shares = (0.91, 0.95, 0.89, 0.91, 0.84, 0.92)
    told = events(NodeWatch(), [{"memory_used": share} for share in shares])
    assert told == [["node_memory"], [], [], [], [], ["node_memory"]]


@pytest.mark.parametrize(
    ("used", "free_gib", "expected"), [(0.96, 12.0, ["node_disk"]), (0.96, 400.0, []), (0.94, 12.0, [])]
)
def test_a_disk_is_full_by_share_and_room(used: float, free_gib: float, expected: list[str]) -> None:
    assert events(NodeWatch(), [{"run_disk_used": used, "run_disk_free_gib": free_gib}]) == [expected]


def test_a_sentence_names_the_node_and_the_figures() -> None:
    watch = NodeWatch()
    full = {**HEALTHY, "memory_used": 0.934, "run_disk_used": 0.97, "run_disk_free_gib": 2.345}
    texts = [text for _, text in watch.note({"gpu-7": full, "gpu-8": HEALTHY})]
    assert texts == [
        "node gpu-7: 93% of the memory is in use; Linux kills a process when it is full",
        "node gpu-7: the disk of the run's folder is nearly full, 2.3 GiB are free",
    ]


def test_a_node_that_leaves_and_one_that_is_back() -> None:
    watch = NodeWatch()
    told = [watch.note({"a": each}) for each in (HEALTHY, {"alive": 0.0}, {"alive": 0.0}, HEALTHY)]
    assert told == [
        [],
        [("node_lost", "node a has left the cluster")],
        [],
        [("node_back", "node a is back in the cluster")],
    ]


def test_metrics_are_taken_once_and_described() -> None:
    watch = NodeWatch()
    watch.note({"a": {"alive": 1.0, "cpu_load": 0.1}, "b": {"alive": 0.0}})
    watch.note({"a": {"alive": 1.0, "gpu0_memory_used": 0.7}})
    taken = watch.take_metrics()
    assert taken == {
        "nodes/a/alive": 1.0,
        "nodes/a/cpu_load": 0.1,
        "nodes/a/gpu0_memory_used": 0.7,
        "nodes/b/alive": 0.0,
    }
    assert watch.take_metrics() == {}
    assert all(describe(name) for name in taken)
    assert describe("nodes/a/unheard_of") == ""


def test_what_a_seed_repeats_has_neither_clocks_nor_machines() -> None:
    names = [*METRICS, *(f"nodes/a/{gauge}" for gauge in NODE_GAUGES)]
    kept = repeatable(dict.fromkeys(names, 1.0))
    assert {name.partition("/")[0] for name in names} - {name.partition("/")[0] for name in kept} == {
        "nodes",
        "throughput",
        "time_s",
    }
