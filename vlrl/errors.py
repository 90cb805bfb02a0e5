"""Errors a user can act on: each names the thing, the place and the remedy."""

from __future__ import annotations


class VlrlError(Exception):
    """Base of vlrl's own errors; the command line prints them without a traceback, exit code 1."""

    exit_code = 1


class ConfigError(VlrlError):
    """A wrong option, key, name or path: exit code 2."""

    exit_code = 2


class DataError(VlrlError):
    """A dataset, row or medium that cannot be used."""


class DatasetMissing(DataError):
    """A dataset's file or folder does not exist: exit code 2, as for every other wrong path."""

    exit_code = 2


class EngineError(VlrlError):
    """vLLM, DeepSpeed or Ray failed, or what they report breaks a law of docs/laws.md."""


class EngineDied(EngineError):
    """An engine's process has died."""


class TrainerDied(EngineDied):
    """A trainer rank's process has died with its part of the weights: the run resumes from a checkpoint."""


class NodeLost(EngineError):
    """A machine has left the cluster on which processes of the run were placed."""


class CheckpointError(VlrlError):
    """A checkpoint's files are not what was written."""


class EnvError(VlrlError):
    """Environments failed in more episodes than the run tolerates."""


class NoOracle(VlrlError):
    """An environment's oracle does not know how to solve this task; it may know others."""


class ScoringError(VlrlError):
    """Rewards failed on more completions than the run tolerates."""


class ResourceError(VlrlError):
    """Too little disk, memory or shared memory, or a port in use."""


class InternalError(VlrlError):
    """An unexpected failure: a bug in vlrl or in a plug-in."""


class Interrupted(VlrlError):
    """Stopped by Ctrl-C or SIGTERM after a clean save: exit code 130."""

    exit_code = 130
