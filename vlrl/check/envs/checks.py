"""The contract of `vlrl.protocols.Env` as checks of an environment, in the order in which to read them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vlrl.check.envs import agents, conduct, nulls
from vlrl.check.envs.episodes import BrokenContract, Request, Watched
from vlrl.check.envs.leftovers import leaves_nothing
from vlrl.check.envs.speed import is_fast
from vlrl.check.envs.verdict import EnvCheck, Question, raised
from vlrl.errors import ConfigError

TITLE = "its library's checker"
FAILURE = re.compile(r"\w*(Error|Exception): ")


def library_says(env: Watched, request: Request) -> EnvCheck:
    """An adapter's `findings()`, such as those of Gymnasium's own checker."""
    if not env.has("findings"):
        return EnvCheck(TITLE, "info", "it has none")
    findings = [str(finding) for finding in env.call("findings")]
    if any(FAILURE.match(finding) for finding in findings):
        return EnvCheck(TITLE, "fail", "refuses it", findings)
    return EnvCheck(TITLE, "warn" if findings else "ok", f"{len(findings)} warnings", findings)


QUESTIONS: dict[str, Question] = {
    conduct.RESET: conduct.shows_something,
    "instructions": conduct.instructs,
    conduct.SAME: conduct.repeats,
    "seeds differ": conduct.differs,
    conduct.JUNKED: conduct.answers_junk,
    "oracle": agents.oracle,
    agents.SHOWN: agents.heeds_how_it_is_shown,
    "random agent": agents.random_agent,
    "null agents": nulls.null_check,
    "episodes end": agents.ends,
    "reset at any time": conduct.restarts,
    "snapshot and restore": conduct.restores,
    "unknown task key": conduct.refuses_unknown_keys,
    "close": conduct.closes,
    "leaves nothing behind": leaves_nothing,
    "its library's checker": library_says,
    "speed": is_fast,
}


def run_checks(request: Request) -> Iterator[EnvCheck]:
    """Ask everything, one question after the other; a question that raises is its own answer.

    Raises:
        ConfigError: for an unknown name, a wrong option or a wrong task.
    """
    try:
        env = Watched(request)
    except ConfigError:
        raise
    except Exception as error:  # a stranger's constructor
        yield raised("construct", error)
        return
    yield EnvCheck("construct", "ok", "it is made, and takes its options")
    with env:
        for name, question in QUESTIONS.items():
            try:
                check = question(env, request)
            except ConfigError as error:
                if name == conduct.RESET:  # the task that was asked for is wrong
                    raise
                check = raised(name, error)
            except BrokenContract as error:
                check = EnvCheck(name, "fail", str(error))
            except Exception as error:  # a stranger's code
                check = raised(name, error)
            yield check
            if name == conduct.RESET and check.status == "fail":
                return
