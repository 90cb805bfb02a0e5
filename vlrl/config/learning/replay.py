"""Whether earlier groups can be trained again with the rest of the config."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlrl.config.load import Config


def require_use_of_replay(config: Config) -> None:
    """Raise ValueError for what batch.replay makes no sense with."""
    replay, algorithm, num_prompts = config.batch.replay, config.algorithm, config.rollout.prompts_per_step
    if replay is None:
        return
    kind, loss = algorithm.correction.kind, algorithm.loss.name
    if kind == "uncorrected":
        raise ValueError(
            "batch.replay trains tokens of older weights, and algorithm.correction.kind=uncorrected treats "
            "them as fresh; set algorithm.correction.kind=none, decoupled or truncated, or batch.replay=null"
        )
    if kind == "none" and loss == "policy_gradient":
        raise ValueError(
            "algorithm.loss=policy_gradient has no ratio, and batch.replay trains tokens of older weights; "
            "set algorithm.correction.kind=truncated, or batch.replay=null"
        )
    if any(chosen.name == "zero_variance" for chosen in config.batch.filters):
        raise ValueError(
            "batch.replay replaces groups without a learning signal, and batch.filters=zero_variance has "
            "dropped them before; leave one of the two out"
        )
    if int(replay.share * num_prompts) < 1:
        raise ValueError(
            f"batch.replay.share={replay.share:g} of rollout.prompts_per_step={num_prompts} is less than one "
            "sample; raise either of them"
        )
    others = {
        "preferences": config.preferences is not None,
        "algorithm.teacher": algorithm.teacher is not None,
        "algorithm.critic": algorithm.critic is not None,
        "algorithm.credit=reward": algorithm.credit.name == "reward",
    }
    for key in (key for key, is_set in others.items() if is_set):
        raise ValueError(
            f"batch.replay with {key}: the advantages of a group do not tell there whether it has a learning "
            "signal; leave one of the two out"
        )
