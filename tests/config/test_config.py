"""Options: files, overrides, and what a wrong one is answered with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import make_config

from vlrl.config import Config, field_paths, load_config, parse_config
from vlrl.errors import ConfigError

SMALLEST = {"model": {"path": "m"}, "data": {"train": {"name": "digit_sum"}}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(SMALLEST))
    return path


def test_overrides_reach_sections_lists_and_free_options(file: Path) -> None:
    tree = {**SMALLEST, "rewards": [{"name": "answer_exact"}, {"name": "think_answer_format"}]}
    file.write_text(yaml.safe_dump(tree))
    config = load_config(
        file,
        ["run.seed=3", "optim.lr=1e-4", "optim.betas=[0.8, 0.9]", "rewards.1.weight=0.5",
         "data.train.options.num_rows=7", "eval.target_accuracy=null", "num_steps=2"],
    )  # fmt: skip
    assert config.run.seed == 3
    assert config.optim.lr == 1e-4
    assert config.optim.betas == (0.8, 0.9)
    assert [r.weight for r in config.rewards] == [1.0, 0.5]
    assert config.data.train[0].options == {"num_rows": 7}
    assert config.num_steps == 2


def test_a_config_survives_being_written_and_read(file: Path) -> None:
    config = load_config(file, ["run.dir=/data/runs", "model.dtype=bfloat16"])
    file.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    assert load_config(file) == config


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.pth=x", ["unknown key 'model.pth'", "did you mean 'model.path'"]),
        ("rolout.group_size=4", ["unknown key 'rolout'", "did you mean 'rollout'"]),
        ("group_size=4", ["unknown key 'group_size'", "did you mean 'rollout.group_size'"]),
        ("lr=1e-3", ["unknown key 'lr'", "did you mean 'optim.lr'"]),
        ("rewards=[{nmae: x}]", ["unknown key 'rewards.0.nmae'", "did you mean 'rewards.name'"]),
        ("data.train.limt=4", ["unknown key 'data.train.limt'", "did you mean 'data.train.limit'"]),
        ("data.train.0.limt=4", ["unknown key 'data.train.limt'", "did you mean 'data.train.limit'"]),
        ("data.eval=[{name: a, limt: 1}]", ["unknown key 'data.eval.0.limt'"]),
        ("data.train.limit=0", ["data.train.limit: ", "greater than or equal to 1", "got 0"]),
        ("data.train.rewards=[{name: x, wight: 1}]", ["unknown key 'data.train.rewards.0.wight'"]),
        ("frobnicate=1", ["unknown key 'frobnicate'", "vlrl config schema"]),
        ("rollout.group_size=0", ["rollout.group_size", "greater than or equal to 1", "got 0"]),
        ("optim.lr=fast", ["optim.lr", "valid number", "'fast'"]),
        ("model.dtype=float64", ["model.dtype", "'float32' or 'bfloat16'", "'float64'"]),
        ("run.name=a/b", ["run.name", "pattern", "'a/b'"]),
        ("rollout.top_p=0.9", ["rollout.top_p", "whole distribution"]),
        ("async_.mode=async", ["async_.mode", "it is called 'asynchronous'"]),
        ("processor.min_pixels=99999999", ["processor", "min_pixels=99999999 is above max_pixels"]),
        ("algorithm.correction.cap=5", ["cap=5", "kind=auto", "truncated or masked"]),
        ("algorithm.correction={kind: masked, icepop_high: 3}", ["icepop_high=3", "kind=icepop"]),
        ("algorithm.correction={kind: decoupled, dppo_threshold: 0.1}", ["dppo_threshold=0.1", "kind=dppo"]),
        ("algorithm.discount=0.9", ["discount=0.9", "credit=episode", "leave it out (1.0)"]),
        ("algorithm={credit: turn_groups, state_weight: 2}", ["state_weight=2.0", "credit=state_groups"]),
        ("episodes={lockstep: false, stragglers: {num_extra: 2}}", ["num_extra=2", "policy=redundancy"]),
        ("algorithm.num_minibatches=3", ["num_minibatches=3", "rollout.prompts_per_step=16"]),
        ("rollout.max_tokens=5000", ["rollout.max_tokens=5000", "generator.max_model_len"]),
        ("rewards=[3]", ["rewards.0", "got 3"]),
        ("model=null", ["model", "got None"]),
        ("no-equals-sign", ["'no-equals-sign'", "section.key=value"]),
        ("=3", ["'=3'", "section.key=value"]),
        ("num_steps.x=3", ["num_steps.x=3", "'num_steps' is a value, not a section"]),
        ("num_steps=[1", ["num_steps=[1", "not valid YAML"]),
        ("rollout.structured_outputs.regex=[0-9]+", ["in double quotes", "key='\"[0-9]+\"'"]),
    ],
)  # fmt: skip
def test_a_wrong_override_is_named_with_its_remedy(file: Path, override: str, words: list[str]) -> None:
    tree = {**SMALLEST, "num_steps": 5}
    file.write_text(yaml.safe_dump(tree))
    with pytest.raises(ConfigError) as caught:
        load_config(file, [override])
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message


def test_sources_are_addressed_with_and_without_an_index(file: Path) -> None:
    assert [s.limit for s in load_config(file, ["data.train.limit=4"]).data.train] == [4]
    assert [s.limit for s in load_config(file, ["data.train.0.limit=5"]).data.train] == [5]
    tree = {**SMALLEST, "data": {"train": [{"name": "a"}]}}
    file.write_text(yaml.safe_dump(tree))
    assert [s.limit for s in load_config(file, ["data.train.limit=4"]).data.train] == [4]
    assert load_config(file, ["data.train.options.split=x"]).data.train[0].options == {"split": "x"}
    tree["data"]["train"].append({"name": "b"})  # type: ignore[attr-defined, index]
    file.write_text(yaml.safe_dump(tree))
    assert [s.limit for s in load_config(file, ["data.train.1.limit=4"]).data.train] == [None, 4]
    with pytest.raises(ConfigError, match=r"'data\.train\.limit': 'limit' must be an index below 2"):
        load_config(file, ["data.train.limit=4"])


@pytest.mark.parametrize("key", ["rewards.2.weight", "rewards.x.weight", "rewards.7"])
def test_a_list_is_addressed_by_an_index_it_has(file: Path, key: str) -> None:
    file.write_text(yaml.safe_dump({**SMALLEST, "rewards": [{"name": "a"}, {"name": "b"}]}))
    with pytest.raises(ConfigError, match="must be an index below 2"):
        load_config(file, [f"{key}=1"])


def test_a_scalar_in_a_list_has_no_keys(file: Path) -> None:
    file.write_text(yaml.safe_dump({**SMALLEST, "rewards": [3]}))
    with pytest.raises(ConfigError, match="'0' is a value, not a section"):
        load_config(file, ["rewards.0.weight=1"])


def test_every_problem_is_told_at_once(file: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(file, ["num_step=3", "run.seed=-1", "optim.eps=0"])
    assert all(key in str(caught.value) for key in ("num_step", "run.seed", "optim.eps"))


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"missing key 'model'\nmissing key 'data'"):
        parse_config({})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "mapping of sections"),
        (b"- a\n- b\n", "mapping of sections"),
        (b"model: {path: m\n", "not valid YAML"),
        (b"model: \xff\n", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_config(file: Path, content: bytes, words: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_names_the_nearest(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"runn\.yaml does not exist; did you mean .*run\.yaml\?"):
        load_config(file.with_name("runn.yaml"))


def test_every_field_says_what_it_is() -> None:
    """`vlrl config schema` is the reference of the options, so none may come without its sentence."""

    def silent(schema: dict[str, object], where: str) -> list[str]:
        fields = schema.get("properties", {})
        assert isinstance(fields, dict)
        return [
            f"{where}.{name}"
            for name, field in fields.items()
            if "$ref" not in str(field) and "description" not in field
        ]

    schema = Config.model_json_schema()
    parts = {"Config": schema, **schema["$defs"]}
    assert [field for name, part in parts.items() for field in silent(part, name)] == []


def test_paths_cover_the_tree() -> None:
    paths = list(field_paths())
    assert len(paths) == len(set(paths))
    assert {"model", "model.path", "data.train.limit", "data.eval.name", "rewards.weight", "sft"} <= set(
        paths
    )


def test_rounding_is_corrected_for_in_bfloat16_unless_told_otherwise(file: Path) -> None:
    def kind(*overrides: str) -> str:
        return load_config(file, overrides).algorithm.correction.kind

    auto = "algorithm.correction.kind=auto"
    assert kind(auto) == "none"
    assert kind(auto, "model.dtype=bfloat16") == "truncated"
    assert kind("algorithm.correction.kind=icepop", "model.dtype=bfloat16") == "icepop"
    assert kind("algorithm.correction.kind=none", "model.dtype=bfloat16") == "none"


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"servers": ["10.0.0.7:8000"]}, "is no server's address; write http://HOST:PORT"),
        ({"servers": ["http://a/v1"]}, "is no server's address"),
        ({"servers": ["http://a:1", "http://a:1"]}, "names a server twice"),
        ({"servers": ["http://a:1"], "num_replicas": 2}, "leave num_replicas out"),
        (
            {"servers": ["http://a:1"], "max_concurrency": "auto", "mode": "continuous"},
            "generator.servers do not tell",
        ),
        ({"servers": ["http://a:1"], "routing_replay": True}, "do not return the choices of experts"),
    ],
)
def test_servers_that_cannot_be_used_are_refused(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_config(generator=sections)


def test_adapters_alone_are_not_sent_to_servers() -> None:
    with pytest.raises(ConfigError, match=r"set lora\.sync=merged"):
        make_config(generator={"servers": ["http://a:1"]}, lora={"sync": "adapter"})


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("use_liger_kernel=true", "is vlrl's own head, which never has whole logits"),
        ("trainer.fp16=true", "float16 needs a loss scale, which skips steps; set model.dtype=bfloat16"),
        ("model.dtype=float16", "float16 needs a loss scale, which skips steps; set model.dtype=bfloat16"),
        ("activation_offloading=true", "set trainer.gradient_checkpointing=true"),
        ("trainer.expert_parallel=8", "generator.engine={enable_expert_parallel: true} places an engine's"),
    ],
)
def test_what_others_have_and_vlrl_has_not_is_said_with_its_reason(
    file: Path, override: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_config(file, [override])


def test_muon_is_refused_where_its_states_cannot_lie() -> None:
    with pytest.raises(ConfigError, match=r"no Muon; set optim\.state=float32, or optim\.name=adamw"):
        make_config(optim={"name": "muon", "state": "8bit"})
    offloaded = {"offload_optimizer": True, "offload_dir": "/tmp"}
    with pytest.raises(ConfigError, match=r"remove trainer\.offload_dir, which offloads to host memory"):
        make_config(optim={"name": "muon"}, trainer=offloaded)


def test_dora_is_refused_where_engines_apply_adapters() -> None:
    assert make_config(lora={"dora": True}).lora
    with pytest.raises(ConfigError, match=r"vLLM's LoRA does not know DoRA; set lora\.sync=merged, or"):
        make_config(lora={"dora": True, "sync": "adapter"})


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"lora": {"sync": "adapter"}}, "which are not rounded; set lora.sync=merged, or lora.base=dtype"),
        ({"lora": {"dora": True}}, "set lora.dora=false, or lora.base=dtype"),
        (
            {"trainer": {"offload_parameters": True, "offload_dir": "/tmp"}},
            "remove trainer.offload_dir, which offloads to host memory, or set lora.base=dtype",
        ),
    ],
)
def test_a_rounded_base_is_refused_where_nobody_has_it(sections: dict[str, Any], said: str) -> None:
    lora = {"base": "nf4", **sections.get("lora", {})}
    with pytest.raises(ConfigError, match=re.escape(said)):
        make_config(**{**sections, "lora": lora})
