"""TRL's side of train_step.py: its GRPOTrainer, told over a pipe how many steps to run. Not run by hand.

    .venv-trl/bin/python benchmarks/trl_step.py JOB.json

Set up as TRL does best on a CPU: transformers generation (its continuous batching refuses multimodal models,
its colocated vLLM does not run on a CPU), the job's number of completions in a micro-batch, no gradient
checkpointing, float32, PyTorch's fused AdamW, images held decoded in memory, no progress bar, no reports,
no checkpoints. Tried on 2 cores and slower: a static cache, eager attention, plain AdamW, torch.compile.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

started = time.perf_counter()

from step_job import TALLY, Block, Job, Pipe, noise_reward  # noqa: E402


def make_dataset(job: Job) -> Any:
    """A map-style dataset whose rows are made from images in memory, so that no step decodes a file."""
    import numpy as np
    from datasets import Dataset  # type: ignore[import-not-found]
    from PIL import Image

    images = [[Image.fromarray(pixels) for pixels in row] for row in np.load(job.rows)["images"]]

    def prompt(row: int) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images[row]]
        return [{"role": "user", "content": [*parts, {"type": "text", "text": job.text}]}]

    rows = Dataset.from_dict({"row": list(range(len(images)))})
    return rows.with_transform(lambda batch: {"prompt": [prompt(row) for row in batch["row"]]})


def make_arguments(job: Job) -> Any:
    from trl import GRPOConfig  # type: ignore[import-not-found]

    case = job.case
    return GRPOConfig(
        output_dir=os.path.join(job.folder, "trl"),
        # the work of a step
        max_steps=job.max_steps,
        per_device_train_batch_size=job.micro_batch,
        gradient_accumulation_steps=case.completions // job.micro_batch,
        num_generations=case.group_size,
        max_completion_length=case.completion_tokens,
        generation_kwargs={"min_new_tokens": case.completion_tokens},
        temperature=1.0,
        shuffle_dataset=False,
        seed=job.seed,
        # the algorithm and its optimizer
        beta=0.0,
        num_iterations=1,
        epsilon=0.2,
        epsilon_high=0.28,
        loss_type="dapo",
        scale_rewards="group",
        learning_rate=job.lr,
        lr_scheduler_type="constant",
        adam_beta1=job.betas[0],
        adam_beta2=job.betas[1],
        weight_decay=0.0,
        max_grad_norm=job.max_grad_norm,
        optim="adamw_torch_fused",
        # as fast as it goes on a CPU
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
        logging_strategy="no",
        log_multimodal=False,
        save_strategy="no",
    )


def make_trainer(job: Job, pipe: Pipe) -> Any:
    """A GRPOTrainer that stops at the end of each block until the next is asked for."""
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    state: dict[str, Any] = {}

    class Trainer(GRPOTrainer):  # type: ignore[misc]
        def _generate_single_turn(self, *arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return super()._generate_single_turn(*arguments, **options)
            finally:
                state["generate"] = time.perf_counter() - begin

        def _prepare_inputs(self, batch: Any) -> Any:
            begin = time.perf_counter()
            result = super()._prepare_inputs(batch)  # generates in a step's first micro-batch
            state["inputs"] = state.get("inputs", 0.0) + time.perf_counter() - begin
            return result

        def _generate(self, prompts: Any) -> Any:
            result = super()._generate(prompts)
            state["prompt_ids"] = result[0]
            return result

    def reward(completions: list[Any], completion_ids: list[list[int]], **_: Any) -> list[float]:
        rewards = [noise_reward(completion[0]["content"]) for completion in completions]
        for prompt, generated, value in zip(state["prompt_ids"], completion_ids, rewards, strict=True):
            TALLY.add(len(prompt), len(generated), value)
        return rewards

    class Blocks(TrainerCallback):  # type: ignore[misc]
        def _next(self, control: Any) -> None:
            steps = pipe.next_block()
            control.should_training_stop = steps == 0
            state["block"] = Block(steps)

        def on_train_begin(self, args: Any, current: Any, control: Any, **_: Any) -> None:
            pipe.send(start_up={"total": time.perf_counter() - started})
            self._next(control)

        def on_step_end(self, args: Any, current: Any, control: Any, **_: Any) -> None:
            block = state["block"]
            prepare = state.pop("inputs") - state["generate"]
            parts = {"generate": state["generate"], "prepare and score": prepare}
            if block.end_step(parts, rest="train"):
                pipe.send(block=block.as_dict())
                self._next(control)

    return Trainer(
        model=job.model,
        reward_funcs=reward,
        args=make_arguments(job),
        train_dataset=make_dataset(job),
        callbacks=[Blocks()],
    )


def main() -> None:
    job = Job.read(sys.argv[1])
    pipe = Pipe()
    import torch

    torch.set_num_threads(job.threads)
    make_trainer(job, pipe).train()


if __name__ == "__main__":
    main()
