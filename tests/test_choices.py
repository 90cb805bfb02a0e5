"""A slower way is never without its reason and its cost, and no process's is lost."""

from __future__ import annotations

import pytest

from vlrl.choices import MachineChoice, merged

FLEX = MachineChoice.as_wanted("attention", "flex", "tried on this GPU")
BLOCKS = MachineChoice("attention", "flex", "blocks", "no C compiler was found", "twice the time")


def test_a_slower_way_says_what_it_is_in_place_of_why_and_at_which_cost() -> None:
    assert str(BLOCKS) == "attention: blocks in place of flex: no C compiler was found (cost: twice the time)"
    assert str(FLEX) == "attention: flex (tried on this GPU)"
    assert BLOCKS.is_slower and not FLEX.is_slower


@pytest.mark.parametrize(("used", "cost"), [("blocks", ""), ("flex", "twice the time")])
def test_a_cost_belongs_to_a_slower_way(used: str, cost: str) -> None:
    with pytest.raises(ValueError, match="attention: a cost belongs to"):
        MachineChoice("attention", "flex", used, "a reason", cost)


def test_what_a_process_chose_unlike_the_first_is_told_under_its_number() -> None:
    optimizer = MachineChoice.as_wanted("optimizer", "fused AdamW", "on the GPU")
    assert merged([[FLEX, optimizer]] * 2, "rank") == [FLEX, optimizer]
    found = merged([[FLEX, optimizer], [FLEX, optimizer], [BLOCKS, optimizer]], "rank")
    assert [(choice.name, choice.used) for choice in found] == [
        ("attention", "flex"),
        ("optimizer", "fused AdamW"),
        ("attention of rank 2", "blocks"),
    ]
