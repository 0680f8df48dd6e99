"""Softmax, losses, reductions, scans and orders along rows."""

import torch
import torch.nn.functional as F


def softmax(x: "bf16[rows, columns]"):
    """Softmax of each row."""
    return torch.softmax(x, dim=-1)


def softmax_middle(x: "f32[batch, channels, width]"):
    """Softmax over a middle axis."""
    return torch.softmax(x, dim=1)


def log_softmax(x: "f32[rows, columns]"):
    """Log-softmax of each row."""
    return F.log_softmax(x, dim=-1)


def logsumexp(x: "f32[rows, columns]"):
    """log(sum(exp(x))) of each row."""
    return torch.logsumexp(x, dim=-1)


def masked_softmax(x: "f32[rows, columns]", mask: "bool[rows, columns]"):
    """Softmax over what a mask leaves, of which the first column always is."""
    first = torch.arange(x.shape[1]) == 0
    return torch.softmax(x.masked_fill(~(mask | first), float("-inf")), dim=-1)


def cross_entropy(logits: "bf16[tokens, vocab]", target: "i64[tokens]"):
    """Mean cross-entropy, in f32."""
    return F.cross_entropy(logits.float(), target)


def cross_entropy_each(logits: "f32[tokens, vocab]", target: "i64[tokens]"):
    """Cross-entropy of each token."""
    return F.cross_entropy(logits, target, reduction="none")


def cross_entropy_backward(logits: "f32[tokens, vocab]", target: "i64[tokens]"):
    """The gradient of the mean cross-entropy."""
    p = torch.softmax(logits, dim=-1)
    return (p - F.one_hot(target, logits.shape[-1]).to(p.dtype)) / logits.shape[0]


def mse(x: "f32[rows, columns]", y: "f32[rows, columns]"):
    """Mean squared error."""
    return F.mse_loss(x, y)


def huber(x: "f32[n]", y: "f32[n]"):
    """Mean Huber loss."""
    return F.huber_loss(x, y)


def kl_divergence(p: "f32[rows, columns]", q: "f32[rows, columns]"):
    """KL divergence of two softmaxes, summed."""
    a, b = F.log_softmax(p, -1), F.log_softmax(q, -1)
    return (a.exp() * (a - b)).sum()


def hinge(x: "f32[n]", y: "f32[n]"):
    """Mean hinge loss."""
    return torch.mean(torch.clamp(1 - x * y, min=0))


def cosine_similarity(x: "f32[rows, columns]", y: "f32[rows, columns]"):
    """Cosine of each pair of rows."""
    dot = (x * y).sum(-1)
    return dot / (x.norm(dim=-1) * y.norm(dim=-1)).clamp_min(1e-8)


def row_extremes(x: "f32[rows, columns]"):
    """Largest, smallest, and where the largest is."""
    return x.amax(-1), x.amin(-1), x.argmax(-1)


def cumsum(x: "f32[rows, columns]"):
    """Running sums."""
    return torch.cumsum(x, dim=-1)


def reverse_cumsum(x: "f32[rows, columns]"):
    """Running sums from the end."""
    return torch.flip(torch.cumsum(torch.flip(x, [-1]), dim=-1), [-1])


def masked_cumsum(x: "f32[rows, columns]", mask: "bool[rows, columns]"):
    """Running sums of what a mask leaves."""
    return torch.cumsum(x * mask, dim=-1)


def exclusive_cumprod(x: "f32[rows, columns]"):
    """Products of what comes before."""
    ones = torch.ones_like(x[:, :1])
    return torch.cumprod(torch.cat([ones, x[:, :-1]], dim=-1), dim=-1)


def sort_rows(x: "f32[rows, columns]"):
    """Sorted rows."""
    return torch.sort(x, dim=-1).values


def top_values(x: "f32[rows, 16]"):
    """The four largest of each row."""
    return torch.topk(x, 4, dim=-1).values


def variance(x: "f32[rows, columns]"):
    """Unbiased variance of each row."""
    return x.var(-1)


def product(x: "f32[rows, 8]"):
    """Products of rows."""
    return torch.prod(x, dim=-1)
