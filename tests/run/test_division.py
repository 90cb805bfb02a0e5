"""Which worker plays which position: a division of the work that hangs on places alone."""

from __future__ import annotations

from builders import make_config
from hypothesis import given
from hypothesis import strategies as st

from vlrl.placement.layout import Node, lay_out
from vlrl.run.players.division import ELSEWHERE, Division

nodes = st.integers(0, 3)
divisions = st.builds(
    Division,
    st.lists(nodes, min_size=1, max_size=6).map(tuple),
    st.lists(nodes, min_size=1, max_size=6).map(tuple),
)


@given(divisions, st.integers(0, 200))
def test_a_position_is_played_near_its_engine_if_anyone_is(division: Division, position: int) -> None:
    node = division.engine_nodes[division.engine_of(position)]
    assert (division.worker_nodes[division.worker_of(position)] == node) == (node in division.worker_nodes)


@given(divisions, st.integers(1, 40))
def test_positions_in_a_row_are_shared_evenly_among_the_workers_of_an_engine(
    division: Division, num_turns: int
) -> None:
    of_engine = range(0, num_turns * len(division.engine_nodes), len(division.engine_nodes))
    played = [division.worker_of(position) for position in of_engine]
    counts = [played.count(worker) for worker in set(played)]
    assert max(counts) - min(counts) <= 1 or len(set(played)) == 1


@given(divisions, st.lists(st.integers(0, 200), unique=True, min_size=1, max_size=30))
def test_an_engine_waits_for_those_who_ask_it_and_nobody_else(
    division: Division, positions: list[int]
) -> None:
    joint_batches = division.joint_batches("round", positions)
    for engine in range(len(division.engine_nodes)):
        own = [position for position in positions if division.engine_of(position) == engine]
        asking = {division.worker_of(position) for position in own}
        waiting = {worker for worker, of_worker in joint_batches.items() if engine in of_worker}
        assert waiting == (asking if len(asking) > 1 else set())
        for worker in waiting:
            assert joint_batches[worker][engine].clients == tuple(sorted(asking))


@given(divisions)
def test_an_engine_s_requests_are_shared_by_at_most_so_many(division: Division) -> None:
    workers = range(len(division.worker_nodes))
    for worker in workers:
        for engine in division.engines_of(worker):
            sharing = sum(engine in division.engines_of(other) for other in workers)
            assert 1 <= sharing <= division.num_sharing(worker)


def test_what_all_may_have_at_once_is_divided() -> None:
    config = make_config(
        rollout={"num_workers": 4},
        episodes={"max_episodes": 100},
        scoring={"num_workers": 6},
        env={"isolation": "process", "num_processes": 9},
        data={"num_workers": 2},
    )
    layout = lay_out(config, [Node("a", 2, 64.0), Node("b", 2, 64.0)])
    share = Division.of(layout).share_of(config, 0)
    assert share.episodes.max_episodes == 25
    assert share.env.num_processes == 2
    assert share.scoring.num_workers == 3  # beside one other on its node
    assert share.data.num_workers == 1


def test_every_worker_asks_all_servers_that_are_elsewhere() -> None:
    division = Division((ELSEWHERE, ELSEWHERE), (0, 1, 1))
    assert [division.engines_of(worker) for worker in range(3)] == [[0, 1]] * 3
    assert {division.worker_of(position) for position in range(12)} == {0, 1, 2}
