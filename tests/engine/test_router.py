"""Which engine generates what: an episode stays, a group stays together, and the load is even."""

from __future__ import annotations

from builders import make_sample
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.engine.client.router import SLACK, Router
from vlrl.rollout.session import Session


def group(name: str, size: int) -> list[Session]:
    return [Session(make_sample(id=name), index) for index in range(size)]


def test_groups_stay_together_and_are_spread() -> None:
    balance = Router(3)
    groups = [group(str(i), 4) for i in range(6)]
    engines = [{balance.place(session) for session in members} for members in groups]
    assert all(len(of_group) == 1 for of_group in engines)
    assert sorted(next(iter(of_group)) for of_group in engines) == [0, 0, 1, 1, 2, 2]


def test_an_episode_stays_however_full_its_engine_is() -> None:
    balance = Router(2)
    [session] = group("a", 1)
    home = balance.place(session)
    balance.leave(home)
    for other in (s for i in range(40) for s in group(f"b{i}", 1)):
        balance.place(other)
    assert balance.place(session) == home


def test_a_group_larger_than_the_slack_goes_to_several() -> None:
    balance = Router(2)
    placed = [balance.place(session) for session in group("a", 64)]
    assert abs(placed.count(0) - placed.count(1)) <= SLACK + 1


def test_a_step_is_placed_alike_whatever_steps_were_before() -> None:
    """A resumed run knows nothing of them, and its waves must be the same to the last bit (law 8)."""

    def step(balance: Router, names: str) -> list[int]:
        placed = [balance.place(session) for name in names for session in group(name, 4)]
        for engine in placed:
            balance.leave(engine)
        return placed

    going_on, resumed = Router(2), Router(2)
    step(going_on, "abcd")
    assert step(going_on, "acbe") == step(resumed, "acbe")  # the next epoch has another order


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=200), st.integers(1, 4))
def test_no_engine_is_far_ahead_and_the_same_requests_go_the_same_way(
    events: list[tuple[int, bool]], num_engines: int
) -> None:
    def play() -> list[int]:
        balance, open_requests, placed = Router(num_engines), [0] * num_engines, []
        for number, leaves in events:
            if leaves and any(open_requests):
                engine = open_requests.index(max(open_requests))
                balance.leave(engine)
                open_requests[engine] -= 1
                continue
            idlest = min(open_requests)
            engine = balance.place(Session(make_sample(id=str(number)), 0))
            assert open_requests[engine] <= idlest + SLACK
            open_requests[engine] += 1
            placed.append(engine)
        return placed

    assert play() == play()
