"""Tools, and what may break: weigh things, then answer."""

import os

import verifiers.v1 as vf

__all__ = ["ScaleTaskset"]


class ScaleData(vf.TaskData):
    answer: str
    broken: str = ""


class ScaleTools(vf.Toolset[vf.SharedToolsetConfig]):
    server_name = "scale"

    @vf.tool
    async def weigh(self, thing: str) -> str:
        """Weigh a thing."""
        if thing == "ghost":
            raise ValueError("a ghost weighs nothing")
        return f"{len(thing)} kg"


class ScaleTask(vf.Task[ScaleData]):
    async def setup(self, trace, runtime):
        if self.data.broken == "setup":
            raise RuntimeError("no scale today")

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        if self.data.broken == "reward":
            raise RuntimeError("the answer is lost")
        if self.data.broken == "die":
            os._exit(3)
        return float((trace.branches[-1].messages[-1].content or "") == self.data.answer)


class ScaleTaskset(vf.Taskset[ScaleTask, vf.TasksetConfig]):
    @classmethod
    def toolsets(cls, config):
        return [ScaleTools(vf.SharedToolsetConfig())]

    def load(self):
        for broken in ("", "setup", "reward", "die"):
            yield ScaleTask(ScaleData(answer="5 kg", prompt="How heavy is a table?", broken=broken))


if __name__ == "__main__":
    ScaleTools.run()
