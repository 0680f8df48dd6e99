"""Fourier transforms."""

import torch


def spectrum(x: "f32[rows, length]"):
    """The power spectrum of each row."""
    z = torch.view_as_real(torch.fft.rfft(x))
    return (z * z).sum(-1)


def fft_convolution(x: "f32[rows, length]", kernel: "f32[length]"):
    """A circular convolution by way of the spectrum."""
    return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(kernel), n=x.shape[-1])


def transform_2d(x: "f32[rows, columns]"):
    """Real and imaginary parts of a transform of both axes."""
    return torch.view_as_real(torch.fft.rfft2(x, norm="ortho"))
