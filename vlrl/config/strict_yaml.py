"""YAML as people expect it: a key that occurs twice is an error, and 1e-3 is a number."""

from __future__ import annotations

import re
from typing import Any

import yaml

from vlrl.errors import ConfigError


class DuplicateKey(yaml.constructor.ConstructorError):
    """A mapping has a key twice; plain YAML keeps the last value silently."""


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader without its two silent readings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that occurs twice in the text; one that `<<` merges may be overridden."""
        first: dict[Any, yaml.Node] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key_node.tag == "tag:yaml.org,2002:merge" or not isinstance(key_node, yaml.ScalarNode):
                continue
            key = self.construct_object(key_node)
            if key in first:
                lines = first[key].start_mark.line + 1, key_node.start_mark.line + 1
                raise DuplicateKey(
                    None,
                    None,
                    f"the key {key!r} occurs twice, on line {lines[0]} and on line {lines[1]}; remove one",
                    None,
                )
            first[key] = key_node
        return super().construct_mapping(node, deep)


# YAML 1.1 wants a point and a sign in a number with an exponent, and reads 1e-3 and 1.5e3 as text.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.?|[0-9]*\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def load_yaml(text: str) -> Any:
    """The value of a YAML text.

    Raises:
        yaml.YAMLError: for what is not YAML; `DuplicateKey`, a kind of it, names both lines of a key that
            stands twice.
    """
    return yaml.load(text, _StrictLoader)


def load_value(text: str, given: str) -> Any:
    """The value of a key=value.

    Args:
        text: what is behind the sign.
        given: names the whole in the error.

    Raises:
        ConfigError: for what is not YAML.
    """
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise ConfigError(
            f"{given}: the value is not valid YAML: {reason}; a text with a bracket, a brace, a colon or # "
            "is put in double quotes, and these in the shell's single ones: key='\"[0-9]+\"'"
        ) from error
