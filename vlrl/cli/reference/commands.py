"""docs/reference/cli.md: every command, from what `vlrl` is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from vlrl import errors
from vlrl.cli.reference.markdown import MADE_BY, code, docstring_of, escape, link, page, prose, table

HEAD = f"""# Every command

{MADE_BY}

`vlrl COMMAND --help` says the same. Options of a config are written `section.key=value` after its path,
see [options.md](options.md).
"""
EXIT_CODES = {
    0: "done",
    1: "failed; or a check found something, as the command says",
    2: "wrong usage, option, name or path",
    130: "interrupted by Ctrl-C or SIGTERM",
}
EXIT_CODES_HEAD = 'With `--json` a failure is `{"error": MESSAGE, "kind": KIND}` on stdout.'


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or an option of a command.

    Attributes:
        name: as the function has it.
        info: what typer knows about it.
        kind: its type, None and Annotated stripped.
        default: its default value; `inspect.Parameter.empty` if it is required.
    """

    name: str
    info: ArgumentInfo | OptionInfo
    kind: Any
    default: Any


def commands_page() -> str:
    """The page as Markdown."""
    from vlrl.cli.app import app

    commands = list(_commands(app, "vlrl"))
    parts = [HEAD, table(("command", "purpose"), [(link(name), _purpose(each)) for name, each in commands])]
    parts += ["## Exit codes", EXIT_CODES_HEAD, table(("code", "meaning", "kinds"), _exit_codes())]
    for name, function in commands:
        parts += _command(name, function)
    return page(parts)


def _exit_codes() -> Iterator[tuple[str, str, str]]:
    kinds = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.VlrlError) and each is not errors.VlrlError
    ]
    for number, meaning in EXIT_CODES.items():
        names = [code(each.__name__) for each in kinds if each.exit_code == number]
        yield code(str(number)), meaning, ", ".join(names)


def _commands(app: typer.Typer, prefix: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command, with its full name: those of the app itself, then those of its groups."""
    for command in app.registered_commands:
        if command.callback is not None:
            yield f"{prefix} {command.name}", command.callback
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, f"{prefix} {group.name}")


def _parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        inner = [each for each in get_args(kind) if each is not NoneType]
        kind = inner[0] if get_origin(kind) in (Union, UnionType) else kind
        yield Parameter(name, info, kind, parameter.default)


def _purpose(function: Callable[..., Any]) -> str:
    """The first sentence of the help, without its example."""
    purpose = docstring_of(function.__doc__ or "").purpose
    return escape(purpose.partition(": `")[0].rstrip("."))


def _command(name: str, function: Callable[..., Any]) -> Iterator[str]:
    doc = docstring_of(function.__doc__ or "")
    parameters = list(_parameters(function))
    arguments = [each for each in parameters if isinstance(each.info, ArgumentInfo)]
    options = [each for each in parameters if isinstance(each.info, OptionInfo)]
    yield f"## {name}"
    yield f"```text\n{' '.join([name, *map(_written, arguments), '[OPTIONS]'])}\n```"
    yield escape(doc.purpose)
    yield prose(doc.body)
    if arguments:
        yield table(("argument", "meaning"), [(code(_metavar(each)), _help(each)) for each in arguments])
    rows = [(_names(each), _value(each), _default(each), _help(each)) for each in options]
    yield table(("option", "value", "default", "meaning"), rows)


def _is_list(parameter: Parameter) -> bool:
    return get_origin(parameter.kind) is list


def _metavar(argument: Parameter) -> str:
    return (argument.info.metavar or argument.name.upper()).strip("[]…")


def _written(argument: Parameter) -> str:
    """An argument as usage shows it: in brackets if it may be left out, with dots if repeated."""
    text = _metavar(argument) + ("…" if _is_list(argument) else "")
    return text if argument.default is inspect.Parameter.empty else f"[{text}]"


def _names(option: Parameter) -> str:
    return ", ".join(code(each) for each in _flags(option))


def _flags(option: Parameter) -> list[str]:
    """How it is written; in Annotated, typer keeps the first one given as `default`."""
    given = [option.info.default, *(option.info.param_decls or ())]
    flags = [each for each in given if isinstance(each, str) and each.startswith("-")]
    return flags or ["--" + option.name.replace("_", "-")]


def _value(option: Parameter) -> str:
    """What the option takes: nothing for a switch, else a type with its bounds or choices."""
    if option.kind is bool:
        return ""
    kind = get_args(option.kind)[0] if _is_list(option) else option.kind
    if get_origin(kind) is Literal:
        shown = " or ".join(code(str(each)) for each in get_args(kind))
    elif issubclass(kind, Enum):
        shown = " or ".join(code(str(each.value)) for each in kind)
    else:
        shown = {str: "text", int: "integer", float: "number", Path: "path"}[kind]
    bounds = [("≥", option.info.min), ("≤", option.info.max)]
    shown += ",".join(f" {sign} {bound:g}" for sign, bound in bounds if bound is not None)
    return f"{shown}, repeatable" if _is_list(option) else shown


def _default(option: Parameter) -> str:
    if option.default is inspect.Parameter.empty:
        return "required"
    if option.default is None or option.default is False:
        return ""
    if option.default is True:
        return code(_flags(option)[0].partition("/")[0])
    return code(str(option.default.value if isinstance(option.default, Enum) else option.default))


def _help(parameter: Parameter) -> str:
    return escape(" ".join((parameter.info.help or "").split()))
