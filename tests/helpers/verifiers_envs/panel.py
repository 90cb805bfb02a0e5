"""What cannot be one conversation: two agents of the same model."""

import verifiers.v1 as vf

__all__ = ["PanelEnv", "PanelTaskset"]


class PanelTaskset(vf.Taskset[vf.Task, vf.TasksetConfig]):
    def load(self):
        return [vf.Task(vf.TaskData(prompt="Say something."))]


class PanelConfig(vf.EnvConfig):
    first: vf.AgentConfig = vf.AgentConfig()
    second: vf.AgentConfig = vf.AgentConfig()


class PanelEnv(vf.Env[PanelConfig]):
    async def run(self, task, agents):
        await agents.first.run(task)
        await agents.second.run(task)
