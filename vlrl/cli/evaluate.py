"""`vlrl eval`."""

from __future__ import annotations

from vlrl.cli.shared import ConfigArgument, DebugOption, JsonOption, OverridesArgument, print_result
from vlrl.config import load_config
from vlrl.console import TrainConsole
from vlrl.errors import ConfigError


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Held-out accuracy of a model: `vlrl eval configs/quickstart.yaml model.path=runs/quickstart/model`."""
    loaded = load_config(config, overrides or [])
    if not loaded.data.eval:
        raise ConfigError(f"{config}: data.eval is not set; name the held-out rows there")

    from vlrl.evaluate import evaluate_model

    with TrainConsole(f"evaluate {loaded.model.path}", 1, json_mode=json) as console:
        result = evaluate_model(loaded, console)
        for name, part in {"": result, **result.parts}.items():
            told = f"{part.accuracy_greedy:.3f} greedy, {part.accuracy_sampled:.3f} sampled"
            console.note(f"accuracy{name and f' of {name} ({part.num_samples})'}: {told}")
    print_result({"model_path": loaded.model.path, **result.summary()}, json)
