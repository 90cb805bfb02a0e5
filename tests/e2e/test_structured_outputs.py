"""Structured outputs: what is trained is the distribution that was sampled from, restricted as it was."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import family_config, make_config, observe, random_image
from engine_pairs import EnginePair, open_pair
from whole_runs import metrics, rollouts, run

from vlrl.errors import ConfigError, EngineError
from vlrl.ledger import Ledger
from vlrl.rollout.session import Session
from vlrl.run.parity import require_parity
from vlrl.types import Group, Sampling

REGEX = r"<think>[a-z ]{0,6}</think><answer>[0-9]{1,3}</answer>"
SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ["click", "type"]}, "x": {"type": "integer", "maximum": 99}},
    "required": ["action", "x"],
    "additionalProperties": False,
}
RULES = 'root ::= "move " way | "stop"\nway ::= "left" | "right" | way " then " way\n'
KINDS: dict[str, Any] = {
    "regex": REGEX,
    "json_schema": SCHEMA,
    "choice": ["left", 'say "stop"', "right\\up"],
    "grammar": RULES,
    "structural_tag": {
        "format": {
            "type": "tag",
            "begin": "<call>",
            "content": {"type": "json_schema", "json_schema": SCHEMA},
            "end": "</call>",
        }
    },
}

MIXED = ("", "regex", "choice")
"""Forms of rows that are generated together."""


def matches(kind: str, text: str) -> bool:
    match kind:
        case "regex":
            return re.fullmatch(REGEX, text) is not None
        case "json_schema" | "structural_tag":
            value = json.loads(text.removeprefix("<call>").removesuffix("</call>"))
            assert text.startswith("<call>") == (kind == "structural_tag")
            return value["action"] in ("click", "type") and isinstance(value["x"], int)
        case "choice":
            return text in KINDS["choice"]
        case _:
            return re.fullmatch(r"stop|move (left|right)( then (left|right))*", text) is not None


@pytest.fixture(
    scope="module",
    params=["regex", *(pytest.param(k, marks=pytest.mark.slow(together=True)) for k in list(KINDS)[1:])],
)
def pair(
    request: pytest.FixtureRequest, tiny_family: Callable[[str], Path], local_ray: None
) -> Iterator[tuple[str, EnginePair]]:
    config = family_config(
        tiny_family("qwen2_5_vl"),
        rollout={
            "group_size": 4,
            "max_tokens": 64,
            "structured_outputs": {request.param: KINDS[request.param]},
        },
    )
    with open_pair(config) as pair:
        yield request.param, pair


def unrestricted(groups: Sequence[Group]) -> list[Group]:
    """The groups as if every token had been possible."""

    def free(ledger: Ledger) -> Ledger:
        return replace(ledger, turns=tuple(replace(turn, form="") for turn in ledger.turns))

    return [
        Group([replace(t, ledgers=tuple(map(free, t.ledgers))) for t in group.trajectories])
        for group in groups
    ]


def test_completions_have_the_form_and_are_trained_as_sampled(pair: tuple[str, EnginePair]) -> None:
    kind, engines = pair
    groups = engines.generate([["Add 3 and 4."], [random_image(70, 150, 1), "Which?"]])
    texts = [t.completion for group in groups for t in group.trajectories if t.ledgers[0].turns[-1].finished]
    assert texts and all(matches(kind, text) for text in texts), texts
    restricted = engines.differences(groups)
    without = engines.differences(unrestricted(groups))
    print(f"{kind}: nats apart: {restricted.largest:.1e}, {without.largest:.1e} without the restriction")
    require_parity(restricted, engines.config, when="with the restriction")
    with pytest.raises(EngineError, match="disagree"):
        require_parity(without, engines.config, when="without it")


def test_each_turn_has_the_form(pair: tuple[str, EnginePair]) -> None:
    _, engines = pair
    groups = []
    for number in range(4):
        session = Session(engines.sample(str(number), [random_image(70, 150, number), "Which?"]), 0)
        for turn in range(3):
            sampling = Sampling(temperature=1.0, max_tokens=64, seed=10 * number + turn)
            engines.processor.act(session, asyncio.run(engines.policy.generate(session, sampling)))
            if turn < 2:
                observe(engines.processor, session, "And now?", [random_image(64, 64, turn)])
        groups.append(Group([session.trajectory("", "ok", 0.0)]))
    assert all(len(group.trajectories[0].ledgers[0].turns) == 3 for group in groups)
    require_parity(engines.differences(groups), engines.config, when="over turns")


WORDS = ["left", "right"]


def rows_of_two_forms(folder: Path) -> Path:
    """Rows, every other one of its own form and the rest of the config's."""
    own = {"structured_outputs": {"choice": WORDS}}
    said = [{"role": "user", "content": "Which?"}]
    rows = [{"id": str(n), "messages": said, "answer": "left"} | (own if n % 2 else {}) for n in range(8)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rows.jsonl"


@pytest.mark.slow(together=True)
def test_rows_of_different_forms_and_of_none_are_trained_together(
    tiny_family: Callable[[str], Path], local_ray: None
) -> None:
    """They share a batch of the engine and a micro-batch; the row without a form may say anything."""
    config = family_config(tiny_family("qwen2_5_vl"), rollout={"group_size": 4, "max_tokens": 64})
    content = [{"type": "image", "image": random_image(70, 150, 1)}, {"type": "text", "text": "Which?"}]
    rows = {kind: {"id": kind, "messages": [{"role": "user", "content": content}]} for kind in MIXED}
    with open_pair(config) as engines:
        samples = [
            engines.processor.sample(row | ({"structured_outputs": {kind: KINDS[kind]}} if kind else {}))
            for kind, row in rows.items()
        ]
        groups = dict(zip(MIXED, engines.play(samples), strict=True))
        done = {
            kind: [t.completion for t in group.trajectories if t.ledgers[0].turns[-1].finished]
            for kind, group in groups.items()
        }
        for kind in MIXED[1:]:
            assert done[kind] and all(matches(kind, text) for text in done[kind]), done[kind]
        free = [t.completion for t in groups[""].trajectories]
        assert not any(re.fullmatch(REGEX, text) or text in KINDS["choice"] for text in free)
        together = list(groups.values())
        found = engines.differences(together)
        without = engines.differences(unrestricted(together))
        print(f"by row: nats apart: {found.largest:.1e}, {without.largest:.1e} without the forms")
        require_parity(found, config, when="with each row's form")
        with pytest.raises(EngineError, match="disagree"):
            require_parity(without, config, when="without the forms")
        require_parity(engines.differences(unrestricted([groups[""]])), config, when="of the row without one")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sequence_parallel", "mode", "by_row"),
    [(1, "sync", False), (2, "async", False), (1, "async", True), (2, "sync", True)],
)
def test_a_run_is_trained_on_what_it_sampled(
    sequence_parallel: int,
    mode: str,
    by_row: bool,
    tiny_family: Callable[[str], Path],
    local_ray: None,
    tmp_path: Path,
) -> None:
    """A reference is restricted alike: before an update it is the policy itself."""
    config = make_config(
        tiny_family("qwen2_5_vl"),
        run={"name": "structured", "dir": str(tmp_path)},
        rollout={"structured_outputs": {"regex": REGEX}, "max_tokens": 48},
        data={"train": {"name": str(rows_of_two_forms(tmp_path))}} if by_row else {},
        trainer={"num_ranks": 2, "sequence_parallel": sequence_parallel, "cpus_per_rank": 0.1},
        asynchronous={"mode": mode},
        episodes={"lockstep": mode == "sync"},
        algorithm={"kl_coef": 0.1, "entropy_coef": 0.01},
        num_steps=2,
        checkpoint={"every": 0},
        logging={"tensorboard": False},
    )
    run(config)
    steps = metrics(config)
    assert len(steps) == 2 and all(step["optim/grad_norm"] > 0 for step in steps)
    fresh = [step["parity/max_abs_logprob_diff"] for step in steps if "parity/max_abs_logprob_diff" in step]
    assert fresh and max(fresh) < 1e-4
    assert abs(steps[0]["policy/kl_reference"]) < 1e-6
    forms = set()
    for row in rollouts(config.run_dir):
        [form] = {turn["form"] for turn in row["turns"]}
        forms.add(form)
        expected = "|".join(WORDS) if "choice" in form else REGEX
        assert row["outcome"] == "truncated" or re.fullmatch(expected, row["completion"])
    assert len(forms) == 1 + by_row


@pytest.mark.slow
def test_what_vllm_does_not_take_is_named_at_the_start(
    tiny_family: Callable[[str], Path], local_ray: None
) -> None:
    config = family_config(
        tiny_family("qwen2_5_vl"), rollout={"structured_outputs": {"regex": "[0-9"}, "max_tokens": 8}
    )
    with pytest.raises(ConfigError, match=r"rollout\.structured_outputs\.regex"), open_pair(config):
        pass
