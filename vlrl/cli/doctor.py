"""`vlrl doctor`."""

from vlrl.cli.shared import DebugOption, JsonOption


def command(json: JsonOption = False, debug: DebugOption = False) -> None:
    """Check what vlrl stands on; each line says what to do."""
