"""A verifiers taskset with images: count the dots. verifiers runs it as it runs any; so does vlrl:

env: verifiers
options: {id: ./examples/environments/verifiers_dots.py, python: .venv-verifiers/bin/python}
"""

import base64
import io
import random
import re

import verifiers.v1 as vf
from PIL import Image, ImageDraw

__all__ = ["DotsTaskset"]


class DotsData(vf.TaskData):
    answer: str


class DotsTask(vf.Task[DotsData]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        said = re.findall(r"<answer>(\d+)</answer>", trace.branches[-1].messages[-1].content or "")
        return float(said == [self.data.answer])

    @vf.reward(weight=0.1)
    async def form(self, trace: vf.Trace) -> float:
        said = trace.branches[-1].messages[-1].content or ""
        return float(re.fullmatch(r"<answer>\d+</answer>", said.strip()) is not None)

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.branches[-1].messages[-1].content or ""))


class DotsConfig(vf.TasksetConfig):
    num_tasks: int = 32
    most: int = 6


class DotsTaskset(vf.Taskset[DotsTask, DotsConfig]):
    def load(self):
        for index in range(self.config.num_tasks):
            rng = random.Random(index)
            number = rng.randint(1, self.config.most)
            question = [
                vf.ImageUrlContentPart(image_url=vf.ImageUrlSource(url=drawn(number, rng))),
                vf.TextContentPart(text="How many dots? Answer as <answer>3</answer>."),
            ]
            yield DotsTask(
                DotsData(
                    answer=str(number),
                    system_prompt="You count with care.",
                    prompt=[vf.UserMessage(content=question)],
                )
            )


def drawn(number: int, rng: random.Random) -> str:
    image = Image.new("RGB", (84, 84), "white")
    for place in rng.sample(range(9), number):
        x, y = 28 * (place % 3) + 14, 28 * (place // 3) + 14
        ImageDraw.Draw(image).ellipse((x - 8, y - 8, x + 8, y + 8), fill="black")
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
