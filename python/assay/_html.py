"""Results in a notebook. Everything that is shown is escaped: kernels write parts of it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.results import Counterexample, Finding, Sanitized, Verdict

_COLOURS = {
    "accepted": "#1a7f37",
    "passed": "#1a7f37",
    "refuted": "#cf222e",
    "inconclusive": "#9a6700",
    "internal_error": "#cf222e",
}


def _word(word: str) -> str:
    return f'<b style="color:{_COLOURS.get(word, "inherit")}">{html.escape(word)}</b>'


def _text(text: str) -> str:
    return f'<pre style="white-space:pre-wrap">{html.escape(text)}</pre>'


def finding(one: Finding) -> str:
    return _text(str(one))


def counterexample(one: Counterexample) -> str:
    said = "".join(finding(each) for each in one.findings)
    return f"<p>{html.escape(one.gate)}: <code>{html.escape(one.description)}</code></p>{said}"


def verdict(one: Verdict) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(gate.name)}</td><td>{_word(gate.status)}</td>"
        f"<td>{gate.cases or ''}</td><td>{gate.seconds:.2f} s</td>"
        f"<td>{html.escape(gate.reason)}</td></tr>"
        for gate in one.gates
    )
    cases = "".join(counterexample(each) for each in one.counterexamples)
    return (
        f"<p>{_word(str(one.outcome))} {html.escape(one.instance)}: {html.escape(one.reason)}</p>"
        "<table><tr><th>gate</th><th></th><th>cases</th><th>time</th><th></th></tr>"
        f"{rows}</table>{cases}"
    )


def sanitized(one: Sanitized) -> str:
    word = "passed" if one.clean else "refuted" if one.findings else "inconclusive"
    said = "".join(finding(each) for each in one.findings)
    return f"<p>{_word(word)} {len(one.findings)} findings, {one.steps} instructions</p>{said}"
