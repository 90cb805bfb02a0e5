"""Which worker of pytest-xdist runs what: whole files, and all that share a Ray after one another."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from xdist.scheduler import LoadScopeScheduling

SHARED_RAY = "what shares a Ray"
SHARING = (
    "tests/e2e/",
    "tests/contract/test_families_engines.py",
    "tests/cluster/test_session.py",
    "tests/gpu/test_cuda.py",
)
"""Files and folders of tests with the fixture `local_ray`."""
NOT_SHARING = ("tests/e2e/test_signals.py",)


def scope_of(test: str) -> str:
    """What a test is run together with: its file, or all files that share a Ray."""
    file = test.partition("::")[0]
    return SHARED_RAY if file.startswith(SHARING) and file not in NOT_SHARING else file


class LongestFirst(OrderedDict[str, Any]):
    """Work in the order in which it is given out: what shares a Ray takes longest."""

    def __setitem__(self, scope: str, tests: Any) -> None:
        super().__setitem__(scope, tests)
        if scope == SHARED_RAY:
            self.move_to_end(scope, last=False)


class Scheduling(LoadScopeScheduling):
    """`--dist loadfile`, but Ray, its templates of workers and the tiny models are of one worker alone.

    It begins with their tests; beside so long a job the others even out.
    """

    def __init__(self, *given: Any) -> None:
        """Begin with an empty queue; arguments are the base's."""
        super().__init__(*given)
        self.workqueue = LongestFirst()

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
