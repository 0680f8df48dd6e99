"""A problem in KernelBench's form."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer, batch normalisation and a scale."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)
        self.scale = nn.Parameter(torch.ones(1) * 1.5)

    def forward(self, x):
        return torch.sigmoid(self.norm(self.gemm(x)) * self.scale)


batch_size = 24
in_features = 40
out_features = 56


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
