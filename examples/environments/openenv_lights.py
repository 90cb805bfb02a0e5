"""A small OpenEnv environment and its server: switch all lights on.

    python examples/environments/openenv_lights.py 8000

and in the run's config

    env: openenv
    options: {url: "http://127.0.0.1:8000"}

It needs openenv-core, where the server runs; vlrl itself does not.
"""

import base64
import io
import random
import sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from PIL import Image
from pydantic import Field


class Press(Action):
    light: int = Field(ge=0, le=3, description="Which light is switched.")


class Lights(Observation):
    message: str = ""
    image: str = ""


class LightsEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.on = [False] * 4
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, num_on: int = 2, **kwargs
    ) -> Lights:
        self.on = [True] * num_on + [False] * (4 - num_on)
        random.Random(seed).shuffle(self.on)
        self._state = State(episode_id=episode_id)
        return self.shown("Switch all four lights on.")

    def step(self, action: Press, timeout_s: float | None = None, **kwargs) -> Lights:
        self.on[action.light] = not self.on[action.light]
        self._state.step_count += 1
        return self.shown(f"{sum(self.on)} of 4 are on.")

    def shown(self, message: str) -> Lights:
        image = Image.new("RGB", (56, 56))
        for i, on in enumerate(self.on):
            image.paste("yellow" if on else "gray", (14 * i + 2, 20, 14 * i + 12, 36))
        stream = io.BytesIO()
        image.save(stream, "PNG")
        encoded = base64.b64encode(stream.getvalue()).decode()
        return Lights(message=message, image=encoded, reward=float(all(self.on)), done=all(self.on))

    @property
    def state(self) -> State:
        return self._state


app = create_app(LightsEnvironment, Press, Lights, max_concurrent_envs=8)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
