"""More losses, gradients and optimizers: written before the importer could be tried on them."""

import torch
import torch.nn.functional as F
from torch.func import grad, vmap


def rms_norm_gradient(x: "bf16[tokens, hidden]", weight: "bf16[hidden]", out: "bf16[tokens, hidden]"):
    """Gradients of an RMS norm, derived in f32."""
    def loss(a, w):
        return (a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-6) * w * out.float()).sum()
    a, b = grad(loss, argnums=(0, 1))(x.float(), weight.float())
    return a.to(x.dtype), b.to(x.dtype)


def attention_gradient(q: "f32[heads, length, dim]", k: "f32[heads, length, dim]", v: "f32[heads, length, dim]", out: "f32[heads, length, dim]"):
    """Gradients of attention, derived."""
    def loss(a, b, c):
        return (torch.softmax(a @ b.transpose(-1, -2) * 0.5, -1) @ c * out).sum()
    return grad(loss, argnums=(0, 1, 2))(q, k, v)


def group_norm_gradient(x: "f32[batch, 6, 5, 4]", weight: "f32[6]", bias: "f32[6]", out: "f32[batch, 6, 5, 4]"):
    """Gradient of a group norm, derived."""
    return grad(lambda a: (F.group_norm(a, 3, weight, bias) * out).sum())(x)


def ctc_like(logits: "f32[steps, classes]"):
    """Log-probabilities of staying at a class throughout."""
    return torch.log_softmax(logits, -1).sum(0).logsumexp(0)


def poisson_and_gaussian(x: "f32[n]", target: "f32[n] in 0..4", variance: "f32[n] in 0.1..2"):
    """Two likelihoods; torch's own gaussian_nll_loss looks at values, to refuse negative variances."""
    return F.poisson_nll_loss(x, target), 0.5 * (torch.log(variance) + (x - target) ** 2 / variance).mean()


def multi_margin(x: "f32[tokens, classes]", target: "i64[tokens]"):
    """Mean multi-class margin loss."""
    return F.multi_margin_loss(x, target)


def bce_weighted(x: "f32[rows, columns]", target: "f32[rows, columns] in 0..1", weight: "f32[columns] in 0.5..2"):
    """Binary cross-entropy with logits and positive weights, and its gradient."""
    loss = lambda a: F.binary_cross_entropy_with_logits(a, target, pos_weight=weight)  # noqa: E731
    return loss(x), grad(loss)(x)


def dice(p: "f32[batch, 2, 6, 5] in 0..1", target: "i64[batch, 6, 5]"):
    """Mean soft dice loss."""
    wanted = F.one_hot(target, 2).permute(0, 3, 1, 2).to(p.dtype)
    both, all_of = (p * wanted).sum((2, 3)), (p + wanted).sum((2, 3))
    return 1 - ((2 * both + 1) / (all_of + 1)).mean()


def rmsprop(weight: "f32[n]", grad: "f32[n]", square: "f32[n] in 0..2", momentum: "f32[n]", rate: "f32 in 0..0.1"):
    """A step of RMSprop with momentum, in place."""
    square.mul_(0.99).addcmul_(grad, grad, value=0.01)
    momentum.mul_(0.9).addcdiv_(grad, square.sqrt() + 1e-8)
    return weight - rate * momentum


def clipped_update(weight: "bf16[rows, columns]", grad: "bf16[rows, columns]"):
    """Gradients clipped by their norm, then a step."""
    g = grad.float()
    return (weight.float() - 0.1 * g * torch.clamp(1.0 / (g.norm() + 1e-6), max=1.0)).to(weight.dtype)


def per_row_gradient(x: "f32[rows, dim]", weight: "f32[dim]", target: "f32[rows]"):
    """Gradient of each row's own loss."""
    loss = lambda w, a, t: (torch.tanh(a @ w) - t) ** 2  # noqa: E731
    return vmap(grad(loss), in_dims=(None, 0, 0))(weight, x, target)


def muon_step(g: "f32[8, columns]"):
    """Newton and Schulz's iteration towards an orthogonal matrix."""
    x = g / (g.norm() + 1e-7)
    for _ in range(2):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x
