"""The sections of the config tree that are about episodes: where environments run, and what a policy sees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vlrl.config.options import Section


class EnvConfig(Section):
    """Where environments run, and how long they may take (law 7)."""

    isolation: Literal["inline", "thread", "process"] = "thread"
    """Of environments whose methods are not async: called in the event loop (only for those that answer at
    once), in a thread each (one that hangs is left behind), or in a process each, which is killed when it
    hangs and replaced when it dies."""
    num_processes: int | None = Field(None, ge=1)
    """Most processes, and episodes, at once; null is one an episode, up to episodes.max_episodes."""
    memory_gib: float = Field(4.0, gt=0.1)
    """Data of one process; an environment that needs more has failed."""
    reset_timeout_s: float = Field(60.0, gt=0)
    """A reset that takes longer has failed."""
    step_timeout_s: float = Field(30.0, gt=0)
    """A step that takes longer has failed."""
    attempts: int = Field(2, ge=1)
    """An episode whose environment failed is played again from the start, with the same seed, so often in
    all; then it is left out of its group."""


class ContextConfig(Section):
    """What the policy is shown of the conversation so far; it is trained on just that."""

    policy: Literal["full", "last_images", "window", "summary"] = "full"
    """All of it; all, but of the images only the last ones; the opening and the last exchanges; or the
    newest observation alone, after the summary that the environment gives with it."""
    num_images: int = Field(1, ge=1)
    """Images and videos kept by last_images."""
    num_turns: int = Field(2, ge=1)
    """Exchanges kept by window, before the newest observation."""
    left_out: str = "(an image that is no longer shown)"
    """What last_images writes in place of an image."""


class StragglerConfig(Section):
    """What is done about the slowest episodes of a step."""

    policy: Literal["wait", "redundancy", "cut_off"] = "wait"
    """Wait for all; generate more episodes than a group needs and take those that end first; or cut off those
    that still run some time after most have ended. Cut or surplus episodes are not trained and not failures,
    but which they are hangs on the clock, and what is trained leans to short episodes."""
    num_extra: int = Field(1, ge=1)
    """Episodes more, a group, for redundancy."""
    cut_off_share: float = Field(0.9, gt=0, le=1)
    """Share of a step's episodes that must have ended before others are cut off."""
    cut_off_s: float = Field(10.0, ge=0)
    """Seconds that the others are given from then on."""

    @model_validator(mode="after")
    def _read(self) -> StragglerConfig:
        cut_off = ("cut_off",)
        readers = {"num_extra": ("redundancy",), "cut_off_share": cut_off, "cut_off_s": cut_off}
        self.require_readers("policy", readers)
        return self


class BranchingConfig(Section):
    """Several ways on from a point in the middle of an episode, for environments with snapshots."""

    num_branches: int = Field(1, ge=1)
    """Ways on from a branch point, the first episode's own among them: rollout.group_size episodes are
    group_size / num_branches trees. 1 is off. What the branches share is trained once."""
    at: Literal["middle", "random"] | Annotated[int, Field(ge=1)] = "middle"
    """Turns before the branch point: half of those that the first episode took, any number of them, or a
    given one. An episode that is too short for it has no branches; the others of its tree begin again."""


class EpisodeConfig(Section):
    """Episodes of several turns; single questions and answers have nothing to do with it."""

    max_turns: int = Field(16, ge=1)
    """Most actions of an episode; then it ends as truncated."""
    max_episodes: int = Field(256, ge=1)
    """Episodes at once."""
    timeout_s: float = Field(1800.0, gt=0)
    """Wall time of an episode from its first reset; one that takes longer has failed."""
    lockstep: bool = True
    """Generate when every running episode waits for its action, so that the engine's batches, and with them
    the last bits of its numbers, do not hang on the environments' speed (law 8). False generates for whoever
    waits, which hides the environments' latency."""
    context: ContextConfig = ContextConfig()
    stragglers: StragglerConfig = StragglerConfig()
    branching: BranchingConfig = BranchingConfig()
    endpoint_host: str = "127.0.0.1"
    """Address at which agents reach the policy. Another than this machine's own, such as 0.0.0.0, lets other
    machines in, and needs a secret in VLRL_ENDPOINT_TOKEN, which agents are given as their API key."""
    max_failed_share: float = Field(0.2, ge=0, le=1)
    """A step of which more episodes fail ends the run; 0 is at the first failure, 1 never."""

    @model_validator(mode="after")
    def _one_clock(self) -> EpisodeConfig:
        if self.lockstep and self.stragglers.policy != "wait":
            raise ValueError(
                f"stragglers.policy={self.stragglers.policy} goes by the clock, so lockstep cannot keep runs "
                "repeatable; set episodes.lockstep=false, or stragglers.policy=wait"
            )
        return self

    @model_validator(mode="after")
    def _room_to_branch(self) -> EpisodeConfig:
        branches, at = self.branching.num_branches, self.branching.at
        if branches == 1:
            return self
        if self.stragglers.policy != "wait":
            raise ValueError(
                f"branching.num_branches={branches}: a tree is generated whole; set "
                f"stragglers.policy=wait, not {self.stragglers.policy}"
            )
        if branches > self.max_episodes:
            raise ValueError(f"branching.num_branches={branches} is above max_episodes={self.max_episodes}")
        if isinstance(at, int) and at >= self.max_turns:
            raise ValueError(f"branching.at={at} leaves no turn after it within max_turns={self.max_turns}")
        return self
