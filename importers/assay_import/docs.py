"""python -m assay_import.docs: docs/torch-ops.md, made of the table. Needs no torch.

What stands between the markers of docs/torch-ops.md is replaced; a test holds it to the table.
"""

import pathlib
import sys

from .table import GROUPS

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


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


def replaced(text):
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n\n{table()}\n{END}{tail}"


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
