"""Checks of how an environment behaves, whatever the agent does."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np

from vlrl.check.envs.episodes import BrokenContract, Request, Watched, play, usual_policy
from vlrl.check.envs.verdict import EnvCheck, raised
from vlrl.environment.observe import digest_of, pixels_of
from vlrl.errors import ConfigError

JUNK = {
    "nothing": "",
    "white space": " \n\t ",
    "words": "I am not sure what to do here.",
    "an empty action": "<action></action>",
    "an empty answer": "<answer></answer>",
    "an action that is none": "<action>no such action, 1, 2, 3</action>",
    "a tag that is not closed": "<action>up",
    "a tag that is not opened": "up</action>",
    "tags the wrong way round": "</action>up<action>",
    "tags without end": "<action>" * 2000,
    "a number that is none": "<action>nan</action>",
    "a number too large": "<action>" + "9" * 5000 + "</action>",
    "a list too deep": "<action>" + "[" * 5000 + "</action>",
    "code": "<action>__import__('os').getcwd()</action>",
    "a path": "<action>../../etc/passwd</action>",
    "control characters": "<action>\x00\x1b[2J\u202e</action>",
    "half a character": "<action>\ud83d</action>",
    "a tool call cut short": '<tool_call>\n{"name": "',
    "a click far outside": "<action>click 999999 -999999</action>",
    "a tool call of no place": '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", '
    '"coordinate": [NaN, 1e999]}}\n</tool_call>',
    "a box of no number": "Thought: go on.\nAction: click(start_box='<|box_start|>(1e999,NaN)<|box_end|>')",
    "a script of clicks": "```python\nimport os\npyautogui.click(os.getpid(), int('7'))\n```",
    "JSON that is not an action": '{"action_type": "click", "x": "__import__(\'os\')", "y": null}',
}
"""What it is → the text."""


RESET, SAME, JUNKED = "reset", "same seed, same episode", "text that is not an action"

BRANCH = 3
"""Turns played from a snapshot."""


def shows_something(env: Watched, request: Request) -> EnvCheck:
    """What it shows first, and whether a model can be shown that."""
    observation = env.reset(request.task, request.episode_seed(0))
    sizes = [f"{p.shape[1]}×{p.shape[0]}" for p in map(pixels_of, observation.images)]
    shows = [f"images of {', '.join(sizes)} pixels"] if sizes else []
    shows += [f"a video of {len(video.frames)} frames" for video in observation.videos]
    shows += [f"{len(observation.text)} characters"] if observation.text else []
    found = "shows " + ", ".join(shows)
    if not observation.images and not observation.videos:
        return EnvCheck(RESET, "warn", f"{found}; no image: nothing for a vision model to look at")
    return EnvCheck(RESET, "ok", found)


def instructs(env: Watched, request: Request) -> EnvCheck:
    """Its system prompt and tools."""
    title, plain = "instructions", env.plain
    prompt = getattr(plain.env, "system_prompt", "")
    if not isinstance(prompt, str):
        return EnvCheck(title, "fail", f"system_prompt is a {type(prompt).__name__}; give a str")
    for tool in plain.tools:
        if "function" not in tool or "name" not in tool["function"]:
            return EnvCheck(title, "fail", f"a tool has no function.name: {dict(tool)!r}")
    tools = [str(tool["function"]["name"]) for tool in plain.tools]
    parts = [f"system prompt of {len(prompt)} characters"] if prompt else ["no system prompt"]
    return EnvCheck(title, "ok", "; ".join([*parts, *([f"tools {', '.join(tools)}"] if tools else [])]))


def repeats(env: Watched, request: Request) -> EnvCheck:
    """Repeat an episode in the same environment and in a new one; the parent asks in a new process too."""
    policy = usual_policy(env)
    first = play(env, request, 0, policy)
    play(env, request, 1, policy)
    with Watched(request) as other:
        for again in (play(env, request, 0, policy), play(other, request, 0, policy)):
            if again.digests[0] != first.digests[0]:
                found = "the same task and seed show another first image: derive everything from the seed"
                return EnvCheck(SAME, "fail", found)
            if again.digests != first.digests or again.rewards != first.rewards:
                found = "the same task, seed and actions give another episode"
                return EnvCheck(SAME, "fail", found)
            if again.states != first.states:
                return EnvCheck(SAME, "fail", "info['state'] names the same state differently a second time")
    return EnvCheck(SAME, "ok", f"an episode of {len(first.rewards)} turns, played three times")


def digests_of(env: Watched, request: Request) -> list[list[str]]:
    """Digests of the first episodes, which must be the same in every process."""
    return [play(env, request, index, usual_policy(env)).digests for index in range(2)]


def differs(env: Watched, request: Request) -> EnvCheck:
    """Whether seeds make a difference."""
    seen = {digest_of(env.reset(request.task, request.episode_seed(i))) for i in range(request.episodes)}
    found = f"{len(seen)} first observations from {request.episodes} seeds"
    if len(seen) == 1 and request.episodes > 1:
        return EnvCheck("seeds differ", "warn", f"{found}: every episode begins alike")
    return EnvCheck("seeds differ", "ok", found)


def answers_junk(env: Watched, request: Request) -> EnvCheck:
    """Text that is not an action must be answered, and earn nothing."""
    paid, unmarked, mute = [], [], []
    for name, text in JUNK.items():
        env.reset(request.task, request.episode_seed(0))
        try:
            result = env.step(text)
        except BrokenContract:
            raise
        except Exception as error:
            check = raised(JUNKED, error)
            return EnvCheck(check.name, "fail", f"{name}: {check.found}; answer it instead", check.findings)
        if result.reward > 0:
            paid.append(f"{name}: reward {result.reward:g}")
        if not result.info.get("invalid", False):
            unmarked.append(f"{name}: info['invalid'] is not set")
        elif not result.observation.text and not (result.terminated or result.truncated):
            mute.append(f"{name}: the observation says nothing of what is wrong")
    title, total = JUNKED, len(JUNK)
    if paid:
        return EnvCheck(title, "fail", f"pays for {len(paid)} of {total} texts that are not an action", paid)
    if unmarked or mute:
        found = f"answers all {total} texts, but does not report that they are not actions"
        return EnvCheck(title, "warn", found, [*unmarked, *mute])
    return EnvCheck(title, "ok", f"answers {total} texts, each is marked invalid and earns nothing")


def restarts(env: Watched, request: Request) -> EnvCheck:
    """A reset in mid-episode must forget all of it."""
    first = digest_of(env.reset(request.task, request.episode_seed(0)))
    env.step(usual_policy(env)(env, np.random.default_rng(0)))
    if digest_of(env.reset(request.task, request.episode_seed(0))) != first:
        found = "a reset in mid-episode shows what was left of the episode before"
        return EnvCheck("reset at any time", "fail", found)
    return EnvCheck("reset at any time", "ok", "also in mid-episode")


def restores(env: Watched, request: Request) -> EnvCheck:
    """Whether an episode can branch: the same actions from a snapshot show the same, in any process."""
    title = "snapshot and restore"
    if not (env.has("snapshot") and env.has("restore")):
        return EnvCheck(title, "info", "it has none: episodes cannot branch")
    policy, rng = usual_policy(env), np.random.default_rng(request.seed)
    env.reset(request.task, request.episode_seed(0))
    begun = env.step(policy(env, rng))
    if begun.terminated or begun.truncated:  # it has no middle
        env.reset(request.task, request.episode_seed(0))
    state = env.call("snapshot")
    try:
        taken = pickle.dumps(state)
    except Exception as error:  # whatever a stranger's value raises
        return EnvCheck(title, "warn", f"a snapshot cannot be moved between processes: {error}")
    actions: list[str] = []

    def again() -> Iterator[str]:
        while True:
            actions.append(policy(env, rng))
            yield actions[-1]

    first = _branch(env, again())
    changed = "playing on changes the snapshot; return a copy" if pickle.dumps(state) != taken else ""
    for differs in ("after restore the same actions give another episode", "a snapshot serves once: copy it"):
        env.call("restore", state)
        if _branch(env, iter(actions)) != first:
            return EnvCheck(title, "fail", changed or differs)
    other = Watched(request)
    other.reset(request.task, request.episode_seed(0))
    other.call("restore", pickle.loads(taken))
    shown = _branch(other, iter(actions))
    other.close()
    if shown != first:
        return EnvCheck(
            title, "fail", "restored in another environment, the same actions give another episode"
        )
    return EnvCheck(title, "ok", f"{len(first)} turns played again from it, here and in another")


def _branch(env: Watched, actions: Iterator[str]) -> list[tuple[str, float, bool]]:
    """The result of a few actions from here on."""
    shown: list[tuple[str, float, bool]] = []
    for action in actions:
        result = env.step(action)
        over = bool(result.terminated or result.truncated)
        shown.append((digest_of(result.observation), float(result.reward), over))
        if over or len(shown) == BRANCH:
            break
    return shown


def refuses_unknown_keys(env: Watched, request: Request) -> EnvCheck:
    """Whether a misspelt key is noticed."""
    title = "unknown task key"
    try:
        env.reset({**request.task, "no such key": 1}, request.episode_seed(0))
    except ConfigError as error:
        return EnvCheck(title, "ok", f"refused: {error}")
    except Exception as error:  # a stranger's code
        found = f"raises {type(error).__name__}: {error}; raise vlrl.errors.ConfigError naming the key"
        return EnvCheck(title, "warn", found)
    return EnvCheck(title, "warn", "taken without a message: a misspelt key would go unnoticed")


def closes(env: Watched, request: Request) -> EnvCheck:
    """Whether it can be closed at any time."""
    other = Watched(request)
    other.reset(request.task, request.episode_seed(0))
    other.close()
    other.close()
    Watched(request).close()
    return EnvCheck("close", "ok", "twice, and before any reset")
