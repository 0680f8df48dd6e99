#!/usr/bin/env python3
"""What torch calls the nodes of a graph says nothing: however they are named, the same op comes of it. Needs no torch."""

import pathlib
import random
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

try:
    import sympy  # noqa: F401
except ImportError:
    print("skipped: there is no sympy, which torch brings along")
    sys.exit(77)

from assay_import import index  # noqa: E402
from assay_import.graph import Graph, InputSpec, Node, Tensor, renumber  # noqa: E402
from assay_import.kernels import Planner  # noqa: E402
from assay_import.lower import Lowering  # noqa: E402


def graph(name, extra=()):
    """A norm with two means, products and a sum over rows; `name` names the n-th node, `extra` are places of nodes that nobody needs."""
    rows, columns = index.axis("rows"), index.axis("columns")
    whole, row = Tensor([rows, columns], "f32"), Tensor([rows, 1], "f32")
    specs = [InputSpec(n, whole, "argument", {}) for n in ("x", "y")]
    x, y = [Node(s.name, "placeholder", [], {}, s.tensor) for s in specs]
    nodes = []

    def add(target, args, meta):
        if len(nodes) in extra:
            made(target, args, meta)
        return made(target, args, meta)

    def made(target, args, meta):
        node = Node(name(len(nodes), target), target, args, {}, meta)
        for a in args:
            if isinstance(a, Node):
                a.users.append(node)
        nodes.append(node)
        return node

    mean = add("aten.mean.dim", [x, [-1], True], row)
    apart = add("aten.sub.Tensor", [x, mean], whole)
    square = add("aten.mul.Tensor", [apart, apart], whole)
    spread = add("aten.mean.dim", [square, [-1], True], row)
    scale = add("aten.rsqrt.default", [spread], row)
    scaled = add("aten.mul.Tensor", [apart, scale], whole)
    mixed = add("aten.add.Tensor", [scaled, y], whole)
    out = add("aten.mul.Tensor", [mixed, y], whole)
    total = add("aten.sum.dim_IntList", [out, [0]], Tensor([columns], "f32"))
    for node in (out, total):
        node.users.append(None)
    axes = {n: {"min": 1, "max": None, "example": 8} for n in ("rows", "columns")}
    return Graph(specs, [x, y], nodes, [("out", out), ("total", total)], axes, [])


def texts(made):
    renumber(made.nodes, [node for _, node in made.outputs])
    lowering = Lowering(made, {})
    outputs = lowering.run()
    planner = Planner(outputs, lowering.inputs, list(made.axes), {"f32": "float"})
    kernels, workspaces = planner.write()
    return [k.text for k in kernels], [name for name, _, _ in workspaces]


class Numbering(unittest.TestCase):
    def test_names_that_torch_gives_do_not_matter(self):
        wanted = texts(graph(lambda i, target: f"node_{i}"))
        self.assertIn("mean_1", "".join(wanted[0]))
        for seed in range(50):
            rng = random.Random(seed)
            names = rng.sample(range(1000), 40)
            words = ["add", "mul", "x", "mean_1", "sum", "mul_2", "v_3"]
            with self.subTest(seed):
                self.assertEqual(texts(graph(lambda i, target: f"{rng.choice(words)}_{names[i]}")), wanted)

    def test_nodes_that_nobody_needs_are_not_counted(self):
        wanted = texts(graph(lambda i, target: f"node_{i}"))
        for seed in range(20):
            extra = set(random.Random(seed).sample(range(12), 3))
            with self.subTest(seed):
                self.assertEqual(texts(graph(lambda i, target: f"node_{i}", extra)), wanted)

    def test_names_go_by_operator_and_place(self):
        made = graph(lambda i, target: "n")
        renumber(made.nodes, [node for _, node in made.outputs])
        self.assertEqual(
            [n.name for n in made.nodes], ["mean", "sub", "mul", "mean_1", "rsqrt", "mul_1", "add", "mul_2", "sum_1"]
        )


if __name__ == "__main__":
    unittest.main()
