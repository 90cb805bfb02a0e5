"""A rank's part of the critic: a ZeRO-3 engine of its own beside the policy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from vlrl.algorithm.critic.value_loss import value_loss
from vlrl.algorithm.loss import weighted_sum
from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.model.feature_cache import FeatureCache
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch
from vlrl.model.values import TreeValues
from vlrl.trainer.loading import load_second
from vlrl.trainer.model import begin_gradients
from vlrl.trainer.objective import ValueTargets
from vlrl.trainer.optimizers.make import make_engine
from vlrl.trainer.regularizers.gather import sums_of_ranks


class RankCritic:
    """A model with a value head, trained on the micro-batches of the policy.

    Attributes:
        engine: DeepSpeed's.
        choices: what was chosen for it otherwise than for the policy.
    """

    def __init__(
        self,
        config: Config,
        device: torch.device,
        sharers: ProcessGroup | None,
        policy_choices: Sequence[MachineChoice],
        cache: FeatureCache | None,
    ) -> None:
        """Load it and build its engine; every rank must call it.

        Args:
            config: the whole config, with algorithm.critic.
            device: that trains.
            sharers: ranks that share a sequence.
            policy_choices: what was chosen for the policy.
            cache: of a frozen tower's features, which a critic that begins at the policy's model has too.

        Raises:
            ConfigError: see `load_second`.
        """
        assert config.algorithm.critic is not None, "algorithm.critic is not set"
        self._options = config.algorithm.critic
        self._num_warmup = self._options.warmup_steps * config.algorithm.num_minibatches
        self._world = config.trainer.world_size
        config = of_critic(config)
        loaded = load_second(config, "critic", device, policy_choices)
        features = {"features": cache} if cache is not None and self._options.path is None else {}
        module = TreeValues(
            loaded.model,
            attention=loaded.chosen.attention,
            spans=loaded.chosen.spans,
            sharers=sharers,
            **features,
        ).to(device)
        self.engine = make_engine(module, config, loaded.options, device)
        self.choices = loaded.choices
        self._kept = StepFeatures()

    @property
    def learns_alone(self) -> bool:
        """Whether the policy is still held, see algorithm.critic.warmup_steps; a part of a checkpoint."""
        return bool(self.engine.global_steps < self._num_warmup * self._options.num_updates)

    def begin(self) -> None:
        """Begin an update of the policy: images of the one before are gone."""
        self._kept = StepFeatures()

    def values(self, batch: DeviceBatch) -> Tensor:
        """Values of a micro-batch's trained tokens, without gradient: [M] float32."""
        with torch.no_grad():
            found: Tensor = self.engine(batch, self._kept)
        return found

    def update(
        self, batches: Callable[[], Iterable[DeviceBatch]], targets: Sequence[ValueTargets]
    ) -> Mapping[str, float]:
        """Take the optimizer steps that go with one of the policy; every rank must call it.

        Args:
            batches: this rank's micro-batches, again for each step.
            targets: of each of them.

        Returns:
            Metrics by name, the same on all ranks.
        """
        for group in self.engine.optimizer.param_groups:
            group["lr"] = self._options.lr  # a checkpoint brings its own
        losses = clipped = 0.0
        for _ in range(self._options.num_updates):
            kept = StepFeatures()
            for index, (batch, target) in enumerate(zip(batches(), targets, strict=True)):
                if index == 0:
                    begin_gradients(self.engine, batch.media_inputs is not None)
                self.engine.set_gradient_accumulation_boundary(index == len(targets) - 1)
                values = self.engine(batch, kept)
                per_token, held = value_loss(values, target.old_values, target.returns, self._options.clip)
                loss = weighted_sum(per_token, target.weights)
                # ZeRO averages gradients over ranks; the weights already average over the whole batch
                self.engine.backward(loss * self._world)
                losses += float(loss.detach())
                clipped += float((held * target.weights).sum())
            self.engine.step()
        num_updates = self._options.num_updates
        return value_metrics(targets, losses / num_updates, clipped / num_updates, self.engine.device)


def value_metrics(
    targets: Sequence[ValueTargets], loss: float, clipped: float, device: torch.device
) -> dict[str, float]:
    """What all ranks' targets say of the critic before its updates; every rank must call it.

    Explained variance is 1 - Var(R - V) / Var(R), left out where all returns are equal.

    Args:
        targets: of this rank.
        loss: this rank's part of the mean loss.
        clipped: this rank's part of the share of values that the clip held.
        device: of this rank.
    """
    names = ("weights", "old_values", "returns")
    weights, values, returns = (
        torch.cat([getattr(target, name) for target in targets]).double() for name in names
    )
    errors = returns - values
    numbers = (torch.ones_like(weights), values, returns, errors, returns.square(), errors.square())
    mine = [loss, clipped, *(float((weights * of_tokens).sum()) for of_tokens in numbers)]
    loss, clipped, total, *sums = sums_of_ranks(mine, device)
    value, returned, error, square_of_returns, square_of_errors = (each / total for each in sums)
    found = {
        "critic/loss": loss,
        "critic/clip_fraction": clipped,
        "critic/value_mean": value,
        "critic/return_mean": returned,
    }
    variance = square_of_returns - returned**2
    if variance > 1e-9 * square_of_returns:
        found["critic/explained_variance"] = 1.0 - (square_of_errors - error**2) / variance
    return found


def of_critic(config: Config) -> Config:
    """The config under which the critic is loaded and trained."""
    critic = config.algorithm.critic
    assert critic is not None, "algorithm.critic is not set"
    path = config.model.path if critic.path is None else critic.path
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"path": path}),
            "optim": config.optim.model_copy(update={"lr": critic.lr}),
        }
    )
