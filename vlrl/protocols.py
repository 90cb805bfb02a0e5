"""The four protocols that plug-ins and engines implement: Processor, Reward, Env, Policy."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy.typing as npt

from vlrl.types import Generation, IntArray, Media, Prompt, ReferenceTurn, Row, Sample, Sampling

if TYPE_CHECKING:
    from vlrl.rollout.session import MediaMessage, Session


class Processor(Protocol):
    """One model family: messages and media to tokens, positions and pixel tensors."""

    stop_token_ids: tuple[int, ...]
    """Tokens that end an action."""
    banned_token_ids: tuple[int, ...]
    """Media tokens the policy must never generate (law 3)."""
    engine_options: Mapping[str, Any]
    """vLLM's mm_processor_kwargs: whatever keeps its own processor from changing the media again."""

    def sample(self, row: Row) -> Sample:
        """Resolve a row's media and render its prompt.

        Raises:
            DataError: naming the sample, what is wrong and what to do.
        """
        ...

    def num_tokens(self, row: Row) -> int:
        """Prompt tokens of a row, counted from its media's headers; nothing is decoded.

        Raises:
            DataError: like `sample`.
        """
        ...

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        media: Sequence[Media],
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Prompt:
        """Render a conversation that ends where the assistant is to speak."""
        ...

    def encode_target(self, text: str, opened: str = "", *, closed: bool = False) -> IntArray:
        """Tokens of an assistant's turn, the stop token included: [num_tokens] int64.

        What the chat template has opened of the message, see `Prompt.opened`, is not written again. `closed`
        adds what it writes behind the stop token where a conversation ends.
        """
        ...

    def decode(self, token_ids: IntArray) -> str:
        """Text of generated tokens for rewards and people: all of it but the token that ends the turn.

        Special tokens are shown: left out, they would make right answers of wrong ones.
        """
        ...

    def token_texts(self, token_ids: IntArray) -> list[str]:
        """Each token's own text, special tokens shown: for viewers."""
        ...

    def message(self, role: str, parts: Sequence[Mapping[str, Any]], where: str) -> MediaMessage:
        """What an environment says, its media resolved and the model's special tokens in it broken up.

        Raises:
            DataError: like `sample`; `where` names the episode.
        """
        ...

    def act(self, session: Session, generation: Generation) -> str:
        """Append what was generated to the session and return the whole assistant message.

        It is what the chat template opened of the message (`Prompt.opened`) and the text of the tokens.
        """
        ...

    def show(self, session: Session, seen: Sequence[MediaMessage]) -> None:
        """Bring the ledger to what the policy is to see next, up to the opening of its turn.

        If the conversation, as the template renders it, begins with what the ledger spells, the rest is
        appended; else the session forks. So a ledger always spells what the template renders.
        """
        ...

    def reference_turns(self, sample: Sample) -> list[ReferenceTurn]:
        """The assistant's turns of a sample, its target last: for supervised training.

        Raises:
            DataError: if the chat template rewrites earlier turns.
        """
        ...

    def pixels(self, media: Sequence[Media]) -> Mapping[str, npt.NDArray[Any]]:
        """The vision tower's input by the names of transformers' get_image_features.

        Args:
            media: in the order of their placeholders; for none, a blank image's input is given.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write what transformers and vLLM need beside the weights to load the model unchanged."""
        ...


class Policy(Protocol):
    """Generates the next action of a session. The rollout depends on this, never on an actor."""

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Continue the session's ledger by one action; the caller appends it."""
        ...


class Reward(Protocol):
    """A plain function, sync or async, of one sample or (by `vlrl.rewards.reward`) of a batch.

    It may also take, by name: any metadata key, prompt, media, canvases (media without pixels), sample,
    trajectory, turns, completion_ids, num_tokens, step. With **context it is given all of the metadata, and
    of the others those it names.

    Returns a float, a mapping of named parts whose values are summed, or a `vlrl.rewards.Scored`.
    """

    def __call__(self, completion: str, answer: Any, **context: Any) -> float | Mapping[str, float]:
        """Score one completion."""
        ...


@dataclass(frozen=True, slots=True)
class Video:
    """Moving images: frames ([h, w, 3] uint8 arrays or PIL images) at `fps` frames a second."""

    frames: Sequence[Any]
    fps: float


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment shows.

    Attributes:
        text: what it says, after the images.
        images: PIL images or [h, w, 3] uint8 arrays.
        videos: after the images.
        role: "tool" for the result of a tool call.
        summary: all that the policy must know of what came before; used by the context policy "summary".
        structured_outputs: the form of the action that answers it, as the section rollout.structured_outputs
            of the config, such as {"choice": ["left", "right"]}; None leaves it to the row and the config.
    """

    text: str = ""
    images: Sequence[Any] = ()
    videos: Sequence[Video] = ()
    role: Literal["user", "tool"] = "user"
    summary: str = ""
    structured_outputs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """Gymnasium's five values: observation, reward, terminated, truncated, info.

    Keys of info that vlrl reads: "success" (bool); "invalid" (bool: the text was not an action); "state"
    (str: names what is shown, for credit by state). Other numbers of the last step are logged.
    """

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any] = field(default_factory=dict)


class Env(Protocol):
    """An environment with screenshot states, in Gymnasium's words and meaning.

    Its methods may be plain or async. What it may also have:

        system_prompt: str               instructions, given as the system message
        tools: Sequence[Mapping]         JSON schemas of functions, for the chat template
        reward_range: (float, float)     the least and the most that a step gives
        oracle() -> str                  the text of a right next action; NoOracle where it knows none
        random_action(rng) -> str        a well-formed action, chosen without looking
        snapshot() -> Any, restore(Any)  its state as a value that can be pickled; restored after a reset of
                                         the same task and seed, here or in another of the same options
        task_info: Mapping               what the seed drew, such as {"task": "mail/star", "level": 2}, known
                                         after reset; the metadata of the episode's row, by which
                                         evaluations are grouped
        seen(canvases)                   how the last observation's images were given to the model, a
                                         vlrl.coordinates.Canvas each; called before the step
        end_episode()                    the episode is over, wherever it stood, and the environment may be
                                         kept for another: give back what others wait for, such as a machine
    """

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation | Awaitable[Observation]:
        """Start an episode; the same task and seed give the same pixels."""
        ...

    def step(self, action: str) -> StepResult | Awaitable[StepResult]:
        """Apply an action given as the model's text; text that is not an action is answered, not raised."""
        ...

    def close(self) -> Awaitable[None] | None:
        """Free everything; safe to call twice."""
        ...


class MultiAgentEnv(Protocol):
    """Several agents in one world, each with its own view, actions and reward.

    Who is to act: the agents of the mapping that `reset` gave, then those that the last `step` gave a result
    that ends nothing. In a game of turns that is one agent, in one of simultaneous moves all that still play.

    An agent's result of an action is given when it is to act again or has ended, not before: it holds what
    it then sees, and the rewards since its last result, also those earned while others moved. An agent that
    did not act yet gets a result the same way; what it earned before its first action is in its first result.
    One that ends gets one result that says so, and none after it, while others may go on. The episode is over
    when all have ended; until then at least one agent has to act.

    A text that is not a legal action is answered as in `Env`: a result with the same view, reward 0
    and info["invalid"]; that agent is to act again. Where moves are simultaneous the world waits for it,
    those who gave a valid action get no result yet and are not asked again.

        reset   -> {black: o}                          black is to act
        step({black: a}) -> {white: r}                 then white; black's own result is not known yet
        step({white: a}) -> {black: r}                 what white's move brought black is in r.reward
        step({black: a}) -> {black: end, white: end}   over

    It may also have, each of them for an agent:

        system_prompts: Mapping[str, str]          instructions, given as the system message
        random_action(agent, rng) -> str           a well-formed action, chosen without looking
        oracle(agent) -> str                       the text of a right next action
    """

    agents: Sequence[str]
    """Everyone whom the policy plays, in a fixed order, before the first `reset` already."""

    def reset(
        self, task: Mapping[str, Any], seed: int
    ) -> Mapping[str, Observation] | Awaitable[Mapping[str, Observation]]:
        """Start an episode: the views of those who are to act, at least one."""
        ...

    def step(
        self, actions: Mapping[str, str]
    ) -> Mapping[str, StepResult] | Awaitable[Mapping[str, StepResult]]:
        """Apply one text of each agent that is to act, no more and no fewer; at least one result."""
        ...

    def close(self) -> Awaitable[None] | None:
        """Free everything; safe to call twice."""
        ...


class Dataset(Protocol):
    """Rows by index; the order of training is chosen elsewhere, from the run's seed."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, index: int) -> Row:
        """The row at `index`, 0 ≤ index < len(self)."""
        ...
