"""More windows, norms and resampling; these were written before the importer could be tried on them."""

import torch
import torch.nn.functional as F


def depthwise_separable(x: "f32[batch, 6, 9, 10]", deep: "f32[6, 1, 3, 3]", point: "f32[8, 6, 1, 1]"):
    """A depthwise and a pointwise convolution with ReLU6 between."""
    return F.conv2d(F.relu6(F.conv2d(x, deep, padding=1, groups=6)), point)


def conv_divide_max(x: "f32[batch, 3, 6, 8, 8]", weight: "f32[4, 3, 2, 2, 2]", bias: "f32[4, 1, 1, 1]"):
    """Convolution, division, max pool, global mean, bias, sum."""
    y = F.max_pool3d(F.conv3d(x, weight) / 2.5, 2)
    return (F.adaptive_avg_pool3d(y, 1) + bias).sum(1)


def transposed_1d(x: "f32[batch, 4, 13]", weight: "f32[4, 5, 4]"):
    """A transposed convolution of rows."""
    return F.conv_transpose1d(x, weight, stride=3, padding=2, output_padding=1)


def transposed_3d_softmax(x: "f32[batch, 2, 4, 4, 5]", weight: "f32[2, 4, 3, 3, 3]"):
    """A transposed convolution of volumes, softmax over channels, sigmoid."""
    return torch.sigmoid(torch.softmax(F.conv_transpose3d(x, weight, stride=2, padding=1), dim=1))


def lp_pool(x: "f32[batch, channels, 10, 12]"):
    """Pooling by root mean squares."""
    return F.lp_pool2d(x, 2.0, 3, stride=2)


def local_response(x: "f32[batch, 8, 5, 6]"):
    """Local response normalisation."""
    return F.local_response_norm(x, 5)


def trilinear(x: "f32[batch, 2, 3, 4, 5]"):
    """Volumes resampled."""
    return F.interpolate(x, size=(5, 6, 7), mode="trilinear", align_corners=True)


def area_down(x: "f32[batch, 3, 12, 15]"):
    """An image made smaller, by areas."""
    return F.interpolate(x, size=(4, 5), mode="area")


def affine_image(x: "f32[batch, 2, 6, 7]", theta: "f32[batch, 2, 3]"):
    """An image under an affine map, its border repeated."""
    grid = F.affine_grid(theta * 0.3, (x.shape[0], 2, 5, 5), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def circular_filter(x: "f32[batch, 1, 30]", taps: "f32[1, 1, 5]"):
    """A filter that goes round."""
    return F.conv1d(F.pad(x, (2, 2), mode="circular"), taps)


def spectral_power(x: "f32[batch, 64]", window: "f32[16]"):
    """Power of windowed frames."""
    frames = x.unfold(-1, 16, 8) * window
    return torch.fft.rfft(frames, dim=-1).abs().square()


def weight_standardised(x: "f32[batch, 4, 7, 7]", weight: "f32[6, 4, 3, 3]"):
    """A convolution whose weights are standardised."""
    mean = weight.mean(dim=(1, 2, 3), keepdim=True)
    deviation = weight.std(dim=(1, 2, 3), keepdim=True)
    return F.conv2d(x, (weight - mean) / (deviation + 1e-5))


def squeeze_excite(x: "f32[batch, 8, 5, 6]", down: "f32[4, 8]", up: "f32[8, 4]"):
    """Channels weighed by what they hold."""
    scale = torch.sigmoid(F.relu(x.mean((2, 3)) @ down.T) @ up.T)
    return x * scale[:, :, None, None]


def angles(y: "f32[n]", x: "f32[n]"):
    """Angles, and inverse hyperbolic functions of them."""
    a = torch.atan2(y, x)
    return a, torch.asinh(a) + torch.acos(torch.tanh(a)) + torch.atanh(0.9 * torch.tanh(a))
