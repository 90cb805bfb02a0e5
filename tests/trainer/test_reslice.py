"""Slices of any number of ranks are cut again for any other; DeepSpeed's own files: e2e/test_elastic."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.errors import EngineError
from vlrl.trainer.state.reslice import SavedRanks, count_ranks, cut_state, places_of

KINDS = ("fp32", "exp_avg", "exp_avg_sq")
Group = list[tuple[str, int]]


def values(name: str, kind: str, size: int) -> np.ndarray[Any, Any]:
    """A whole parameter's numbers of one kind, none of them zero."""
    seed = sum(map(ord, name + kind))
    return np.random.default_rng(seed).uniform(1, 2, size).astype(np.float32)


def in_groups(sizes: list[int], num_ranks: int, most: int) -> list[Group]:
    """(name, whole size) by flat group; a group is full when a rank's slices reach `most` elements."""
    groups: list[Group] = [[]]
    for number, size in enumerate(sizes):
        if sum(-(-n // num_ranks) for _, n in groups[-1]) >= most:
            groups.append([])
        groups[-1].append((f"layer.{number}", size))
    return groups


def flat(group: Group, kind: str, rank: int, num_ranks: int) -> torch.Tensor:
    """The rank's slices side by side: whole parameters padded, cut in equal rows, one row taken."""
    rows = []
    for name, size in group:
        padded = np.zeros(-(-size // num_ranks) * num_ranks, np.float32)
        padded[:size] = values(name, kind, size)
        rows.append(padded.reshape(num_ranks, -1)[rank])
    return torch.from_numpy(np.concatenate(rows))


def state(groups: list[Group], rank: int, num_ranks: int) -> dict[str, Any]:
    """A rank's optimizer state, as DeepSpeed 0.19 writes it."""
    return {
        "loss_scaler": None,
        "dynamic_loss_scale": False,
        "overflow": False,
        "fp32_flat_groups": [flat(group, "fp32", rank, num_ranks) for group in groups],
        "optimizer_state_dict": {
            "state": {
                number: {
                    "step": torch.tensor(7.0),
                    **{kind: flat(group, kind, rank, num_ranks) for kind in KINDS[1:]},
                }
                for number, group in enumerate(groups)
            },
            "param_groups": [{"lr": 0.1, "params": list(range(len(groups)))}],
        },
    }


def write(folder: Path, groups: list[Group], num_ranks: int, prefix: str = "") -> Path:
    shapes = [{name: torch.Size([size]) for name, size in group} for group in groups]
    for rank in range(num_ranks):
        optimizer = {"optimizer_state_dict": state(groups, rank, num_ranks)}
        torch.save(optimizer, folder / f"{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
        model = {"param_shapes": shapes, "rng": rank}
        torch.save(model, folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
    return folder


def slices(groups: list[Group], num_ranks: int) -> list[Group]:
    """Name and elements of one rank's slice, by group."""
    return [[(name, -(-size // num_ranks)) for name, size in group] for group in groups]


def assert_same(found: Any, expected: Any) -> None:
    """Equal to the last bit, tensors too."""
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for key in found:
            assert_same(found[key], expected[key])
    elif isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif torch.is_tensor(found):
        assert torch.equal(found, expected)
    else:
        assert found == expected


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    before=st.integers(1, 5),
    after=st.integers(1, 5),
    most_before=st.sampled_from([1, 10, 1000]),
    most_after=st.sampled_from([1, 10, 1000]),
    prefix=st.sampled_from(["", "bf16_"]),
)
def test_every_rank_gets_what_it_would_have_written_itself(
    sizes: list[int], before: int, after: int, most_before: int, most_after: int, prefix: str
) -> None:
    """Also a rank past the end of a small parameter, and groups that hold other parameters than before."""
    groups = in_groups(sizes, after, most_after)
    with TemporaryDirectory() as name:
        saved = SavedRanks(write(Path(name), in_groups(sizes, before, most_before), before, prefix))
        assert saved.num_ranks == before
        for rank in range(after):
            assert_same(cut_state(saved, slices(groups, after), rank), state(groups, rank, after))


def test_a_parameter_that_the_checkpoint_has_not_is_named(tmp_path: Path) -> None:
    groups = in_groups([4, 6], 2, 1000)
    saved = SavedRanks(write(tmp_path, groups, 2))
    with pytest.raises(EngineError, match=r"other is trained, and there is no state of it .* lora\.targets"):
        cut_state(saved, [[("other", 4)]], 0)


def test_states_that_are_no_number_a_weight_cannot_be_cut(tmp_path: Path) -> None:
    """Moments in 8 bit: blocks of them share a scale."""
    groups = in_groups([512], 2, 1000)
    write(tmp_path, groups, 2)
    file = tmp_path / "zero_pp_rank_0_mp_rank_00_optim_states.pt"
    content = torch.load(file, weights_only=False)
    inner = content["optimizer_state_dict"]["optimizer_state_dict"]["state"][0]
    inner["state1"] = inner.pop("exp_avg").to(torch.uint8)
    torch.save(content, file)
    with pytest.raises(EngineError, match=r"state1 .* cannot be cut .* set trainer\.num_ranks=2"):
        cut_state(SavedRanks(tmp_path), slices(groups, 4), 0)


def test_a_folder_without_states_is_an_error(tmp_path: Path) -> None:
    assert count_ranks(tmp_path) == 0
    with pytest.raises(EngineError, match=f"no trainer state under {tmp_path}"):
        SavedRanks(tmp_path)


PARAMETERS = [("a", 6), ("b", 8)]
"""On two ranks slices of 3 and 4 elements."""


@pytest.mark.parametrize(("group_sizes", "found"), [([7], [(0, 0), (0, 3)]), ([3, 4], [(0, 0), (1, 0)])])
def test_a_parameter_s_place_follows_from_those_before_it(
    group_sizes: list[int], found: list[tuple[int, int]]
) -> None:
    places = places_of(PARAMETERS, 2, group_sizes).values()
    assert [(place.group, place.offset) for place in places] == found
    assert [place.length for place in places] == [3, 4]


@pytest.mark.parametrize("group_sizes", [[5], [4, 3], []])
def test_groups_that_are_not_made_of_the_parameters_are_refused(group_sizes: list[int]) -> None:
    with pytest.raises(EngineError, match="does not lie where DeepSpeed puts it"):
        places_of(PARAMETERS, 2, group_sizes)
