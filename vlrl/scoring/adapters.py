"""Rewards written for other projects, called as those call them: TRL, VLM-R1, EasyR1, verifiers and others.

Their functions are used by path and unchanged. What is said here of a project's convention was read in its
sources; the docs list what each function is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, cast

from vlrl.errors import ConfigError
from vlrl.registry.signature import is_async, named
from vlrl.rounding import summed
from vlrl.scoring.adapted import (
    Adapted,
    Invoke,
    assistant,
    last_text,
    plain_messages,
    then,
    total,
)
from vlrl.scoring.author import Scored, declaration
from vlrl.scoring.frameworks import openrlhf, positional_easyr1, recognised, slime, verl

Adapter: TypeAlias = Literal[
    "auto",
    "plain",
    "trl",
    "trl_text",
    "verifiers",
    "easyr1",
    "vlm_r1",
    "verl",
    "openrlhf",
    "slime",
]

_FRAMEWORKS: Mapping[str, Callable[[Callable[..., Any], str], Adapted]] = {
    "verl": verl,
    "openrlhf": openrlhf,
    "slime": slime,
}

ANSWER_COLUMNS = ("answer", "solution", "ground_truth", "target", "label")
"""Names under which a TRL or VLM-R1 function may ask for the sample's answer."""


def adapt(found: Any, adapter: Adapter, name: str) -> Adapted | None:
    """Wrap a function of another project; None for one in vlrl's own convention.

    "auto" takes what cannot be meant otherwise: a rubric object and, where nothing was declared by @reward, a
    first parameter reward_input(s), a parameter called completions, and what `frameworks.recognised` knows.

    Raises:
        ConfigError: for an object that the adapter cannot call.
    """
    if adapter == "auto":
        adapter = _recognised(found)
    if adapter == "plain":
        return None
    if adapter == "verifiers":
        return _verifiers(found, name)
    if not callable(found):
        raise ConfigError(f"reward {name!r} is a {type(found).__name__}, not a function")
    if adapter == "easyr1":
        return _easyr1(found, name)
    if adapter in _FRAMEWORKS:
        return _FRAMEWORKS[adapter](found, name)
    return _trl(found, name, adapter)


def _recognised(found: Any) -> Adapter:
    if _rubric_functions(found) is not None:
        return "verifiers"
    if not callable(found) or declaration(found) is not None:
        return "plain"
    names = list(inspect.signature(found).parameters)
    if names[:1] in (["reward_input"], ["reward_inputs"]):
        return "easyr1"
    if "completions" in names:
        return "trl"
    return cast(Adapter, recognised(names) or "plain")


def _trl(function: Callable[..., Any], name: str, adapter: Adapter) -> Adapted:
    """f(prompts, completions, **columns) → list of floats; None where it does not apply.

    Prompts and completions are lists of messages, as TRL has them for conversational data; texts for
    trl_text.
    VLM-R1's functions are TRL's with the columns `solution` ("<answer> … </answer>"), `problem` and
    `accu_reward_method`.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names, rest = named(parameters)
    if "completions" not in names and not rest:
        raise ConfigError(f"reward {name!r} has no parameter 'completions', which adapter={adapter} needs")
    asked = (names - {"completions", "prompts"}) | ({"completion_ids"} if rest else set())
    needs_prompt = "prompts" in names or "problem" in names or rest

    def bind(options: Mapping[str, Any]) -> Invoke:
        def columns(completions: Sequence[str], answers: Sequence[Any], context: Mapping[str, Any]) -> Any:
            count = len(completions)
            prompts = context.get("prompt", [()] * count)
            texts = adapter == "trl_text"
            given: dict[str, Any] = {key: value for key, value in context.items() if key != "prompt"}
            given["prompts"] = [last_text(p) if texts else plain_messages(p) for p in prompts]
            given["completions"] = list(completions) if texts else [assistant(c) for c in completions]
            for column in ANSWER_COLUMNS:
                if column in asked or (rest and column == "answer"):
                    given.setdefault(column, list(answers))
            if "trainer_state" in names:
                given["trainer_state"] = SimpleNamespace(global_step=context["step"][0])
            given.update(options)
            if adapter == "vlm_r1":
                given |= _vlm_r1_columns(answers, prompts, given.get("accu_reward_method"))
            return given if rest else {key: value for key, value in given.items() if key in names}

        def finish(returned: Any) -> list[Any]:
            values = returned.tolist() if hasattr(returned, "tolist") else list(returned)
            return [Scored(None) if value is None else value for value in values]

        def call(completions: Any, answers: Any, context: Mapping[str, Any]) -> Any:
            return then(function(**columns(completions, answers, context)), finish)

        return call

    wanted = (asked - {"problem"}) | ({"prompt"} if needs_prompt else set())
    wanted |= {"step"} if "trainer_state" in names else set()
    return Adapted(parameters, frozenset(wanted), rest, True, is_async(function), bind)


def _vlm_r1_columns(
    answers: Sequence[Any],
    prompts: Sequence[Any],
    method: Sequence[str | None] | str | None,
) -> dict[str, Any]:
    """The columns that its data loader makes of every row; `method` is one for all, or one a row."""
    if any(answer is None for answer in answers):
        raise ValueError("the sample has no 'answer' to compare with")
    bare = [str(answer).replace("<answer>", "").replace("</answer>", "").strip() for answer in answers]
    methods = [method] * len(bare) if method is None or isinstance(method, str) else method
    return {
        "solution": [f"<answer> {each} </answer>" for each in bare],
        "problem": [last_text(prompt) for prompt in prompts],
        "accu_reward_method": [each or "default" for each in methods],
    }


def _easyr1(function: Callable[..., Any], name: str) -> Adapted:
    """compute_score({"response", "response_length", "ground_truth"}) → {"overall", …}, or lists of both.

    Only "overall" counts; the other entries are logged. Which of the two it is, the module's REWARD_TYPE says
    ("sequential" or "batch"), else the name of the parameter: reward_inputs is a list.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise ConfigError(f"reward {name!r} has no parameter 'reward_input', which adapter=easyr1 needs")
    kind = getattr(function, "__globals__", {}).get("REWARD_TYPE")
    batched = kind == "batch" if kind else parameters[0].name.endswith("s")

    if len(parameters) > 1 and parameters[1].default is inspect.Parameter.empty:
        return positional_easyr1(function)

    def finish(score: Any) -> Scored:
        if not isinstance(score, Mapping):
            raise ValueError(f"an EasyR1 score must be a mapping with 'overall', not {repr(score)[:100]}")
        return total(score, "overall")

    def bind(options: Mapping[str, Any]) -> Invoke:
        def single(completion: str, answer: Any, context: Mapping[str, Any]) -> Any:
            row = _reward_input(completion, context["num_tokens"], answer)
            return then(function(row, **options), finish)

        def batch(completions: Sequence[str], answers: Sequence[Any], context: Mapping[str, Any]) -> Any:
            rows = zip(completions, context["num_tokens"], answers, strict=True)
            return then(function([_reward_input(*row) for row in rows], **options), finish_all)

        def finish_all(scores: Any) -> list[Scored]:
            return [finish(score) for score in scores]

        return batch if batched else single

    return Adapted(parameters[1:], frozenset({"num_tokens"}), False, batched, is_async(function), bind)


def _reward_input(response: str, length: int, ground_truth: Any) -> dict[str, Any]:
    return {"response": response, "response_length": length, "ground_truth": ground_truth}


def _verifiers(found: Any, name: str) -> Adapted:
    """f(completion, answer, prompt, state, info, task, parser, …) by name → float; or a rubric of them.

    Completions and prompts are lists of messages, as verifiers has them by default. A rubric's value is the
    weighted sum of its functions, each of which is logged.
    """
    pairs = _rubric_functions(found)
    is_rubric = pairs is not None
    if pairs is None:
        if not callable(found):
            raise ConfigError(f"reward {name!r} is a {type(found).__name__}, neither a function nor a rubric")
        pairs = [(found, 1.0)]
    signatures = {function: list(inspect.signature(function).parameters.values()) for function, _ in pairs}
    parameters = [p for each in signatures.values() for p in each]
    names, rest = named(parameters)
    waits = any(is_async(function) for function, _ in pairs)
    parser = getattr(found, "parser", None) or SimpleNamespace(
        parse=lambda text: text, parse_answer=lambda completion: completion[-1]["content"]
    )

    def given_to(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        own, takes_rest = named(signatures[function])
        return dict(values) if takes_rest else {k: v for k, v in values.items() if k in own}

    def bind(options: Mapping[str, Any]) -> Invoke:
        def call(completion: str, answer: Any, context: Mapping[str, Any]) -> Any:
            values = _verifiers_values(completion, answer, context) | {"parser": parser, **options}
            if not is_rubric:
                return found(**given_to(found, values))
            returned = {f: f(**given_to(f, values)) for f, _ in pairs}
            return _gathered(returned, weighted) if waits else weighted(returned)

        def weighted(returned: Mapping[Any, Any]) -> Scored:
            notes = {getattr(f, "__name__", "reward"): float(returned[f]) for f, _ in pairs}
            return Scored(summed(weight * float(returned[f]) for f, weight in pairs), notes)

        return call

    wanted = (names - {"completion", "answer", "state", "info", "parser"}) | {"prompt"}
    # Rows of verifiers' data sets are columns: `info`, `task` and the rest of a state are our metadata.
    needs_all = rest or bool(names & {"state", "info", "task"})
    return Adapted(parameters, frozenset(wanted), needs_all, False, waits, bind)


def _verifiers_values(completion: str, answer: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key: value for key, value in context.items() if key != "prompt"}
    state = {
        **columns,
        "prompt": plain_messages(context.get("prompt", ())),
        "completion": assistant(completion),
        "answer": answer,
        "task": columns.get("task", "default"),
        "info": columns.get("info") or {},
    }
    return {**state, "state": state}


def _rubric_functions(found: Any) -> list[tuple[Callable[..., Any], float]] | None:
    """The functions of a rubric with their weights; None for what is not a rubric."""
    functions = getattr(found, "funcs", None) or getattr(found, "reward_funcs", None)
    weights = getattr(found, "weights", None) or getattr(found, "reward_weights", None)
    if not isinstance(functions, list) or not functions:
        return None
    return list(zip(functions, weights or [1.0] * len(functions), strict=True))


async def _gathered(returned: Mapping[Any, Any], finish: Callable[[Mapping[Any, Any]], Any]) -> Any:
    return finish({f: await v if isinstance(v, Awaitable) else v for f, v in returned.items()})
