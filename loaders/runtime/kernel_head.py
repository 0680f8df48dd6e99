from __future__ import annotations

import ctypes
import hashlib
import itertools
import logging
import math
import operator
import pathlib
import random
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


class Refused(ValueError):
    """A call that the kernel's certificate does not cover, or that cannot be made here."""

    def __init__(self, message: str, cure: str = "") -> None:
        super().__init__(f"{message}\n  fix: {cure}" if cure else message)
        self.cure = cure


# ---------------------------------------------------------------- what is said of the kernel below


@dataclass(frozen=True)
class Axis:
    """An extent. The op allows low to high; the judge ran shapes as long as `whole`, some blocks of
    shapes as long as `in_slices`, and the ends of shapes as long as `at_ends`."""

    name: str
    low: int
    high: int
    whole: int
    in_slices: int
    at_ends: int

    @property
    def tried(self) -> int:
        """The longest that the judge saw, each axis by itself."""
        return max(self.whole, self.in_slices, self.at_ends)


@dataclass(frozen=True)
class Tensor:
    """A packed tensor on the GPU."""

    name: str
    dtype: str
    rank: int
    align: int  # bytes that its address is a multiple of
    updates: str = ""  # of an output: the input that it is a copy of, which the kernel then changes


@dataclass(frozen=True)
class Scalar:
    """A number that is passed by value, and the values that the op's domain holds."""

    name: str
    dtype: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[float, ...] = ()
    below: str = ""  # an axis: 0 <= value < axis
    allow_nan: bool = False
    allow_infinity: bool = False


@dataclass(frozen=True)
class Workspace:
    name: str
    dtype: str
    shape: tuple[int, ...]
    zero: bool


@dataclass(frozen=True)
class TensorMap:
    """What cuTensorMapEncodeTiled is told; dimension 0 is the innermost, strides are bytes."""

    name: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # of dimensions 1 and up; empty: packed
    box: tuple[int, ...]
    swizzle: int
    fill_nan: bool


@dataclass(frozen=True)
class Launch:
    symbol: str  # of the function in the machine code
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool
    args: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    workspace: tuple[Workspace, ...]
    tensor_maps: tuple[TensorMap, ...]
    launches: tuple[Launch, ...]


# ------------------------------------------- 64-bit integers that are checked, as the judge has them
#
# Under torch.compile extents may be symbols, which only the shapes of outputs are made of: those are
# added and multiplied as they are.


def _fit(value: int) -> int:
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise Refused(f"{value} leaves 63 bits", "use a smaller shape")
    return value


def negate(a: int) -> int:
    return _fit(-a)


def add(a: int, b: int) -> int:
    return _fit(a + b)


def subtract(a: int, b: int) -> int:
    return _fit(a - b)


def multiply(a: int, b: int) -> int:
    return _fit(a * b)


def divide(a: int, b: int) -> int:
    """Truncates, as C does."""
    if type(a) is not int or type(b) is not int:
        return a // b
    if b == 0:
        raise Refused(f"{a} is divided by zero", "use another shape")
    return _fit(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def modulo(a: int, b: int) -> int:
    if type(a) is not int or type(b) is not int:
        return a % b
    return subtract(a, multiply(divide(a, b), b))


def ceil_div(a: int, b: int) -> int:
    if type(a) is not int or type(b) is not int:
        return (a + b - 1) // b
    if b == 0:
        raise Refused(f"{a} is divided by zero", "use another shape")
    if a < 0 or b < 0:
        raise Refused(f"ceil_div of negative operands, {a} and {b}", "use another shape")
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return multiply(ceil_div(a, b), b)


def minimum(a: int, b: int) -> int:
    return a if a < b else b


def maximum(a: int, b: int) -> int:
    return a if a > b else b


