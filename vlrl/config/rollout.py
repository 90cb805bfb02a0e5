"""The sections of the config that are about episodes: environments, what a policy sees, what it may say."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from vlrl.config.section import Section


class EnvConfig(Section):
    """Where environments run, and how long they may take (law 7)."""

    isolation: Literal["inline", "thread", "process"] = "thread"
    """Where environments whose methods are not async run: in the event loop (only for those that answer
    at once), in a thread each (one that hangs is left behind), or in a process each, which is killed when
    it hangs and replaced when it dies."""
    num_processes: int | None = Field(None, ge=1)
    """Most processes, and so episodes, at once; null: one per episode, up to episodes.max_episodes."""
    memory_gib: float = Field(4.0, gt=0.1)
    """Memory of one process for data; an environment that needs more has failed."""
    reset_timeout_s: float = Field(60.0, gt=0)
    """A reset that takes longer has failed."""
    step_timeout_s: float = Field(30.0, gt=0)
    """A step that takes longer has failed."""
    attempts: int = Field(2, ge=1)
    """Attempts at an episode whose environment fails, from the start and with the same seed; then it is
    left out of its group."""


class ContextConfig(Section):
    """What the policy is shown of the conversation so far; it is trained on exactly that."""

    policy: Literal["full", "last_images", "window", "summary"] = "full"
    """full: everything; last_images: everything, but only the last images; window: the opening and the
    last exchanges; summary: the newest observation, after the summary that the environment gives with it."""
    num_images: int = Field(1, ge=1)
    """Images and videos kept by last_images."""
    num_turns: int = Field(2, ge=1)
    """Exchanges kept by window, before the newest observation."""
    thoughts: Literal["keep", "drop"] = "keep"
    """Whether earlier actions are shown with their thoughts: all before </think>, or before a line that
    begins with "Action:". keep leaves it to the chat template. With drop each turn is a ledger of its own."""
    left_out: str = "(an image that is no longer shown)"
    """What last_images writes in place of an image."""


class StragglerConfig(Section):
    """What is done about the slowest episodes of a step."""

    policy: Literal["wait", "redundancy", "cut_off"] = "wait"
    """wait: wait for all; redundancy: generate more episodes than a group needs and take those that end
    first; cut_off: stop those that still run some time after most have ended. Cut or surplus episodes are
    neither trained nor failures. Which they are depends on the clock, and training is biased towards
    short episodes."""
    num_extra: int = Field(1, ge=1)
    """Additional episodes per group, for redundancy."""
    cut_off_share: float = Field(0.9, gt=0, le=1)
    """Share of a step's episodes that must have ended before others are cut off."""
    cut_off_s: float = Field(10.0, ge=0)
    """Seconds until the others are then cut off."""

    @model_validator(mode="after")
    def _read(self) -> StragglerConfig:
        cut_off = ("cut_off",)
        readers = {"num_extra": ("redundancy",), "cut_off_share": cut_off, "cut_off_s": cut_off}
        self.require_readers("policy", readers)
        return self


class BranchingConfig(Section):
    """Continue an episode in several ways from a point in its middle, in environments with snapshots."""

    num_branches: int = Field(1, ge=1)
    """Episodes that continue from a branch point, the first one's own included: rollout.group_size
    episodes are group_size / num_branches trees. 1: off. What the branches share is trained once."""
    at: Literal["middle", "random"] | Annotated[int, Field(ge=1)] = "middle"
    """Turns before the branch point: half of those that the first episode took, any number of them, or a
    given one. An episode that is too short for it has no branches; the others of its tree begin again."""


class EpisodeConfig(Section):
    """Episodes of several turns; single questions and answers have nothing to do with it."""

    max_turns: int = Field(16, ge=1)
    """Most actions of an episode, which then ends as truncated."""
    max_episodes: int = Field(256, ge=1)
    """Most episodes at once."""
    timeout_s: float = Field(1800.0, gt=0)
    """Wall time of an episode from its first reset; one that takes longer has failed."""
    lockstep: bool = True
    """Generate when every running episode waits for its action, so that the engine's batches, and with
    them the last bits of its numbers, do not depend on the environments' speed (law 8). False answers
    each episode at once, which hides the environments' latency."""
    context: ContextConfig = ContextConfig()
    stragglers: StragglerConfig = StragglerConfig()
    branching: BranchingConfig = BranchingConfig()
    endpoint_host: str = "127.0.0.1"
    """Address at which agents reach the policy. Any other than 127.0.0.1, such as 0.0.0.0, admits other
    machines and needs a secret in VLRL_ENDPOINT_TOKEN, which agents get as their API key."""
    max_failed_share: float = Field(0.2, ge=0, le=1)
    """If a larger share of a step's episodes fails, the run ends; 0: at the first failure, 1: never."""

    @model_validator(mode="after")
    def _one_clock(self) -> EpisodeConfig:
        if self.lockstep and self.stragglers.policy != "wait":
            raise ValueError(
                f"stragglers.policy={self.stragglers.policy} depends on the clock, so runs are not "
                "repeatable with lockstep; set episodes.lockstep=false, or stragglers.policy=wait"
            )
        return self

    @model_validator(mode="after")
    def _room_to_branch(self) -> EpisodeConfig:
        branches, at = self.branching.num_branches, self.branching.at
        if branches == 1:
            return self
        if self.stragglers.policy != "wait":
            raise ValueError(
                f"stragglers.policy={self.stragglers.policy} with branching.num_branches={branches}: a tree "
                "is trained as a whole, so none of its episodes can be left out; set stragglers.policy=wait"
            )
        if branches > self.max_episodes:
            raise ValueError(
                f"branching.num_branches={branches} is above max_episodes={self.max_episodes}: the branches "
                "of a tree are played at the same time; lower num_branches, or raise max_episodes"
            )
        if isinstance(at, int) and at >= self.max_turns:
            raise ValueError(
                f"branching.at={at} leaves no turn after it within max_turns={self.max_turns}; lower at, or "
                "raise max_turns"
            )
        return self


GrammarKind: TypeAlias = Literal["json_schema", "regex", "grammar", "structural_tag"]


class StructuredOutputs(Section):
    """What completions must look like, by one of five; the trainer's distribution is restricted too."""

    json_schema: dict[str, Any] | None = None
    """JSON of this schema."""
    regex: str | None = Field(None, min_length=1)
    """A text that this regular expression matches from its beginning to its end."""
    choice: list[str] | None = Field(None, min_length=1)
    """One of these texts."""
    grammar: str | None = None
    """A text of this grammar: rules in GBNF, as llama.cpp and xgrammar read it, that begin at `root`."""

    structural_tag: dict[str, Any] | None = None
    """Free text with tags whose content has a form, such as tool calls: xgrammar's `{type: structural_tag,
    format: …}`."""

    @model_validator(mode="after")
    def _one_of_them(self) -> StructuredOutputs:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(
                f"give one of json_schema, regex, choice, grammar and structural_tag, not {found}"
            )
        if self.choice is not None and not all(self.choice):
            raise ValueError("choice has an empty text; leave it out")
        if self.grammar is not None and "::=" not in self.grammar:
            raise ValueError('grammar has no rule; write GBNF, such as: root ::= "left" | "right"')
        if self.structural_tag is not None and "format" not in self.structural_tag:
            raise ValueError("structural_tag has no format; write {type: structural_tag, format: {type: …}}")
        return self

    @property
    def given(self) -> str:
        """Which of the five it is."""
        return next(name for name, value in self if value is not None)

    @property
    def form(self) -> str:
        """The section as JSON text, see `vlrl.model.structured.forms`."""
        return json.dumps({self.given: getattr(self, self.given)}, ensure_ascii=False)

    @property
    def kind_and_text(self) -> tuple[GrammarKind, str]:
        """The same for whoever compiles it: choices are a grammar, too."""
        if self.json_schema is not None:
            return "json_schema", json.dumps(self.json_schema)
        if self.regex is not None:
            return "regex", self.regex
        if self.grammar is not None:
            return "grammar", self.grammar
        if self.structural_tag is not None:
            return "structural_tag", json.dumps({"type": "structural_tag", **self.structural_tag})
        return "grammar", "root ::= " + " | ".join(map(_quoted, self.choice or ()))


def _quoted(text: str) -> str:
    """A text as a grammar's literal."""
    return json.dumps(text, ensure_ascii=False)
