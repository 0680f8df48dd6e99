"""python -m assay_import REQUEST OUT: one JSON document in, one out. Started in the jail by `assay import`.

REQUEST and OUT are numbers of open descriptors, or paths. The answer is {"files": ..., "told": ...}, or
{"refused": {"what", "cure", "line", "source"}}; with "check" in the request, what truth.py says.
"""

import json
import os
import sys


def read(where):
    with open(int(where) if where.isdigit() else where, encoding="utf-8") as file:
        return json.load(file)


def answer(request):
    import torch

    from . import export, opfile, problems
    from .graph import Refused

    torch.set_num_threads(max(1, min(4, os.cpu_count() or 1)))
    try:
        problem = problems.load(request["kind"], request["path"], request.get("function", ""))
        if request.get("name"):
            problem.name = request["name"]
        if "check" in request:
            from . import truth

            return truth.answer(problem, request)
        graph = export.export(problem, request.get("specialised", False))
        files, told = opfile.make(problem, graph, {**request, "torch": torch.__version__})
        return {"files": files, "told": told}
    except Refused as refused:
        node = refused.node
        return {
            "refused": {
                "what": refused.what,
                "cure": refused.cure,
                "line": getattr(node, "line", 0) or 0,
                "source": getattr(node, "source", "") or "",
            }
        }


def main():
    request, out = sys.argv[1:3]
    text = json.dumps(answer(read(request)))
    with open(int(out) if out.isdigit() else out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
