"""A problem in KernelBench's form."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution, group normalisation, pooling and a clamp."""

    def __init__(self, in_channels, out_channels, kernel_size, groups):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(groups, out_channels)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return torch.clamp(self.pool(self.norm(self.conv(x))), 0.0, 1.0)


batch_size = 2
in_channels = 3
out_channels = 16
height, width = 14, 18


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, 3, 4]
