"""Which process gets which GPU: counted, for any number of nodes."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_config
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError
from vlrl.placement.layout import Layout, Node, lay_out, resolved

ASYNC: dict[str, Any] = {"asynchronous": {"mode": "async"}, "episodes": {"lockstep": False}}


def cluster_of(*num_gpus: int) -> list[Node]:
    return [Node(f"10.0.0.{number + 1}", count, 64.0) for number, count in enumerate(num_gpus)]


def gpus(layout: Layout, kind: str) -> list[tuple[int, tuple[int, ...]]]:
    return [(slot.node, slot.gpus) for slot in getattr(layout, kind)]


def config_of(**sections: Any) -> Config:
    return make_config(**sections)


def test_on_one_gpu_both_take_turns() -> None:
    layout = lay_out(config_of(), cluster_of(1))
    assert gpus(layout, "ranks") == gpus(layout, "engines") == [(0, (0,))]
    assert layout.takes_turns and layout.kind == "colocated"


def test_on_a_cpu_there_is_one_of_each_and_nothing_to_hand_over() -> None:
    layout = lay_out(config_of(), [Node("here", 0, 4.0)])
    assert (len(layout.ranks), len(layout.engines)) == (1, 1)
    assert not layout.takes_turns and not layout.on_gpu


def test_on_eight_gpus_ranks_and_replicas_fill_all_of_them() -> None:
    layout = lay_out(config_of(generator={"tensor_parallel_size": 2}), cluster_of(8))
    assert gpus(layout, "ranks") == [(0, (gpu,)) for gpu in range(8)]
    assert gpus(layout, "engines") == [(0, (gpu, gpu + 1)) for gpu in range(0, 8, 2)]


def test_async_mode_splits_the_gpus() -> None:
    layout = lay_out(config_of(**ASYNC), cluster_of(8))
    assert gpus(layout, "ranks") == [(0, (gpu,)) for gpu in range(4)]
    assert gpus(layout, "engines") == [(0, (gpu,)) for gpu in range(4, 8)]
    assert not layout.takes_turns


def test_what_is_given_leaves_the_rest_to_the_others() -> None:
    layout = lay_out(config_of(**ASYNC, generator={"num_replicas": 6}), cluster_of(8))
    assert (len(layout.ranks), len(layout.engines)) == (2, 6)
    layout = lay_out(config_of(**ASYNC, trainer={"num_ranks": 6}), cluster_of(8))
    assert (len(layout.ranks), len(layout.engines)) == (6, 2)


def test_a_replica_never_crosses_nodes() -> None:
    layout = lay_out(config_of(generator={"tensor_parallel_size": 2}), cluster_of(3, 3))
    assert gpus(layout, "engines") == [(0, (0, 1)), (1, (0, 1))]


def test_a_head_without_a_gpu_gets_nothing() -> None:
    layout = lay_out(config_of(), cluster_of(0, 2))
    assert {slot.node for slot in (*layout.ranks, *layout.engines)} == {1}


def test_ranks_that_share_sequences_come_in_whole_groups() -> None:
    assert len(lay_out(config_of(trainer={"sequence_parallel": 2}), cluster_of(5)).ranks) == 4


def test_a_run_that_only_generates_or_only_trains_has_all_gpus() -> None:
    assert len(lay_out(config_of(), cluster_of(4), train=False).engines) == 4
    assert len(lay_out(config_of(), cluster_of(4), generate=False).ranks) == 4


def test_on_gpus_a_prompt_may_take_several_steps() -> None:
    assert lay_out(config_of(generator={"max_num_batched_tokens": 256}), cluster_of(1)).engines


def test_on_cpus_pairs_fill_one_node_after_the_other() -> None:
    config = config_of(trainer={"num_ranks": 2}, generator={"num_replicas": 2})
    layout = lay_out(config, [Node("a", 0, 2.0), Node("b", 0, 2.0)])
    assert [slot.node for slot in layout.ranks] == [slot.node for slot in layout.engines] == [0, 1]


def test_a_run_goes_on_with_the_nodes_that_are_left_unless_it_names_a_number() -> None:
    """What an attempt after the loss of a node begins with: the config as it was written, and fewer nodes."""
    config, nodes = config_of(), cluster_of(8, 8)
    assert resolved(config, lay_out(config, nodes)).trainer.num_ranks == 16
    left = resolved(config, lay_out(config, nodes[1:]))
    assert (left.trainer.num_ranks, left.generator.num_replicas) == (8, 8)
    for section, key in (("trainer", "num_ranks"), ("generator", "num_replicas")):
        named = config_of(**{section: {key: 16}})
        lay_out(named, nodes)
        with pytest.raises(ResourceError, match="16"):
            lay_out(named, nodes[1:])


@pytest.mark.parametrize(
    ("sections", "num_gpus", "words"),
    [
        (
            {"trainer": {"num_ranks": 9}},
            (8, 0),
            r"num_ranks=9 needs as many .* NCCL refuses two on one.* has 8 \(10.0.0.1: 8, 10.0.0.2: 0\)",
        ),
        (
            {"generator": {"tensor_parallel_size": 8}},
            (4, 2),
            r"a replica must lie in one node.* 4 GPUs \(10.0.0.1: 4, 10.0.0.2: 2\)",
        ),
        (ASYNC, (1,), r"1 replicas .* need 1 GPUs beside 1 of ranks.*10.0.0.1: 1.*asynchronous.mode=sync"),
        ({"generator": {"num_replicas": 9}}, (8,), r"9 replicas .* room for 8 \(10.0.0.1: 8\)"),
        ({"trainer": {"num_ranks": 3, "cpus_per_rank": 2}}, (), r"reserves 7 cpus, Ray has 4 \(here: 4\)"),
        (
            {"generator": {"max_num_batched_tokens": 256}},
            (),
            r"max_num_batched_tokens=256 is below .*max_model_len=512: without GPUs .* a prompt in one step",
        ),
    ],
)
def test_what_cannot_be_placed_is_refused_with_the_remedy(
    sections: dict[str, Any], num_gpus: tuple[int, ...], words: str
) -> None:
    nodes = cluster_of(*num_gpus) or [Node("here", 0, 4.0)]
    with pytest.raises(ResourceError, match=words):
        lay_out(config_of(**sections), nodes)


def test_of_many_nodes_some_are_named() -> None:
    with pytest.raises(ResourceError, match=r"has 160 \(10.0.0.1: 8, .*10.0.0.8: 8, 12 more nodes: 96\)"):
        lay_out(config_of(trainer={"num_ranks": 200}), cluster_of(*[8] * 20))


def test_async_mode_cannot_take_turns() -> None:
    with pytest.raises(ConfigError, match=r"set placement=split, or asynchronous\.mode=sync"):
        config_of(placement="colocated", **ASYNC)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["auto", "colocated", "split"]),
)
def test_no_gpu_has_two_ranks_or_two_engines(num_gpus: list[int], parallel: int, placement: str) -> None:
    config = config_of(placement=placement, generator={"tensor_parallel_size": parallel})
    try:
        layout = lay_out(config, cluster_of(*num_gpus))
    except ResourceError:
        return
    taken = {}
    for kind in ("ranks", "engines"):
        of_kind = [(node, gpu) for node, held in gpus(layout, kind) for gpu in held]
        assert len(of_kind) == len(set(of_kind))
        assert all(gpu < num_gpus[node] for node, gpu in of_kind)
        taken[kind] = set(of_kind)
    assert len(layout.ranks) >= 1 and len(layout.engines) >= 1
    if placement == "split":
        assert not taken["ranks"] & taken["engines"]
    else:
        assert len(layout.ranks) == sum(num_gpus)  # no GPU is idle while the trainer has its turn
    assert layout.takes_turns == bool(taken["ranks"] & taken["engines"])


# How weights travel then.


def transport(nodes: list[Node], **sections: Any) -> str:
    config = config_of(**sections)
    return resolved(config, lay_out(config, nodes)).weights.transport


def test_weights_go_through_memory_where_every_engine_has_a_rank_beside_it() -> None:
    assert transport(cluster_of(8)) == transport(cluster_of(8, 8)) == "shared_memory"
    assert transport(cluster_of(4, 4), **ASYNC) == "broadcast"
    assert transport(cluster_of(4, 4), **ASYNC, weights={"transport": "disk"}) == "disk"


@pytest.mark.parametrize(
    ("nodes", "sections", "words"),
    [
        (
            (4, 4),
            {**ASYNC, "weights": {"transport": "shared_memory"}},
            "an engine is on a node without a rank",
        ),
        ((8,), {"weights": {"transport": "broadcast"}}, "NCCL refuses two processes on one GPU"),
    ],
)
def test_a_transport_that_cannot_work_is_refused(
    nodes: tuple[int, ...], sections: dict[str, Any], words: str
) -> None:
    with pytest.raises(ResourceError, match=words):
        transport(cluster_of(*nodes), **sections)


def test_the_config_gets_the_numbers_that_there_is_room_for() -> None:
    config = config_of()
    found = resolved(config, lay_out(config, cluster_of(4, 4)))
    assert (found.trainer.num_ranks, found.generator.num_replicas) == (8, 8)
    assert (config.trainer.num_ranks, config.generator.num_replicas) == (None, None)


def test_the_layout_is_told_gpu_by_gpu() -> None:
    assert lay_out(config_of(generator={"tensor_parallel_size": 2}), cluster_of(2)).lines() == [
        "10.0.0.1 GPU 0: rank 0, engine 0",
        "10.0.0.1 GPU 1: rank 1, engine 0",
        "10.0.0.1: worker 0",
    ]


def test_workers_are_near_the_engines_one_for_two_gpus() -> None:
    layout = lay_out(config_of(), cluster_of(8, 8))
    assert gpus(layout, "workers") == [(0, ())] * 4 + [(1, ())] * 4
    layout = lay_out(config_of(**ASYNC), cluster_of(8, 8))  # engines are on the second node alone
    assert gpus(layout, "workers") == [(1, ())] * 4


def test_workers_take_no_more_cores_than_ranks_and_engines_leave() -> None:
    def nodes(num_cpus: float) -> list[Node]:
        return [Node("10.0.0.1", 4, num_cpus)]

    config = config_of(trainer={"cpus_per_rank": 1}, generator={"cpus": 1})
    assert len(lay_out(config, nodes(9.5)).workers) == 1
    assert not lay_out(config, nodes(8.0)).workers
    given = config_of(trainer={"cpus_per_rank": 1}, generator={"cpus": 1}, rollout={"num_workers": 2})
    with pytest.raises(
        ResourceError, match=r"need 2 cpus on node 10\.0\.0\.1, where .* leave 1\.5; lower it"
    ):
        lay_out(given, nodes(9.5))


def test_on_one_machine_without_a_gpu_the_driver_plays_and_on_two_there_is_a_worker_on_each() -> None:
    nodes = [Node("here", 0, 5.0), Node("there", 0, 5.0)]
    assert not lay_out(config_of(), nodes[:1]).workers
    both = config_of(trainer={"num_ranks": 2, "cpus_per_rank": 2}, generator={"num_replicas": 2, "cpus": 2})
    assert gpus(lay_out(both, nodes), "workers") == [(0, ()), (1, ())]
    assert not lay_out(both, nodes, train=False).workers
    assert not lay_out(config_of(rollout={"num_workers": 0}), cluster_of(8)).workers


# Engines that are servers elsewhere.

HERE, THERE = (
    {"servers": ["http://127.0.0.1:8001"]},
    {"servers": ["http://10.0.0.9:8001", "http://10.0.0.9:8002"]},
)


def test_servers_leave_all_gpus_to_the_ranks() -> None:
    config = config_of(**ASYNC, generator=THERE)
    layout = lay_out(config, cluster_of(4, 4))
    assert (len(layout.ranks), layout.engines, layout.num_servers) == (8, (), 2)
    assert not layout.takes_turns
    assert resolved(config, layout).generator.num_replicas == 2
    assert lay_out(config, cluster_of(4), generate=False).num_servers == 0


def test_rollout_workers_of_servers_are_beside_the_ranks() -> None:
    layout = lay_out(config_of(generator=THERE, rollout={"num_workers": 3}), cluster_of(4, 4))
    assert [slot.node for slot in layout.workers] == [0, 0, 1]


def test_weights_reach_servers_through_memory_only_on_this_machine() -> None:
    assert transport(cluster_of(8), generator=HERE) == "shared_memory"
    assert transport(cluster_of(8), generator=THERE) == "broadcast"
    assert transport(cluster_of(4, 4), generator=HERE) == "broadcast"
    with pytest.raises(ResourceError, match="no rank can write to its memory"):
        transport(cluster_of(8), generator=THERE, weights={"transport": "shared_memory"})
