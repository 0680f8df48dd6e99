"""Samples, losses of preferences and policies, assignments."""

import torch
import torch.nn.functional as F


def sinkhorn(scores: "f32[rows, columns]"):
    """Three rounds of normalising rows and columns in logarithms."""
    for _ in range(3):
        scores = scores - torch.logsumexp(scores, 1, keepdim=True)
        scores = scores - torch.logsumexp(scores, 0, keepdim=True)
    return scores.exp()


def gumbel_scores(logits: "f32[rows, columns]", uniform: "f32[rows, columns] in 0.01..0.99", tau: "f32 in {0.5, 1.0}"):
    """A relaxed sample, its noise given."""
    return torch.softmax((logits - torch.log(-torch.log(uniform))) / tau, -1)


def entropy_and_confidence(logits: "bf16[rows, columns]"):
    """Entropy of each row, and the margin between its two largest probabilities."""
    p = torch.softmax(logits.float(), -1)
    best = torch.topk(p, 2, dim=-1).values
    return -(p * torch.log(p.clamp_min(1e-12))).sum(-1), best[:, 0] - best[:, 1]


def z_loss(logits: "f32[tokens, experts]"):
    """Router z-loss and balance loss of soft assignments."""
    z = torch.logsumexp(logits, -1).square().mean()
    p = torch.softmax(logits, -1).mean(0)
    return z, (p * p).sum() * logits.shape[1]


def ppo_loss(new: "f32[n]", old: "f32[n]", advantage: "f32[n]"):
    """Clipped surrogate objective."""
    ratio = torch.exp(new - old)
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


def dpo(pc: "f32[n]", pr: "f32[n]", rc: "f32[n]", rr: "f32[n]"):
    """Direct preference optimisation."""
    return -F.logsigmoid(0.1 * ((pc - pr) - (rc - rr))).mean()


def kmeans_step(x: "f32[n, dim]", label: "i64[n] in 0..4", like: "f32[5, dim]"):
    """New centres: means of their members, old ones where there are none."""
    total = torch.zeros_like(like).index_add(0, label, x)
    count = torch.zeros(5).index_add(0, label, torch.ones(x.shape[0]))
    return torch.where(count[:, None] > 0, total / count.clamp(min=1)[:, None], like)


def ctc_collapse_mask(ids: "i64[batch, time]"):
    """Which labels stay after repeats and blanks are taken out."""
    before = torch.cat([torch.full_like(ids[:, :1], -1), ids[:, :-1]], 1)
    keep = (ids != before) & (ids != 0)
    return keep, keep.cumsum(1)


def grn(x: "f32[batch, high, wide, channels]", gamma: "f32[channels]", beta: "f32[channels]"):
    """Global response normalisation."""
    g = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
    n = g / (g.mean(dim=-1, keepdim=True) + 1e-6)
    return gamma * (x * n) + beta + x
