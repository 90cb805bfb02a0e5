"""The section of a teacher, whose policy is distilled into the one that learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from vlrl.config.paths import model_place
from vlrl.config.section import Section

if TYPE_CHECKING:
    from vlrl.config.load import Config


class TeacherConfig(Section):
    """A frozen model that judges the policy's own tokens: on-policy distillation (arXiv 2306.13649).

    The trainer's ranks hold a slice each of it, in model.dtype, and score each micro-batch with it. It must
    read what the policy reads: the same vocabulary, and the same tokens and pixels of an image.
    """

    path: Annotated[str, AfterValidator(model_place)]
    """As model.path; a model of any size."""
    coef: float = Field(1.0, gt=0, allow_inf_nan=False)
    """Each token's advantage is that of its rewards and coef · (log π_teacher - log π_policy), which lowers
    the reverse KL. A reward of weight 0 is only measured; with no other, the teacher alone teaches."""
    offload: bool = False
    """Keep its slices in host memory, or under trainer.offload_dir, even if the policy's are on the GPU."""


def require_use_of_groups(config: Config) -> None:
    """Raise ValueError for what needs a reward's weight where the teacher alone teaches."""
    sources = (*config.data.train, *config.data.eval)
    weighted = [r for r in (*config.rewards, *(r for s in sources for r in s.rewards)) if r.weight != 0]
    if config.algorithm.teacher is None or weighted:
        return
    if any(chosen.name == "zero_variance" for chosen in config.batch.filters):
        raise ValueError(
            "batch.filters=zero_variance with algorithm.teacher and no reward that has a weight: the filter "
            "drops every group; leave it out, or give a reward a weight"
        )
    if config.data.eval and not config.rewards and not all(source.rewards for source in config.data.eval):
        raise ValueError(
            "data.eval is measured by the first reward, and rewards is empty; add one that is measured and "
            "not trained, such as rewards=[{name: answer_exact, weight: 0}], or leave data.eval out"
        )
