"""Several turns: the environment answers each guess with an image, until the number is found."""

import base64
import io
import time

import verifiers.v1 as vf
from PIL import Image

__all__ = ["GuessEnv", "GuessTaskset", "load_environment"]


class GuessData(vf.TaskData):
    number: int


class GuessTask(vf.Task[GuessData]):
    @vf.reward
    async def found(self, trace: vf.Trace) -> float:
        said = [m.content for m in trace.branches[-1].messages if m.role == "assistant"]
        return 1.0 / len(said) if said[-1] == str(self.data.number) else 0.0


class GuessConfig(vf.TasksetConfig):
    highest: int = 9


class GuessTaskset(vf.Taskset[GuessTask, GuessConfig]):
    INFINITE = True

    def load(self):
        for number in range(1, 10**9):
            yield GuessTask(
                GuessData(number=number % self.config.highest + 1, system_prompt=f"Game {number}.")
            )


class GuessEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()
    most: int = 4


def image(red: int) -> str:
    stream = io.BytesIO()
    Image.new("RGB", (28, 28), (red, 0, 0)).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


class GuessEnv(vf.Env[GuessEnvConfig]):
    async def run(self, task, agents):
        said = "Guess a number."
        async with agents.player.interaction(task) as player:
            for turn in range(self.config.most):
                url = vf.ImageUrlContentPart(image_url=vf.ImageUrlSource(url=image(turn)))
                text = vf.TextContentPart(text=said)
                segment = await player.turn([vf.UserMessage(content=[url, text])])
                if segment.terminated or segment.last_reply == str(task.data.number):
                    break
                if segment.last_reply == "0":
                    time.sleep(60)  # hangs the program, and with it all of its episodes
                said = "higher" if int(segment.last_reply) < task.data.number else "lower"


def load_environment(highest: int = 3) -> vf.Env:
    config = GuessEnvConfig.model_validate(
        {
            "taskset": {"id": "guessing", "highest": highest},
            "player": {"harness": {"id": "vlrl_chat"}, "runtime": {"type": "subprocess"}},
        }
    )
    return GuessEnv(config)
