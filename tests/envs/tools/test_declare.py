"""Typed functions as tools: their schemas, what is made of a model's arguments, and what comes back."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import Field
from transformers.utils import get_json_schema

from vlrl.coordinates import Canvas
from vlrl.envs.tools.declare import GIVEN, MAX_TEXT, Given, Tool, ToolError, tool
from vlrl.envs.tools.open import open_tools
from vlrl.errors import ConfigError, ResourceError
from vlrl.registry import BUILT_IN


def weigh(thing: str, times: int = 1, unit: Literal["g", "kg"] = "g") -> str:
    """Weigh something on the scales.

    Args:
        thing: what to weigh
        times: how often; the
            mean counts
        unit: of the answer

    Returns:
        the weight
    """
    return f"{thing} {times} {unit}"


def every_type(
    a: str,
    b: int,
    c: float,
    d: bool,
    e: list[float],
    f: list,
    g: dict,
    h: dict[str, int],
    i: int | None,
    j: list[int] | None,
    k: int | str,
    m: Literal[1, "a"],
    n: Literal["only"],
    o: list[list[int]] | str = "",
    p: Any = None,
    q: Literal["a", None] = None,
):
    """Take a value of every type.

    Args:
        a: first
        b: second
        c: third
        d: fourth
        e: fifth
        f: sixth
        g: seventh
        h: eighth
        i: ninth
        j: tenth
        k: eleventh
        m: twelfth
        n: thirteenth
        o: fourteenth
        p: fifteenth
        q: sixteenth
    """


def nothing():
    """Take nothing."""
    return None


@pytest.mark.parametrize("function", [weigh, every_type, nothing])
def test_the_schema_is_transformers_own(function: Callable[..., Any]) -> None:
    expected = get_json_schema(function)
    expected["function"].pop("return", None)  # no part of a tool's schema as templates show it
    assert tool(function).schema == expected


def test_a_given_parameter_is_not_in_the_schema_and_bounds_are() -> None:
    @tool
    def look(
        box: Annotated[list[float], Field(min_length=4, max_length=4)], images: list, rng: np.random.Generator
    ) -> str:
        """Look."""
        return f"{box} {len(images)} {rng.integers(10)}"

    parameters = look.schema["function"]["parameters"]
    assert parameters == {
        "type": "object",
        "properties": {
            "box": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4},
        },
        "required": ["box"],
    }
    known = Given([Image.new("RGB", (2, 2))], rng=np.random.default_rng(3))
    drawn = np.random.default_rng(3).integers(10)
    assert look.run({"box": [1, 2, 3, 4]}, known).parts == (f"[1.0, 2.0, 3.0, 4.0] 1 {drawn}",)
    assert look.run({"box": [1, 2, 3, 4], "images": []}, known).failed, "the model gives what it may not give"


def test_the_decorated_function_is_still_one() -> None:
    assert tool(weigh)("tea", unit="kg") == "tea 1 kg"
    assert tool(tool(weigh)).function is weigh


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, 'argument "thing" is missing; it must be a string'),
        ({"thing": 3}, 'argument "thing" must be a string, not 3'),
        ({"thing": "tea", "weight": 3}, 'no argument "weight"; the arguments are: thing, times, unit'),
        ({"thing": "tea", "times": "3"}, 'argument "times" must be a whole number, not "3"'),
        ({"thing": "tea", "times": 2.5}, 'argument "times" must be a whole number, not 2.5'),
        ({"thing": "tea", "times": True}, 'argument "times" must be a whole number, not true'),
        ({"thing": "tea", "times": None}, 'argument "times" must be a whole number, not null'),
        ({"thing": "tea", "unit": "lb"}, 'argument "unit" must be one of "g", "kg", not "lb"'),
        ({"thing": ["tea"] * 99}, "characters left out"),
    ],
)
def test_wrong_arguments_are_answered(arguments: dict[str, Any], said: str) -> None:
    result = tool(weigh).run(arguments)
    assert result.failed and len(result.parts) == 1
    assert isinstance(result.parts[0], str) and said in result.parts[0] and len(result.parts[0]) < 200


def test_a_list_of_the_wrong_length_is_described() -> None:
    (made,) = open_tools(["crop"], {})
    (said,) = made.run({"box": [0, 0, "a", 1]}).parts
    assert said == 'Error: crop: argument "box" must be a list, each a number, 4 of them, not [0, 0, "a", 1]'


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*"abcdefghijkmnopq", "zz"]), anything, max_size=16))
def test_no_arguments_make_it_raise(arguments: dict[str, Any]) -> None:
    for part in tool(every_type).run(arguments).parts:
        assert isinstance(part, str) and len(part) < 300


def test_what_a_function_raises_is_told_to_the_model_but_for_a_broken_machine() -> None:
    def fails(kind: str) -> str:
        """Fail."""
        raise {"tool": ToolError, "machine": ResourceError, "own": ZeroDivisionError}[kind]("x" * 1000)

    made = tool(fails)
    assert made.run({"kind": "tool"}).parts == (f"Error: fails: {'x' * 1000}",)
    (said,) = made.run({"kind": "own"}).parts
    assert isinstance(said, str) and said.startswith("Error: fails failed: ZeroDivisionError: xxx")
    assert len(said) < 400
    with pytest.raises(ResourceError):
        made.run({"kind": "machine"})


IMAGE = Image.new("RGB", (4, 3), "red")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("text", ("text",)),
        (3, ("3",)),
        (0.5, ("0.5",)),
        (True, ("True",)),
        (None, ("Done.",)),
        ({"é": [1, 2]}, ('{"é": [1, 2]}',)),
        ([1, "a"], ('[1, "a"]',)),
        (IMAGE, (IMAGE,)),
        (("see", IMAGE, {"n": 1}), ("see", IMAGE, '{"n": 1}')),
        ([IMAGE, IMAGE], (IMAGE, IMAGE)),
    ],
)
def test_what_a_tool_may_return(value: Any, parts: tuple[Any, ...]) -> None:
    def give():
        """Give it."""
        return value

    assert tool(give).run({}).parts == parts


def test_a_long_text_is_cut_in_the_middle_and_nonsense_is_an_error() -> None:
    def give(much: bool):
        """Give it."""
        return "a" * MAX_TEXT + "b" * MAX_TEXT if much else object()

    (text,) = tool(give).run({"much": True}).parts
    assert isinstance(text, str) and text[0] == "a" and text[-1] == "b" and len(text) < MAX_TEXT + 100
    assert tool(give).run({"much": False}).failed


def test_images_given_are_copies_and_the_last_one_is_image() -> None:
    @tool
    def paint(image: Image.Image, canvases: list[Canvas]) -> Image.Image:
        """Paint it."""
        image.paste("blue", (0, 0, *image.size))
        return image

    seen = [Image.new("RGB", (2, 2)), Image.new("RGB", (3, 2))]
    (painted,) = paint.run({}, Given(seen)).parts
    assert isinstance(painted, Image.Image) and painted.size == (3, 2)
    assert [image.getpixel((0, 0)) for image in (*seen, painted)] == [(0, 0, 0), (0, 0, 0), (0, 0, 255)]
    assert paint.run({}, Given()).parts == ("Error: paint: there is no image",)


def test_a_declaration_that_cannot_be_a_tool() -> None:
    def undocumented(a: str) -> str:
        return a

    def untyped(a) -> str:
        """Do."""
        return str(a)

    def odd(a: Image.Image) -> str:
        """Do."""
        return str(a)

    def many(*a: str) -> str:
        """Do."""
        return str(a)

    for function, said in [
        (undocumented, "'undocumented' has no docstring"),
        (untyped, r"'untyped', parameter 'a' has no type; write a: str"),
        (odd, "parameter 'a': .*Image.* is not a type that a tool can be given; use str, int"),
        (many, "parameter 'a': a tool's arguments have names"),
    ]:
        with pytest.raises(ConfigError, match=said):
            tool(function)


OWN = '''
class Scales:
    """Scales."""

    note = "Only tea."

    def __init__(self, grams: int = 5) -> None:
        if grams < 0:
            raise TypeError("grams below 0")
        self.grams = grams

    def __call__(self, thing: str) -> int:
        """Weigh something."""
        return self.grams

def weigh(thing: str) -> int:
    """Weigh something."""
    return 7

NUMBER = 3
'''


def test_tools_of_ones_own_by_path(tmp_path: Any) -> None:
    file = tmp_path / "my_tools.py"
    file.write_text(OWN)
    scales, weigh = f"{file}:Scales", f"{file}:weigh"
    first, second, third = open_tools([scales, weigh, "calculator"], {scales: {"grams": 9}})
    assert (first.name, second.name, third.name) == ("scales", "weigh", "calculator")
    assert first.schema["function"]["description"] == "Weigh something. Only tea."
    assert first.run({"thing": "tea"}).parts == ("9",) and second.run({"thing": "tea"}).parts == ("7",)
    for names, options, said in [
        ([scales], {scales: {"pounds": 1}}, "does not take the options .*pounds"),
        ([weigh], {weigh: {"grams": 1}}, "is a function and takes no options"),
        ([weigh], {"crop": {}}, "options of tool 'crop': it is not among"),
        ([weigh, weigh], {}, "two of the tools .* are called 'weigh'"),
        ([f"{file}:NUMBER"], {}, "is not a function and no class"),
        (["calcualtor"], {}, "no tool is named 'calcualtor'; did you mean 'calculator'"),
    ]:
        with pytest.raises(ConfigError, match=said):
            open_tools(names, options)


@pytest.mark.parametrize("name", [name for name in BUILT_IN["tools"] if name not in ("ocr", "python")])
def test_built_in_tools_describe_everything_that_the_model_gives(name: str) -> None:
    (made,) = open_tools([name], {})
    assert isinstance(made, Tool) and made.name == name
    for key, schema in made.schema["function"]["parameters"]["properties"].items():
        assert key not in GIVEN and schema["description"]
