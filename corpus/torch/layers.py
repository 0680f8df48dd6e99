"""Convolutions, pooling, interpolation and what stands behind them, in the manner of KernelBench's levels 1 and 2."""

import torch
import torch.nn.functional as F


def conv3d_group_mean(x: "f32[batch, 4, 6, 7, 8]", weight: "f32[6, 4, 3, 3, 3]", bias: "f32[6]", scale: "f32[6]"):
    """A convolution in three dimensions, hard swish, a group norm, and the mean of each channel."""
    y = F.hardswish(F.conv3d(x, weight, bias, padding=1))
    return F.group_norm(y, 3, scale).mean(dim=(2, 3, 4))


def transposed_dilated(x: "f32[batch, 4, 6, 5]", weight: "f32[4, 3, 3, 3]", bias: "f32[6]"):
    """A grouped, dilated, transposed convolution with its bias and GELU."""
    return F.gelu(F.conv_transpose2d(x, weight, bias, stride=2, padding=1, dilation=2, groups=2))


def conv1d_dilated(x: "f32[batch, 6, 40]", weight: "f32[4, 6, 3]"):
    """A dilated, strided convolution of one dimension."""
    return F.conv1d(x, weight, stride=3, dilation=4)


def pool_ceiling(x: "f32[batch, channels, 11, 13]"):
    """Pooling that keeps incomplete windows: largest elements, and means that do not count padding."""
    return F.max_pool2d(x, 3, stride=2, ceil_mode=True), F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)


def max_pool_1d_dilated(x: "f32[batch, channels, 30]"):
    """Dilated max pooling of rows."""
    return F.max_pool1d(x, 4, stride=2, padding=1, dilation=2)


def adaptive_rows(x: "f32[batch, channels, 23]"):
    """Means of seven parts of each row."""
    return F.adaptive_avg_pool1d(x, 7)


def largest_of_parts(x: "f32[batch, channels, 12, 9]"):
    """The largest element of each of 4 x 3 parts."""
    return F.adaptive_max_pool2d(x, (4, 3))


def nearest_three_times(x: "f32[batch, channels, 5, 6]"):
    """Three times the size, nearest."""
    return F.interpolate(x, scale_factor=3.0, mode="nearest")


def bilinear_corners(x: "f32[batch, channels, 6, 7]"):
    """Bilinear to 11 x 9, corners aligned."""
    return F.interpolate(x, size=(11, 9), mode="bilinear", align_corners=True)


def bicubic_twice(x: "f32[batch, channels, 6, 5]"):
    """Twice the size, bicubic."""
    return F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)


def linear_rows(x: "f32[batch, channels, 9]"):
    """Rows of 9 drawn out to 20."""
    return F.interpolate(x, size=20, mode="linear", align_corners=False)


def reflected_blur(x: "f32[batch, 3, 10, 12]"):
    """A box blur of an image that is mirrored at its edges."""
    padded = F.pad(x, (2, 2, 1, 1), mode="reflect")
    return F.avg_pool2d(padded, (3, 5), stride=1)


def replicated_gradient(x: "f32[batch, 1, 9, 11]"):
    """Size of the gradient of an image that goes on as it ends."""
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    dx = padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]
    dy = padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]
    return torch.sqrt(dx * dx + dy * dy + 1e-6)


def unfolded_attention(x: "f32[batch, 4, 8, 9]"):
    """Products of each pixel with its neighbours."""
    patches = F.unfold(x, 3, padding=1).reshape(x.shape[0], 4, 9, 72)
    return (patches * x.reshape(x.shape[0], 4, 1, 72)).sum(1)


def folded(patches: "f32[batch, 36, 20]"):
    """Overlapping patches added up."""
    return F.fold(patches, (6, 7), (3, 3), stride=1)


def shuffle_pixels(x: "f32[batch, 12, 5, 4]", bias: "f32[3]"):
    """Channels to pixels, and a bias."""
    return F.pixel_shuffle(x, 2) + bias[None, :, None, None]


def sampled(x: "f32[batch, 3, 7, 8]", grid: "f32[batch, 5, 6, 2] in -0.95..0.95"):
    """An image at given places, bilinear."""
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def batch_norm_training(x: "f32[batch, 5, 6, 7]", weight: "f32[5]", bias: "f32[5]"):
    """Batch norm by the batch's own statistics, and a leaky ReLU."""
    return F.leaky_relu(F.batch_norm(x, None, None, weight, bias, training=True), 0.2)
