"""python -m assay_import REQUEST OUT: one JSON document in, one out. Started in the jail by `assay import`.

REQUEST and OUT are numbers of open descriptors, or paths. The answer is {"files": ..., "told": ...}, or
{"refused": {"what", "cure", "line", "source"}}; with "check" in the request, what truth.py says.
python -m assay_import serve SOCKET FILE: truths of a function in the file, until the socket is closed (serve.py).
"""

import json
import os
import pathlib
import sys
import traceback


def read(where):
    with open(int(where) if where.isdigit() else where, encoding="utf-8") as file:
        return json.load(file)


def named(request, numbers=True):
    from . import problems

    problem = problems.load(request["kind"], request["path"], request.get("function", ""), numbers)
    if request.get("name"):
        problem.name = request["name"]
    return problem


def graph_of(request):
    """(problem, exported program, graph). Numbers of a definition are arguments, where the function takes tensors for them."""
    from . import export
    from .graph import Refused

    problem = named(request)
    try:
        return problem, *export.whole(problem, request.get("specialised", False))
    except Refused:
        if not problem.scalars or request["kind"] == "torch":
            raise
        constant = named(request, numbers=False)
        exported, graph = export.whole(constant, request.get("specialised", False))
        graph.notes.append("numbers are constants, as in the example: " + ", ".join(sorted(problem.scalars)))
        return constant, exported, graph


def answer(request):
    import torch

    from . import opfile
    from .graph import Refused

    torch.set_num_threads(max(1, min(4, os.cpu_count() or 1)))
    try:
        if request.get("value_only"):
            from . import valueonly

            files, told = valueonly.make(named(request), {**request, "torch": torch.__version__})
            return {"files": files, "told": told}
        problem, exported, graph = graph_of(request)
        if "check" in request:
            from . import truth

            return truth.answer(problem, exported, graph, request)
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
    except Exception as error:  # noqa: BLE001 - torch's own, at shapes or operators that it does not take
        frames = traceback.extract_tb(error.__traceback__)
        own = next((f for f in reversed(frames) if "assay_import" in f.filename), frames[-1])
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        return {
            "refused": {
                "what": f"torch failed at it: {type(error).__name__}: {first[:240]} ({pathlib.Path(own.filename).name}:{own.lineno}, "
                f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno})",
                "cure": "write the function with other operators",
                "line": 0,
                "source": "",
            }
        }


def main():
    if sys.argv[1] == "serve":
        from . import serve

        return serve.run(int(sys.argv[2]), sys.argv[3])
    request, out = sys.argv[1:3]
    text = json.dumps(answer(read(request)))
    with open(int(out) if out.isdigit() else out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
