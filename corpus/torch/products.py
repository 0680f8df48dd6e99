"""Matrix products with what surrounds them, convolutions, pooling."""

import torch
import torch.nn.functional as F


def linear_relu(x: "bf16[tokens, hidden]", weight: "bf16[features, hidden]", bias: "bf16[features]"):
    """A linear layer and its activation."""
    return F.relu(F.linear(x, weight, bias))


def batched_product(a: "f16[batch, m, k]", b: "f16[batch, k, n]"):
    """A product a batch."""
    return torch.bmm(a, b)


def product_transposed(a: "f32[k, m]", b: "f32[n, k]"):
    """A^T B^T"""
    return a.T @ b.T


def matrix_vector(a: "f32[m, k]", x: "f32[k]"):
    """A x"""
    return a @ x


def mlp(x: "bf16[tokens, hidden]", up: "bf16[inner, hidden]", gate: "bf16[inner, hidden]", down: "bf16[hidden, inner]"):
    """A gated feed-forward block."""
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def low_rank(x: "bf16[tokens, hidden]", weight: "bf16[features, hidden]", a: "bf16[rank, hidden]", b: "bf16[features, rank]"):
    """A linear layer with a low-rank update."""
    return F.linear(x, weight) + F.linear(F.linear(x, a), b) * 0.5


def int8_product(a: "i8[m, k]", b: "i8[k, n]", scale_a: "f32[m]", scale_b: "f32[n]"):
    """A product of 8-bit integers, scaled by row and column."""
    total = a.to(torch.int32)[:, :, None] * b.to(torch.int32)[None, :, :]
    return total.sum(1).to(torch.float32) * scale_a[:, None] * scale_b[None, :]


def dequantised_product(x: "bf16[m, k]", weight: "i8[n, k]", scale: "f32[n]"):
    """A product with weights of 8 bits and a scale a row."""
    return F.linear(x, (weight.to(torch.float32) * scale[:, None]).to(x.dtype))


def block_scaled_product(a: "f32[m, 64]", b: "f32[n, 64]", scale: "f32[n, 2]"):
    """Blocks of 32 weights share a scale."""
    wide = b * scale.repeat_interleave(32, dim=1)
    return a @ wide.T


def product_row_max(a: "f32[m, k]", b: "f32[n, k]"):
    """The largest similarity of each row."""
    return (a @ b.T).amax(-1)


def outer_sum(a: "f32[m]", b: "f32[n]"):
    """All sums of two vectors."""
    return a[:, None] + b[None, :]


def conv2d_bias_relu(x: "f32[batch, 6, 12, 14]", weight: "f32[8, 6, 3, 3]", bias: "f32[8]"):
    """A convolution and its activation."""
    return F.relu(F.conv2d(x, weight, bias, padding=1))


def conv2d_strided(x: "f32[batch, 6, 15, 13]", weight: "f32[8, 3, 3, 3]"):
    """A strided, dilated, grouped convolution."""
    return F.conv2d(x, weight, stride=2, padding=2, dilation=2, groups=2)


def depthwise_causal(x: "bf16[batch, channels, length]", weight: "bf16[channels, 1, 4]"):
    """A causal depthwise convolution and SiLU, as state-space models have it."""
    padded = F.pad(x, (3, 0))
    return F.silu(F.conv1d(padded, weight, groups=weight.shape[0]))


def conv_transposed(x: "f32[batch, 4, 7, 5]", weight: "f32[4, 6, 3, 3]"):
    """A transposed convolution."""
    return F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1)


def max_pool(x: "f32[batch, channels, 16, 18]"):
    """Max pooling."""
    return F.max_pool2d(x, 3, stride=2, padding=1)


def avg_pool(x: "f32[batch, channels, 16, 18]"):
    """Average pooling, padding counted."""
    return F.avg_pool2d(x, 3, stride=2, padding=1)


def global_pool(x: "f32[batch, channels, height, width]"):
    """The mean of each channel."""
    return F.adaptive_avg_pool2d(x, 1)


def bilinear_twice(x: "f32[batch, channels, 6, 7]"):
    """Twice the size, bilinear."""
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
