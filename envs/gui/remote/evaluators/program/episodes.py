"""Requests of vlrl: what desktop_env can do here, a task's score, a step of its set-up; one at a time."""

from __future__ import annotations

import ast
import asyncio
import logging
import os
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, redirect_stdout
from importlib.metadata import version
from types import FunctionType
from typing import Any

from reach import Reach, reach_of
from stand_ins import MissingPackage, StandIn, load


class Episodes:
    """Answers requests: each method is one, its arguments are the request's keys."""

    num_playing = 0
    """Nothing is kept between requests."""

    def __init__(self) -> None:
        """Import desktop_env."""
        self._thread = ThreadPoolExecutor(1)
        # It reads a setting of the machine with eval; the setting is a list of texts.
        load("evaluators.metrics.basic_os").eval = ast.literal_eval
        self._metrics, self._getters = load("evaluators.metrics"), load("evaluators.getters")
        self._controller = load("controllers.setup").SetupController
        self._wants = {name: reach.wants for name, reach in self._getters_reach().items()}

    async def describe(self, steps: list[str]) -> dict[str, Any]:
        """The version, and what each metric, each getter and some set-up steps need."""
        rows = {
            "metrics": {name: reach_of(value) for name, value in _functions(self._metrics)},
            "getters": self._getters_reach(),
            "steps": {
                step: reach_of(getattr(self._controller, f"_{step}_setup"), self._controller)
                for step in steps
            },
        }
        described = {
            kind: {name: _row(reach) for name, reach in found.items()} for kind, found in rows.items()
        }
        return {"version": version("desktop_env"), **described}

    async def score(
        self, evaluator: dict[str, Any], machine: dict[str, Any], limit_s: float
    ) -> dict[str, Any]:
        """A task's score: {"value": from 0 to 1}, or {"failure": why}."""
        from evaluation import Evaluation

        def scored(desktop: Any, wire: Any) -> float:
            judge = Evaluation(desktop, wire, self._metrics, self._getters, self._wants)
            return float(judge.score(evaluator))

        return await self._answered(machine, limit_s, scored)

    async def set_up(
        self, kind: str, parameters: dict[str, Any], machine: dict[str, Any], limit_s: float
    ) -> dict[str, Any]:
        """Do a step of a task's set-up: {"value": null}, or {"failure": why}."""

        def done(desktop: Any, wire: Any) -> None:
            ports = desktop.server_port, desktop.chromium_port, desktop.vlc_port
            controller = self._controller(
                desktop.vm_ip, *ports, desktop.cache_dir, machine["password"], *machine["size"]
            )
            getattr(controller, f"_{kind}_setup")(**parameters)
            wire.check()

        return await self._answered(machine, limit_s, done)

    def _getters_reach(self) -> dict[str, Reach]:
        getters = _functions(self._getters)
        return {
            name.removeprefix("get_"): reach_of(value) for name, value in getters if name.startswith("get_")
        }

    async def _answered(
        self, machine: dict[str, Any], limit_s: float, do: Callable[[Any, Any], Any]
    ) -> dict[str, Any]:
        """Run it in the thread that is for it: Playwright's plain interface belongs to one."""
        loop = asyncio.get_running_loop()
        try:
            return {"value": await loop.run_in_executor(self._thread, _watched, machine, limit_s, do)}
        except MissingPackage as error:
            return {"failure": str(error)}
        except Exception as error:  # of the machine, the network, an evaluator: never a score
            return {
                "failure": str(error)
                if type(error).__module__ in _OWN
                else f"{type(error).__name__}: {error}"
            }


_OWN = ("desktop", "evaluation")


def _watched(machine: dict[str, Any], limit_s: float, do: Callable[[Any, Any], Any]) -> Any:
    from desktop import Desktop, Wire

    wire = Wire(f"http://{machine['ip']}:{machine['server_port']}/", limit_s)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), wire.watched():
        return do(Desktop(machine), wire)


def _functions(module: Any) -> list[tuple[str, Any]]:
    """A module's functions, those that stand-ins take the place of among them."""
    values = vars(module).items()
    return [(name, value) for name, value in values if isinstance(value, FunctionType | StandIn)]


def _row(reach: Reach) -> dict[str, Any]:
    return {"missing": reach.missing, "packages": sorted(reach.packages), "wants": reach.wants}


@asynccontextmanager
async def opened(name: str, args: Mapping[str, Any]) -> AsyncIterator[Episodes]:
    """Import desktop_env; its name and arguments have no effect."""
    import desktop_env  # noqa: F401 (an error names it, if it is not installed)

    logging.disable(logging.CRITICAL)  # it logs whole files
    # It unpacks the agent's archives: nothing of a tar file is to be written elsewhere.
    tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
    yield Episodes()
