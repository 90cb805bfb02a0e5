"""An OpenEnv server whose environment fails as its actions say; tests run it in .venv-ecosystem."""

import os
import sys
import time

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import field_validator


class Do(Action):
    what: str

    @field_validator("what")
    @classmethod
    def not_rude(cls, value: str) -> str:
        if value == "rude":
            raise ValueError("be polite")
        return value


class Told(Observation):
    what: str
    number: int


class Faults(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, over: bool = False, **kwargs
    ) -> Told:
        self.num_steps = 0
        return Told(what=str(sorted(kwargs.items())), number=seed or 0, done=over)

    def step(self, action: Do, timeout_s: float | None = None, **kwargs) -> Told:
        self.num_steps += 1
        if action.what == "sleep":
            time.sleep(30)
        if action.what == "raise":
            raise RuntimeError("the environment is broken")
        if action.what == "die":
            os._exit(1)
        reward = {"none": None, "half": 0.5}.get(action.what, 0)
        return Told(what=action.what, number=self.num_steps, reward=reward, done=action.what == "end")

    @property
    def state(self) -> State:
        return State(step_count=self.num_steps)


if __name__ == "__main__":
    app = create_app(Faults, Do, Told, max_concurrent_envs=int(sys.argv[2]))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
