"""What the judge says, as values.

Each has `raw`, the document that it was read from. Verdicts, findings and reports print as they do
in the terminal, and show themselves as HTML in a notebook.
"""

from __future__ import annotations

import enum
import json
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay import _html


class Outcome(str, enum.Enum):
    """How a judgement ended. Whatever was not shown to have passed is inconclusive."""

    ACCEPTED = "accepted"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    INTERNAL_ERROR = "internal_error"

    def __str__(self) -> str:
        return self.value


class NotAccepted(AssertionError):
    """A kernel was not accepted; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


@dataclass(frozen=True)
class Site:
    """A place in the source, and in the PTX."""

    file: str = ""
    line: int = 0
    column: int = 0
    excerpt: str = ""
    ptx_line: int = 0
    instruction: str = ""

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Site:
        names = ("file", "line", "column", "excerpt", "ptx_line", "instruction")
        return Site(**{name: raw[name] for name in names if name in raw})

    def __str__(self) -> str:
        if not self.line:
            return f"kernel.ptx:{self.ptx_line}" if self.ptx_line else "kernel"
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


@dataclass(frozen=True)
class Access:
    """One of the accesses that a finding is about."""

    what: str
    site: Site
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    threads: int


@dataclass(frozen=True)
class Statistic:
    """A number that was compared with a limit; limit 0: there is none."""

    name: str
    value: float
    limit: float
    note: str

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Statistic:
        return Statistic(raw["name"], _number(raw["value"]), _number(raw["limit"]), raw["note"])


@dataclass(frozen=True)
class Finding:
    """Something that a kernel does wrong."""

    kind: str
    message: str
    accesses: tuple[Access, ...]
    statistics: tuple[Statistic, ...]
    missing: str
    cause: str
    text: str
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any], text: str = "") -> Finding:
        accesses = tuple(
            Access(
                what=each["what"],
                site=Site.of(each["site"]),
                block=tuple(each["block"]),
                thread=tuple(each["thread"]),
                threads=each["threads"],
            )
            for each in raw.get("accesses", [])
        )
        return Finding(
            kind=raw["kind"],
            message=raw["message"],
            accesses=accesses,
            statistics=tuple(Statistic.of(each) for each in raw.get("statistics", [])),
            missing=raw.get("missing", ""),
            cause=raw.get("cause", ""),
            text=text,
            raw=raw,
        )

    @property
    def site(self) -> Site | None:
        """Where it is, as far as that is known."""
        return self.accesses[0].site if self.accesses else None

    def __str__(self) -> str:
        if self.text:
            return self.text.rstrip("\n")
        return f"{f'{self.site}: ' if self.site else ''}error: {self.kind}: {self.message}"

    def _repr_html_(self) -> str:
        return _html.finding(self)


@dataclass(frozen=True)
class Counterexample:
    """A case that refutes a kernel, as small as it was made. `save` it for `assay.replay`."""

    gate: str
    op: str
    binding: Mapping[str, str]
    description: str
    findings: tuple[Finding, ...]
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any], texts: list[str] | None = None) -> Counterexample:
        said = texts or raw.get("texts") or [""] * len(raw["findings"])
        return Counterexample(
            gate=raw["gate"],
            op=raw["op"],
            binding=raw["binding"],
            description=raw.get("description", ""),
            findings=tuple(Finding.of(f, t) for f, t in zip(raw["findings"], said)),
            raw=raw,
        )

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Writes the file that `assay replay` takes."""
        document = {key: value for key, value in self.raw.items() if key != "texts"}
        target = pathlib.Path(path)
        target.write_text(json.dumps(document, indent=2) + "\n")
        return target

    def __str__(self) -> str:
        return "\n".join([f"{self.gate}: {self.description}", *map(str, self.findings)])

    def _repr_html_(self) -> str:
        return _html.counterexample(self)


@dataclass(frozen=True)
class Gate:
    """What one gate said."""

    name: str
    status: str  # passed, refuted, inconclusive, skipped
    reason: str
    cases: int
    seconds: float
    statistics: tuple[Statistic, ...]
    counterexamples: tuple[Counterexample, ...]


@dataclass(frozen=True)
class AxisReach:
    """How long an axis was tried: whole, in some blocks, at the ends of huge shapes, the longest that
    the op has, and the longest at which it was seen where is written to (not what)."""

    axis: str
    whole: int
    in_slices: int
    at_ends: int
    domain: int
    in_places: int = 0


@dataclass(frozen=True)
class Verdict:
    """The outcome of a judgement, gate by gate."""

    outcome: Outcome
    reason: str
    instance: str
    engine: str
    gates: tuple[Gate, ...]
    reach: tuple[AxisReach, ...]
    text: str
    folder: pathlib.Path | None  # of the vetted kernel, where one was asked for and made
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any], folder: pathlib.Path | None = None) -> Verdict:
        texts = iter(raw.get("texts", []))
        gates = tuple(
            Gate(
                name=gate["gate"],
                status=gate["status"],
                reason=gate["reason"],
                cases=gate["cases"],
                seconds=gate["seconds"],
                statistics=tuple(Statistic.of(each) for each in gate["statistics"]),
                counterexamples=tuple(
                    Counterexample.of(each, next(texts, None)) for each in gate["counterexamples"]
                ),
            )
            for gate in raw["gates"]
        )
        reach = tuple(
            AxisReach(
                each["axis"],
                each["whole"],
                each["in_slices"],
                each["at_ends"],
                each["domain"],
                each.get("in_places", 0),
            )
            for each in raw["ledger"]["axes"]
        )
        outcome = Outcome(raw["outcome"])
        return Verdict(
            outcome=outcome,
            reason=raw["reason"],
            instance=raw["instance"],
            engine=raw["engine"],
            gates=gates,
            reach=reach,
            text=raw.get("text", ""),
            folder=folder if outcome is Outcome.ACCEPTED else None,
            raw=raw,
        )

    @property
    def accepted(self) -> bool:
        return self.outcome is Outcome.ACCEPTED

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        return tuple(each for gate in self.gates for each in gate.counterexamples)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(each for case in self.counterexamples for each in case.findings)

    def raise_unless_accepted(self) -> Verdict:
        """Itself, or NotAccepted with the text of the terminal."""
        if not self.accepted:
            raise NotAccepted(self)
        return self

    def __str__(self) -> str:
        return self.text.rstrip("\n") or f"{self.outcome}: {self.reason}"

    def _repr_html_(self) -> str:
        return _html.verdict(self)


@dataclass(frozen=True)
class Sanitized:
    """What the sanitizer saw. `clean` says that everything ran to its end and nothing was found."""

    stop: str
    reason: str
    findings: tuple[Finding, ...]
    steps: int
    schedules: int
    orders: int
    orders_tried: int
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Sanitized:
        return Sanitized(
            stop=raw["stop"],
            reason=raw["reason"],
            findings=tuple(Finding.of(f, t) for f, t in zip(raw["findings"], raw["texts"])),
            steps=raw["steps"],
            schedules=raw["schedules"],
            orders=raw["orders"],
            orders_tried=raw["orders_tried"],
            raw=raw,
        )

    @property
    def complete(self) -> bool:
        return self.stop == "completed"

    @property
    def clean(self) -> bool:
        return self.complete and not self.findings

    def __str__(self) -> str:
        lines = [str(each) for each in self.findings]
        if not self.complete and not self.findings:
            lines.append(f"inconclusive: {self.stop}: {self.reason}")
        lines.append(f"{len(self.findings)} findings, {self.steps} instructions")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.sanitized(self)


@dataclass(frozen=True)
class Axis:
    name: str
    kind: str
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: str
    dtype: str


@dataclass(frozen=True)
class Op:
    """What a kernel must compute. `str()` of it is what functions of this package take as an op."""

    name: str
    summary: str
    folder: pathlib.Path
    dtypes: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Op:
        def tensors(rows: list[dict[str, str]]) -> tuple[Tensor, ...]:
            return tuple(Tensor(row["name"], row["shape"], row["dtype"]) for row in rows)

        return Op(
            name=raw["name"],
            summary=raw["summary"],
            folder=pathlib.Path(raw["folder"]),
            dtypes=raw["dtypes"],
            inputs=tensors(raw["inputs"]),
            outputs=tensors(raw["outputs"]),
            raw=raw,
        )

    def __str__(self) -> str:
        return str(self.folder)


@dataclass(frozen=True)
class Generated:
    """What a run of generation came to."""

    outcome: Outcome
    reason: str
    run: pathlib.Path
    attempts: int
    vetted: pathlib.Path | None
    usd: float | None
    resumable: bool
    raw: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Generated:
        vetted = raw.get("vetted")
        return Generated(
            outcome=Outcome(raw["outcome"]),
            reason=raw["reason"],
            run=pathlib.Path(raw["run"]),
            attempts=raw["attempts"],
            vetted=pathlib.Path(vetted) if vetted else None,
            usd=raw.get("usd"),
            resumable=raw["resumable"],
            raw=raw,
        )

    @property
    def accepted(self) -> bool:
        return self.outcome is Outcome.ACCEPTED

    def __str__(self) -> str:
        where = f"vetted kernel: {self.vetted}" if self.vetted else f"run: {self.run}"
        return f"{self.outcome} after {self.attempts} attempts: {self.reason}\n{where}"


def _number(value: Any) -> float:
    """Numbers that JSON has no word for are written as strings."""
    return float(value)
