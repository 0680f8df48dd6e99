"""Losses with their gradients, written out or derived; optimizers."""

import torch
import torch.nn.functional as F
from torch.func import grad


def focal_loss(logits: "f32[tokens, classes]", target: "i64[tokens]"):
    """Focal loss."""
    logged = F.log_softmax(logits, -1).gather(1, target[:, None]).squeeze(1)
    return -((1 - logged.exp()) ** 2 * logged).mean()


def smoothed_cross_entropy_gradient(logits: "f32[tokens, classes]", target: "i64[tokens]"):
    """Gradient of a smoothed cross-entropy, derived."""
    return grad(lambda x: F.cross_entropy(x, target, label_smoothing=0.1))(logits)


def layer_norm_gradient(x: "f32[tokens, hidden]", weight: "f32[hidden]", bias: "f32[hidden]", out: "f32[tokens, hidden]"):
    """All gradients of a layer norm, derived."""
    return grad(lambda a, w, b: (F.layer_norm(a, a.shape[-1:], w, b) * out).sum(), argnums=(0, 1, 2))(x, weight, bias)


def gelu_gradient(x: "f32[n]", out: "f32[n]"):
    """Gradient of a GELU, derived."""
    return grad(lambda a: (F.gelu(a) * out).sum())(x)


def swiglu_gradient(gate: "bf16[tokens, hidden]", up: "bf16[tokens, hidden]", out: "bf16[tokens, hidden]"):
    """Both gradients of SwiGLU, by hand."""
    g, u, o = gate.float(), up.float(), out.float()
    s = torch.sigmoid(g)
    return (o * u * s * (1 + g * (1 - s))).to(gate.dtype), (o * g * s).to(gate.dtype)


def max_pool_gradient(x: "f32[batch, 3, 8, 9]", out: "f32[batch, 3, 4, 4]"):
    """Gradient of max pooling, derived."""
    return grad(lambda a: (F.max_pool2d(a, 2) * out).sum())(x)


def conv_gradient(x: "f32[batch, 3, 8, 9]", weight: "f32[4, 3, 3, 3]", out: "f32[batch, 4, 4, 5]"):
    """Gradients of a strided convolution, derived."""
    return grad(lambda a, w: (F.conv2d(a, w, stride=2, padding=1) * out).sum(), argnums=(0, 1))(x, weight)


def embedding_gradient(ids: "i64[tokens]", table: "f32[vocab, hidden]", out: "f32[tokens, hidden]"):
    """Gradient of an embedding, derived."""
    return grad(lambda t: (F.embedding(ids, t) * out).sum())(table)


def triplet(a: "f32[n, dim]", b: "f32[n, dim]", c: "f32[n, dim]"):
    """Mean triplet margin loss."""
    return F.triplet_margin_loss(a, b, c, margin=0.7)


def contrastive(image: "f32[n, dim]", text: "f32[n, dim]", scale: "f32 in {10, 20}"):
    """CLIP's loss: cross-entropy of the similarities both ways."""
    image, text = F.normalize(image, dim=-1), F.normalize(text, dim=-1)
    logits = scale * image @ text.T
    target = torch.arange(image.shape[0])
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def lion(weight: "bf16[n]", grad: "bf16[n]", momentum: "f32[n]", rate: "f32 in 0..0.01"):
    """A step of Lion."""
    g = grad.float()
    update = torch.sign(0.9 * momentum + 0.1 * g)
    return (weight.float() - rate * (update + 0.1 * weight.float())).to(weight.dtype), 0.99 * momentum + 0.01 * g


def adafactor(weight: "f32[rows, columns]", grad: "f32[rows, columns]", row: "f32[rows] in 0.1..2", column: "f32[columns] in 0.1..2"):
    """A step of Adafactor with its factored second moment."""
    square = grad * grad + 1e-30
    row = 0.9 * row + 0.1 * square.mean(1)
    column = 0.9 * column + 0.1 * square.mean(0)
    scale = row[:, None] * column[None, :] / row.mean()
    update = grad * torch.rsqrt(scale)
    return weight - 0.01 * update / torch.clamp(update.square().mean().sqrt(), min=1.0), row, column


def distances(a: "f32[rows, dim]", b: "f32[columns, dim]"):
    """Distances of all pairs, in three norms."""
    return torch.cdist(a, b, p=1.0), torch.cdist(a, b, p=float("inf")), torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def wasserstein(p: "f32[rows, columns] in 0.01..1", q: "f32[rows, columns] in 0.01..1"):
    """Distance of two histograms: of their running sums."""
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    return (p.cumsum(-1) - q.cumsum(-1)).abs().sum(-1)
