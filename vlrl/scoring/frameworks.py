"""Rewards as verl, OpenRLHF, slime, GUI-R1 and earlier EasyR1 call them: a text in, a score out."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from vlrl.errors import ConfigError
from vlrl.registry.signature import is_async, named
from vlrl.scoring.adapted import Adapted, Invoke, each, last_text, then, total
from vlrl.scoring.author import Scored

_EASYR1_FIRST = frozenset({"predict", "predict_str", "predicts", "predict_strs"})
_ANY_OPTION = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)


def recognised(names: Sequence[str]) -> str | None:
    """The framework whose convention a function's first parameters follow; None if it is none of these."""
    if names[:1] and names[0] in _EASYR1_FIRST and names[1:2] in (["ground_truth"], ["ground_truths"]):
        return "easyr1"
    if set(names) >= {"solution_str", "ground_truth"} or set(names) >= {"solution_strs", "ground_truths"}:
        return "verl"
    if names[:2] == ["queries", "prompts"]:
        return "openrlhf"
    if names[:2] in (["args", "sample"], ["args", "samples"]):
        return "slime"
    return None


def positional_easyr1(function: Callable[..., Any]) -> Adapted:
    """compute_score(predict_str, ground_truth, …) → {"overall", …} or a number; or lists of both.

    EasyR1 before 0.3.1, and GUI-R1, which was made of it. Only "overall" counts, the other numbers are
    logged. An answer that is not text is given as JSON, as their data have it.
    """
    parameters = list(inspect.signature(function).parameters.values())
    batched = parameters[0].name.endswith("s")

    def bind(options: Mapping[str, Any]) -> Invoke:
        def finish(score: Any) -> Scored:
            return total(score, "overall")

        def single(completion: str, answer: Any, context: Mapping[str, Any]) -> Any:
            return then(function(completion, _text_answer(answer), **options), finish)

        def batch(completions: Sequence[str], answers: Sequence[Any], context: Mapping[str, Any]) -> Any:
            returned = function(list(completions), [_text_answer(answer) for answer in answers], **options)
            return then(returned, lambda scores: each(scores, finish))

        return batch if batched else single

    return Adapted(parameters[2:], frozenset(), False, batched, is_async(function), bind)


def verl(function: Callable[..., Any], name: str) -> Adapted:
    """compute_score(data_source, solution_str, ground_truth, extra_info) by name → a number or {"score", …}.

    Or lists of all four, data_sources and so on. Of a mapping "score" counts, the other numbers are logged.
    data_source and extra_info are the metadata's, or options; without extra_info it is all of the metadata.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names, rest = named(parameters)
    batched = "solution_strs" in names
    ending = "s" if batched else ""
    if f"solution_str{ending}" not in names and not rest:
        raise ConfigError(f"reward {name!r} has no parameter 'solution_str', which adapter=verl needs")

    def given(completion: str, answer: Any, context: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {key: value for key, value in context.items() if value is not None}
        return {
            "data_source": str(metadata.get("data_source", "")),
            "solution_str": completion,
            "ground_truth": answer,
            "extra_info": dict(metadata.get("extra_info") or metadata),
        }

    def bind(options: Mapping[str, Any]) -> Invoke:
        def finish(score: Any) -> Scored:
            return total(score, "score")

        def kept(values: Mapping[str, Any]) -> dict[str, Any]:
            return {**{key: value for key, value in values.items() if rest or key in names}, **options}

        def single(completion: str, answer: Any, context: Mapping[str, Any]) -> Any:
            return then(function(**kept(given(completion, answer, context))), finish)

        def batch(completions: Sequence[str], answers: Sequence[Any], context: Mapping[str, Any]) -> Any:
            rows = [
                given(completion, answer, {key: values[i] for key, values in context.items()})
                for i, (completion, answer) in enumerate(zip(completions, answers, strict=True))
            ]
            columns = {f"{key}s": [row[key] for row in rows] for key in rows[0]}
            return then(function(**kept(columns)), lambda scores: each(scores, finish))

        return batch if batched else single

    # `kept` gives options last, so that one may set data_source.
    own = [p for p in parameters if p.name not in ("solution_str", "solution_strs")]
    return Adapted(own, frozenset({"data_source", "extra_info"}), True, batched, is_async(function), bind)


def openrlhf(function: Callable[..., Any], name: str) -> Adapted:
    """reward_func(queries, prompts, labels) → numbers, or {"rewards", "scores", "extra_logs"} of them.

    A query is its prompt and the completion. Here a prompt is the text of the last message: there is no chat
    template in it. "rewards" counts ("scores" is what OpenRLHF filters by), extra_logs are logged.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2:
        raise ConfigError(
            f"reward {name!r} has no parameters 'queries' and 'prompts', which adapter=openrlhf needs"
        )
    takes_labels = len(parameters) > 2 and parameters[2].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )

    def finish(returned: Any) -> list[Any]:
        if not isinstance(returned, Mapping):
            return each(returned, Scored)
        if "rewards" not in returned:
            raise ValueError(f"an OpenRLHF reward must have 'rewards', not {sorted(map(str, returned))}")
        logs = {key: each(values, float) for key, values in dict(returned.get("extra_logs") or {}).items()}
        values = each(returned["rewards"], float)
        if odd := [key for key, logged in logs.items() if len(logged) != len(values)]:
            raise ValueError(f"extra_logs[{odd[0]!r}] must have a number for each of {len(values)} rewards")
        return [
            Scored(value, {key: logged[i] for key, logged in logs.items()}) for i, value in enumerate(values)
        ]

    def bind(options: Mapping[str, Any]) -> Invoke:
        def call(completions: Sequence[str], answers: Sequence[Any], context: Mapping[str, Any]) -> Any:
            prompts = [last_text(messages or ()) for messages in context["prompt"]]
            queries = [prompt + text for prompt, text in zip(prompts, completions, strict=True)]
            labels = [list(answers)] if takes_labels else []
            return then(function(queries, prompts, *labels, **options), finish)

        return call

    own = parameters[3 if takes_labels else 2 :]
    return Adapted(own, frozenset({"prompt"}), False, True, is_async(function), bind)


def slime(function: Callable[..., Any], name: str) -> Adapted:
    """Async reward_func(args, sample, **kwargs) → a number, or a mapping of which args.reward_key counts.

    `args` holds the options; `sample` has prompt (text), response, label, metadata, response_length, tokens
    (of the response alone) and status.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if [p.name for p in parameters[1:2]] == ["samples"]:
        raise ConfigError(
            f"reward {name!r} takes all samples of a group, which adapter=slime does not support: "
            "write a group reward of vlrl, @reward(group=True)"
        )

    def bind(options: Mapping[str, Any]) -> Invoke:
        args = SimpleNamespace(**{"reward_key": "score", **options})

        def call(completion: str, answer: Any, context: Mapping[str, Any]) -> Any:
            own = ("prompt", "num_tokens", "completion_ids")
            sample = SimpleNamespace(
                prompt=last_text(context["prompt"]),
                response=completion,
                label=answer,
                metadata={key: value for key, value in context.items() if key not in own},
                response_length=context["num_tokens"],
                tokens=list(context["completion_ids"]),
                status="completed",
                reward=None,
            )
            return then(function(args, sample), lambda score: total(score, args.reward_key))

        return call

    wanted = frozenset({"prompt", "num_tokens", "completion_ids"})
    return Adapted([_ANY_OPTION], wanted, True, False, is_async(function), bind)


def _text_answer(answer: Any) -> Any:
    return (
        answer if answer is None or isinstance(answer, str | int | float) else json.dumps(answer, default=str)
    )
