"""What the tests of OSWorld, OSGym and AndroidWorld share: a task, deadlines, texts that want to be run."""

from __future__ import annotations

from typing import Any

from gui_servers import HEIGHT, WIDTH

from vlrl.envs.gui import actions as a

SIZE = [WIDTH, HEIGHT]
QUICK = {"connect_s": 5.0, "health_s": 10.0, "reset_s": 20.0, "step_s": 20.0, "verify_s": 20.0}
HOSTILE = [
    "');import os;os.system('touch PWNED')#",
    '"); __import__("os").system("touch PWNED")',
    "$(touch PWNED) `touch PWNED` ; touch PWNED | x && y > PWNED",
    "{command} %s \\n \\x00 \\' \\\" ~/x -c --help",
    '","calls":[["write",{"message":"x"}]],"',
    "a)&finish()&type(b",
    "type(x)&hotkey(ctrl,alt,delete)",
    "line one\nimport os",
]
PRINTS = {"type": "vm_command_line", "command": ["printf", "%s", "ready"]}
TASK = {
    "id": "t",
    "instruction": "Make it ready.",
    "config": [{"type": "launch", "parameters": {"command": ["gedit"]}}],
    "evaluator": {
        "func": "exact_match",
        "result": PRINTS,
        "expected": {"type": "rule", "rules": {"expected": "ready"}},
    },
}


def say(env: Any, action: a.Action) -> Any:
    return env.step(env.codec.format(action, env.view))


def typed_by(calls: Any) -> str:
    """What calls of pyautogui type on a keyboard of X: its "<" is on a key of which shift makes ">"."""
    typed, held = "", set[str]()
    for name, arguments in calls:
        match name:
            case "write":
                typed += arguments["message"].replace("<", ">")
            case "keyDown" if arguments["key"] == "shift":
                held.add("shift")
            case "keyDown":
                sign = arguments["key"]
                typed += {",": "<", "<": ">"}.get(sign, sign) if "shift" in held else sign.replace("<", ">")
            case "keyUp":
                held.discard(arguments["key"])
            case _:
                raise AssertionError(name)
    return typed
