"""Assay judges CUDA kernels: no GPU needed, and no kernel passes that something could refute.

    import assay

    verdict = assay.check(SOURCE, LAUNCH, "softmax")     # CUDA source, launch plan, op
    print(verdict)                                       # as in the terminal; HTML in a notebook
    verdict.raise_unless_accepted()

This package drives the program `assay`, which it holds, and reads its JSON.
"""

from assay._program import AssayError, InternalError, Progress
from assay.api import check, doctor, generate, load, op, ops, replay, sanitize
from assay.results import (
    Access,
    Axis,
    AxisReach,
    Counterexample,
    Finding,
    Gate,
    Generated,
    NotAccepted,
    Op,
    Outcome,
    Sanitized,
    Site,
    Statistic,
    Tensor,
    Verdict,
)

__version__ = "0.1.0"

__all__ = [
    "Access",
    "AssayError",
    "Axis",
    "AxisReach",
    "Counterexample",
    "Finding",
    "Gate",
    "Generated",
    "InternalError",
    "NotAccepted",
    "Op",
    "Outcome",
    "Progress",
    "Sanitized",
    "Site",
    "Statistic",
    "Tensor",
    "Verdict",
    "check",
    "doctor",
    "generate",
    "load",
    "op",
    "ops",
    "replay",
    "sanitize",
]
