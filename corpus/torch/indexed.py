"""Gathers, scatters, mixtures of experts, optimizers."""

import torch
import torch.nn.functional as F


def embedding(ids: "i64[tokens]", table: "bf16[vocab, hidden]"):
    """Rows of a table."""
    return F.embedding(ids, table)


def embedding_backward(grad: "f32[tokens, hidden]", ids: "i64[tokens]", table: "f32[vocab, hidden]"):
    """The gradient of an embedding."""
    return torch.zeros_like(table).index_add(0, ids, grad)


def scatter_add(x: "f32[rows, columns]", at: "i64[rows, columns]", into: "f32[rows, bins]"):
    """Elements added into bins of their row."""
    return into.scatter_add(1, at, x)


def histogram(values: "i64[n]"):
    """How often each of sixteen values occurs."""
    return F.one_hot(values, 16).sum(0)


def take_last(x: "bf16[batch, length, hidden]", last: "i64[batch]"):
    """One position of each sequence."""
    return x[torch.arange(x.shape[0]), last]


def gather_logprobs(logits: "f32[tokens, vocab]", ids: "i64[tokens]"):
    """Log-probabilities of given tokens."""
    return torch.log_softmax(logits, -1).gather(-1, ids[:, None]).squeeze(-1)


def moe_weighted(x: "bf16[tokens, hidden]", w: "bf16[experts, width, hidden]", expert: "i64[tokens]", weight: "f32[tokens]"):
    """Each token through the expert that it was given."""
    chosen = w[expert]
    return (torch.einsum("th,twh->tw", x.float(), chosen.float()) * weight[:, None]).to(x.dtype)


def moe_combine(y: "bf16[tokens, 2, hidden]", weight: "f32[tokens, 2]"):
    """Two experts' outputs, weighted."""
    return (y.float() * weight[..., None]).sum(1).to(y.dtype)


def graph_aggregate(x: "f32[nodes, hidden]", source: "i64[edges]", target: "i64[edges]"):
    """Sums over incoming edges."""
    return torch.zeros_like(x).index_add(0, target, x[source])


def sgd_momentum(weight: "f32[n]", grad: "f32[n]", momentum: "f32[n]"):
    """A step of SGD with momentum."""
    momentum = 0.9 * momentum + grad
    return weight - 0.1 * momentum, momentum


def adamw(weight: "f32[n]", grad: "f32[n]", first: "f32[n]", second: "f32[n]"):
    """A step of AdamW; the second moment is what it is after the square of the gradient."""
    first = 0.9 * first + 0.1 * grad
    second = 0.999 * second.abs() + 0.001 * grad * grad
    update = first / 0.1 / (torch.sqrt(second / 0.001) + 1e-8)
    return weight * (1 - 0.01 * 0.1) - 0.001 * update, first, second


def selective_state(x: "f32[batch, 6, channels]", decay: "f32[batch, 6, channels]"):
    """A recurrence of six steps."""
    state = torch.zeros_like(x[:, 0])
    states = []
    for step in range(6):
        state = torch.sigmoid(decay[:, step]) * state + x[:, step]
        states.append(state)
    return torch.stack(states, dim=1)


def triangular(x: "f32[n, n]"):
    """The lower triangle, and the upper one negated."""
    return torch.tril(x) - torch.triu(x, 1)


def pad_and_shift(x: "f32[rows, columns]"):
    """Each row shifted by one, with zeros."""
    return F.pad(x, (1, 0))[:, :-1] + x


def write_slice(cache: "f32[rows, columns]", new: "f32[rows, 4]"):
    """New columns at the front of a cache."""
    out = cache.clone()
    out[:, :4] = new
    return out


def fp8_scaled(x: "bf16[rows, 32]"):
    """Rounded to e4m3 with a scale a row, and back."""
    scale = x.float().abs().amax(-1, keepdim=True).clamp_min(1e-6) / 448.0
    return (x.float() / scale).to(torch.float8_e4m3fn).to(torch.float32) * scale


def moe_route(x: "bf16[tokens, hidden]", gate: "bf16[experts, hidden]"):
    """The two best experts of each token, and their shares."""
    scores = F.linear(x.float(), gate.float())
    best, which = torch.topk(scores, 2, dim=-1)
    return torch.softmax(best, dim=-1), which


def greedy_token(hidden: "bf16[tokens, width]", head: "bf16[vocab, width]"):
    """The most likely token."""
    return F.linear(hidden, head).argmax(-1)


def append_in_place(cache: "f32[slots, hidden]", new: "f32[slots, hidden]"):
    """A cache that is written to."""
    cache.mul_(0.9).add_(new)
    return cache.sum(-1)


def quantise_int8(x: "f32[rows, columns]", scale: "f32[rows]"):
    """Whole numbers of 8 bits."""
    return torch.clamp(torch.round(x / (scale.abs()[:, None] + 0.1)), -128, 127).to(torch.int8)
