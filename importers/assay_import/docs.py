"""python -m assay_import.docs FILE: docs/torch-ops.md, made of the table and of published_operators.tsv. Needs no torch.

What stands between the markers of docs/torch-ops.md is replaced; a test holds it to the table.
"""

import pathlib
import re
import sys

from .table import GROUPS, OPERATORS

PUBLISHED = pathlib.Path(__file__).resolve().parent.parent / "published_operators.tsv"


def cell(text):
    return text.replace("|", "\\|") or "-"


def table():
    lines = []
    for title, rows in GROUPS:
        lines += [f"### {title}", ""]
        if title == "Refused":
            lines += ["| operator | why | what to do |", "|---|---|---|"]
            lines += [f"| `{r.name}` | {cell(r.refused)} | {cell(r.cure)} |" for r in rows]
        else:
            lines += ["| operator | lowered to | error charged | rows |", "|---|---|---|---|"]
            for r in rows:
                how = r.how or f"`{readable(r.code or r.whole)}`"
                lines.append(f"| `{r.name}` | {cell(how)} | {cell(r.charge)} | {cell(r.rows)} |")
        lines.append("")
    return "\n".join(lines)


def readable(code):
    return code.replace("{0}", "x").replace("{1}", "y").replace("{2}", "z")


def published():
    """How many problems of each published set import whole, as far as counts of operators say: those that an operator bars
    are at least as many as hold the commonest one, and at most as many as hold any."""
    lines = PUBLISHED.read_text().splitlines()
    exported = re.findall(r"(\w[\w -]*?\w)(?: level (\d))?[:,]? (\d+) of (\d+)", lines[1].removeprefix("# "))
    totals = [(int(got), int(of)) for _, _, got, of in exported]
    header, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    made = [
        "| set | problems | exported by torch | operators in them | of those lowered | barred by an operator | import whole | blockers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for column, (name, (got, of)) in enumerate(zip(header[1:], totals), start=1):
        held = {"aten." + row[0]: int(row[column]) for row in rows if int(row[column])}
        barred = {o: n for o, n in held.items() if OPERATORS[o].refused}
        least, most = max(barred.values(), default=0), sum(barred.values())
        whole = f"{got - most}" if least == most else f"{got - most} to {got - least}"
        share = f"{100 * (got - most) / of:.0f} %"
        why = "; ".join(f"`{o}` {OPERATORS[o].refused} ({n})" for o, n in barred.items())
        if got < of:
            why = f"{of - got} that torch.export cannot take" + (f"; {why}" if why else "")
        count = f"{least}" if least == most else f"{least} to {most}"
        made.append(f"| {name} | {of} | {got} | {len(held)} | {len(held) - len(barred)} | {count} | {whole}, {share} | {why or '-'} |")
    return "\n".join(made) + "\n"


def replaced(text):
    for word, made in (("table", table()), ("published", published())):
        begin, end = f"<!-- {word}: begin -->", f"<!-- {word}: end -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}\n\n{made}\n{end}{rest.split(end)[1]}"
    return text


def main():
    path = pathlib.Path(sys.argv[1])
    old = path.read_text()
    new = replaced(old)
    if "--check" in sys.argv:
        if old != new:
            sys.exit(f"{path} is not what the table says: python -m assay_import.docs {path} writes it again")
        return
    path.write_text(new)


if __name__ == "__main__":
    main()
