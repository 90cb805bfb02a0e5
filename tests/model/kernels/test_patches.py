"""Patches multiplied by the weights of a convolution are what it makes of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from vlrl.model.kernels import patches


def results(convolution: nn.Module, inputs: torch.Tensor) -> list[torch.Tensor]:
    inputs = inputs.clone().requires_grad_()
    output = convolution(inputs)
    weights = [inputs, *convolution.parameters()]
    return [output.detach(), *torch.autograd.grad(output.sin().sum(), weights)]


@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv3d(3, 16, (2, 14, 14), stride=(2, 14, 14), bias=False),
        nn.Conv3d(3, 8, (2, 4, 4), stride=(2, 4, 4)),
        nn.Conv2d(3, 8, 4, stride=4),
    ],
)
def test_outputs_and_gradients_are_the_convolution_s(convolution: nn.Conv2d | nn.Conv3d) -> None:
    inputs = torch.randn(5, 3, *convolution.kernel_size)
    expected = results(convolution, inputs)
    patches.install(nn.Sequential(convolution))
    assert convolution.forward.__func__ is patches._forward  # type: ignore[attr-defined]
    for ours, theirs in zip(results(convolution, inputs), expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_whole_image_goes_through_the_convolution() -> None:
    convolution = nn.Conv2d(3, 8, 4, stride=4)
    image = torch.randn(1, 3, 12, 8)
    expected = convolution(image)
    patches.install(nn.Sequential(convolution))
    assert torch.equal(convolution(image), expected)


@pytest.mark.parametrize(
    "options", [{"stride": 2}, {"stride": 4, "padding": 1}, {"stride": 4, "padding": "valid"}]
)
def test_other_convolutions_are_left_alone(options: dict[str, object]) -> None:
    convolution = nn.Conv2d(3, 8, 4, **options)  # type: ignore[arg-type]
    patches.install(nn.Sequential(convolution))
    assert "forward" not in vars(convolution)
