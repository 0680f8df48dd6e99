"""Chains of elementwise operators."""

import torch
import torch.nn.functional as F


def bias_gelu(x: "bf16[tokens, hidden]", bias: "bf16[hidden]"):
    """GELU of a biased activation."""
    return F.gelu(x + bias)


def bias_gelu_tanh(x: "f16[tokens, hidden]", bias: "f16[hidden]"):
    """GELU in its tanh form."""
    return F.gelu(x + bias, approximate="tanh")


def swiglu(gate: "bf16[tokens, hidden]", up: "bf16[tokens, hidden]"):
    """SwiGLU's gate in f32."""
    return (F.silu(gate.float()) * up.float()).to(gate.dtype)


def swiglu_packed(x: "bf16[tokens, both]"):
    """SwiGLU whose halves lie in one tensor."""
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def relu_squared(x: "f32[tokens, hidden]"):
    """Squared ReLU."""
    return F.relu(x).square()


def softcap(x: "bf16[tokens, vocab]"):
    """Logits kept within 30."""
    return (torch.tanh(x.float() / 30.0) * 30.0).to(x.dtype)


def mish(x: "f32[rows, columns]"):
    """x tanh(softplus(x))"""
    return x * torch.tanh(F.softplus(x))


def elu_chain(x: "f32[rows, columns]", y: "f32[rows, columns]"):
    """ELU, a leaky ReLU and a clamp."""
    return torch.clamp(F.elu(x) + F.leaky_relu(y, 0.1), -2.0, 2.0)


def hard_activations(x: "f16[rows, columns]"):
    """Hard sigmoid, hard swish and hard tanh."""
    return F.hardsigmoid(x) + F.hardswish(x) + F.hardtanh(x)


def residual_dropout_free(x: "bf16[tokens, hidden]", residual: "bf16[tokens, hidden]", gamma: "bf16[hidden]"):
    """Layer scale and residual."""
    return residual + x * gamma


def polynomial(x: "f32[n]"):
    """A cubic."""
    return x**3 * 0.044715 + x**2 * 0.5 - x + 1.0


def powers_and_waves(x: "f32[n]", t: "f32[n]"):
    """sin and cos of a phase, and an exponential decay."""
    return torch.sin(x) * torch.exp(-t.abs()) + torch.cos(x) * torch.log1p(t.abs())


def where_mask(x: "bf16[rows, columns]", mask: "bool[rows, columns]"):
    """Masked fill."""
    return x.masked_fill(~mask, 0.0)


def quantise_steps(x: "f32[rows, columns]"):
    """Rounded to steps of an eighth."""
    return torch.round(x * 8.0) / 8.0


def lerp_ema(average: "f32[n]", value: "f32[n]"):
    """An exponential moving average."""
    return torch.lerp(average, value, 0.1)


def int_mix(a: "i32[n]", b: "i32[n]"):
    """Integers mixed."""
    return (a & 255) * 3 + (b % 7) - (a // 5)
