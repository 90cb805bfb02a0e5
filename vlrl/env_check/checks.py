"""The contract of `vlrl.protocols.Env` as questions to an environment, in the order in which to read them."""

from __future__ import annotations

from collections.abc import Iterator

from vlrl.env_check import agents, conduct, nulls
from vlrl.env_check.episodes import BrokenContract, Request, Watched
from vlrl.env_check.leftovers import leaves_nothing
from vlrl.env_check.library import library_says
from vlrl.env_check.speed import is_fast
from vlrl.env_check.verdict import Check, Question, raised
from vlrl.errors import ConfigError

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


def run_checks(request: Request) -> Iterator[Check]:
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
    yield Check("construct", "ok", "it is made, and takes its options")
    with env:
        for name, question in QUESTIONS.items():
            try:
                check = question(env, request)
            except ConfigError as error:
                if name == conduct.RESET:  # the task that was asked for is wrong
                    raise
                check = raised(name, error)
            except BrokenContract as error:
                check = Check(name, "fail", str(error))
            except Exception as error:  # a stranger's code
                check = raised(name, error)
            yield check
            if name == conduct.RESET and check.status == "fail":
                return
