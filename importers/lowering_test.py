#!/usr/bin/env python3
"""Tests of the package assay_import. They need torch: $ASSAY_PYTHON, .deps/torch, or this Python's own.

Without torch they are skipped (exit 77) with a line that says how to get it.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus" / "torch"
GRAPHS_OF = "2.15."  # The torch whose graphs corpus/torch/shipped was made of.
sys.dont_write_bytecode = True

if importlib.util.find_spec("torch") is None:
    for python in (os.environ.get("ASSAY_PYTHON", ""), str(HERE.parent / ".deps/torch/bin/python3")):
        if python and os.path.exists(python) and not os.environ.get("ASSAY_LOWERING_TEST"):
            os.execve(python, [python, *sys.argv], {**os.environ, "ASSAY_LOWERING_TEST": "1"})
    print("skipped: there is no torch; scripts/fetch_torch.sh fetches it, or set ASSAY_PYTHON to a Python that has it")
    sys.exit(77)

sys.path.insert(0, str(HERE))
os.environ.setdefault("TORCH_LOGS", "-all")

from assay_import import __main__ as package  # noqa: E402
from assay_import import index, lower, table  # noqa: E402


def imported(source, function="f", **options):
    """The package's answer for a problem given as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "problem.py"
        path.write_text("import torch\nimport torch.nn.functional as F\n" + source)
        return package.answer({"kind": "torch", "path": str(path), "function": function, **options})


def reference(source, **options):
    answer = imported(source, **options)
    if "refused" in answer:
        raise AssertionError(answer["refused"])
    return answer["files"]["reference.cu"]


class Index(unittest.TestCase):
    def setUp(self):
        self.n, self.m = index.axis("n"), index.axis("m")
        self.i, self.j = index.variable("i", self.n), index.variable("j", self.m)

    def test_divisions_of_what_was_flattened_disappear(self):
        flat = self.i * self.m + self.j
        self.assertEqual(index.floordiv(flat, self.m), self.i)
        self.assertEqual(index.mod(flat, self.m), self.j)

    def test_divisions_that_are_needed_stay(self):
        self.assertTrue(index.mod(self.i, self.m).has(index.Mod))
        self.assertTrue(index.floordiv(self.i + 1, self.n).has(index.FloorDiv))

    def test_sums_of_extents_divide_too(self):
        width = self.n + 1
        flat = self.j * width + self.i
        self.assertEqual(index.floordiv(flat, width), self.j)
        self.assertEqual(index.mod(flat, width), self.i)

    def test_reshapes_stay_apart(self):
        half = index.axis("half")
        k = index.variable("k", half)
        old, new = [self.n, 2 * half], [self.n, 2, half]
        two = index.variable("t", 2)
        self.assertEqual(index.regroup([self.i, two, k], old, new), [self.i, two * half + k])
        both = index.variable("b", 2 * half)
        self.assertEqual(index.regroup([self.i, both], new, old)[0], self.i)

    def test_code_is_right_whatever_the_signs(self):
        values = {"n": 5, "m": 3, "i": 4, "j": 2}
        for e in (
            self.i * self.m - self.j - 1,
            (self.n + 1) * (self.m + 2) - self.i,
            -self.i + self.n * self.m,
            index.FloorDiv(self.i + 7, self.m) * self.n,
            index.Mod(self.i * 5, self.n + 1) - 2 * self.j,
        ):
            expected = e.replace(index.FloorDiv, lambda a, b: a // b).replace(index.Mod, lambda a, b: a % b)
            got = eval(index.code(e).replace("/", "//"), {}, values)  # noqa: S307
            self.assertEqual(got, int(expected.subs({s: values[s.name] for s in e.free_symbols})), index.code(e))

    def test_addresses_agree_with_flat_numbers(self):
        values = {"n": 5, "m": 3, "i": 4, "j": 2}
        indices, extents = [self.i, self.j - 1, self.i + 2], [self.n, self.m, self.n + 3]
        flat = index.flatten(indices, extents)
        got = eval(index.address(indices, extents), {}, values)  # noqa: S307
        self.assertEqual(got, int(flat.subs({s: values[s.name] for s in flat.free_symbols})))


class Table(unittest.TestCase):
    def test_every_row_is_lowered_or_refused_with_a_reason(self):
        for row in table.OPERATORS.values():
            if row.refused:
                self.assertTrue(row.cure, row.name)
            elif row.lower == "pointwise":
                special = hasattr(lower.Lowering, "point_" + row.name.split(".")[1])
                self.assertTrue(special or row.code or row.whole, row.name)
            else:
                self.assertTrue(hasattr(lower.Lowering, "lower_" + row.lower), row.name)
            self.assertTrue(row.refused or row.charge, row.name)

    def test_no_name_stands_twice(self):
        self.assertEqual(len(table.OPERATORS), sum(len(rows) for _, rows in table.GROUPS))

    def test_core_operators_have_rows_or_are_decomposed(self):
        import torch

        from assay_import import export

        decomposed = {str(operator) for operator in export.decompositions()}
        missing = []
        for packet in dir(torch.ops.aten):
            found = getattr(torch.ops.aten, packet, None)
            for overload in getattr(found, "overloads", list)():
                operator = getattr(found, overload)
                name = str(operator)
                if torch.Tag.core in operator.tags and name not in table.OPERATORS and name not in decomposed:
                    missing.append(name)
        self.assertEqual(missing, [])

    def test_operators_of_the_published_sets_have_rows(self):
        lines = [line for line in (HERE / "published_operators.tsv").read_text().splitlines() if not line.startswith("#")]
        names = [line.split("\t")[0] for line in lines[1:]]
        self.assertEqual(len(names), 113)
        for name in names:
            self.assertIn("aten." + name, table.OPERATORS)


class Lowering(unittest.TestCase):
    def test_a_row_reduction_stands_before_its_row(self):
        text = reference('def f(x: "bf16[rows, columns]"):\n    return torch.softmax(x, -1)\n')
        self.assertEqual(text.count("__global__"), 1)
        self.assertLess(text.index("softmax_sum +="), text.index("/ softmax_sum"))
        self.assertIn("// 4: return torch.softmax(x, -1)", text)

    def test_a_product_and_what_follows_are_one_kernel(self):
        text = reference(
            'def f(x: "bf16[m, k]", w: "bf16[n, k]", b: "bf16[n]"):\n    return F.relu(F.linear(x, w, b)) * 2\n'
        )
        self.assertEqual(text.count("__global__"), 1)

    def test_operands_that_cost_are_stored_before_a_product(self):
        text = reference('def f(x: "f32[m, k]", w: "f32[k, n]"):\n    return torch.exp(x) @ w\n')
        self.assertEqual(text.count("__global__"), 2)

    def test_boundaries_of_16_bits_are_permitted_roundings(self):
        source = 'def f(x: "bf16[n]", y: "bf16[n]"):\n    return (x + y) * y\n'
        self.assertIn("may_round_to<T>(", reference(source))
        strict = reference(source, strict=True)
        self.assertIn("round_to<T>(", strict)
        self.assertNotIn("may_round_to", strict)
        wide = reference('def f(x: "f32[n]", y: "f32[n]"):\n    return (x + y) * y\n', specialised=True)
        self.assertNotIn("round_to", wide)

    def test_written_out_norms_are_affine(self):
        source = 'def f(x: "f32[n, h]", w: "f32[h]", b: "f32[h]"):\n    m = x.mean(-1, keepdim=True)\n    v = ((x - m) ** 2).mean(-1, keepdim=True)\n    return (x - m) * torch.rsqrt(v + 1e-5) * w + b\n'
        self.assertIn("affine(", reference(source))
        other = 'def f(x: "f32[n, h]", m: "f32[n, 1]", w: "f32[h]", b: "f32[h]"):\n    return (x - m) * w + b\n'
        self.assertNotIn("affine(", reference(other))

    def test_probabilities_may_be_rounded_before_the_division(self):
        source = 'def f(q: "bf16[h, n, d]", k: "bf16[h, m, d]", v: "bf16[h, m, d]"):\n    return F.scaled_dot_product_attention(q, k, v)\n'
        self.assertRegex(reference(source), r"may_round_to<T>\(\w+\[[^\]]+\], \w+\)")

    def test_scores_of_products_may_be_kept_multiplied(self):
        self.assertIn("may_rescale(", reference('def f(q: "f32[n, d]", k: "f32[m, d]"):\n    return torch.softmax(q @ k.T * 0.125, -1) @ k\n'))
        self.assertNotIn("may_rescale(", reference('def f(q: "f32[n, d]", k: "f32[m, d]"):\n    return torch.softmax(q @ k.T * 0.125, -1)\n'))
        self.assertNotIn("may_rescale(", reference('def f(x: "f32[n, d]"):\n    return torch.softmax(x * 2, -1)\n'))

    def test_a_sum_is_done_before_its_largest_is_taken_off(self):
        scores = 'def f(q: "f32[n, d]", k: "f32[m, d]"):\n    s = q @ k.T\n    return '
        for shifted in ("torch.softmax(s, -1)", "torch.log_softmax(s, -1)", "torch.logsumexp(s, -1)", "torch.exp(s - s.amax(-1, keepdim=True))"):
            with self.subTest(shifted):
                self.assertIn(".settled() - ", reference(scores + shifted + "\n"))
        # Another sum's largest may be one more term, and what is no sum is as it is.
        self.assertNotIn(".settled()", reference(scores + "s - k.amax()\n"))
        self.assertNotIn(".settled()", reference('def f(x: "f32[n, d]"):\n    return x - x.amax(-1, keepdim=True) + torch.softmax(x, -1)\n'))
        naive = imported(scores + "torch.softmax(s, -1)\n")["files"]["naive/kernel.cu"]
        self.assertNotIn("settled", naive)

    def test_a_sum_by_its_count_is_an_average(self):
        self.assertIn("average(", reference('def f(x: "f32[n, h]"):\n    return x.sum(-1) / x.shape[-1]\n'))
        self.assertNotIn("average(", reference('def f(x: "f32[n, h]"):\n    return x.sum(-1) / 7\n'))

    def test_a_choice_that_is_an_output_is_the_judges_and_a_hidden_one_is_refused(self):
        files = imported('def f(x: "f32[n, h]"):\n    return torch.exp(x).argmax(-1)\n')["files"]
        outputs = json.loads(files["op.json"])["outputs"]
        self.assertEqual(outputs["out"]["relation"], {"kind": "choice", "scores": "out_scores", "best": "largest", "ties": "first"})
        self.assertTrue(outputs["out_scores"]["hidden"])
        self.assertNotIn("naive/kernel.cu", files)
        refused = imported('def f(x: "f32[n, h]", y: "f32[h, m]"):\n    return y[torch.exp(x).argmax(-1)]\n')["refused"]
        self.assertIn("aten.argmax.default", refused["what"])
        self.assertEqual(refused["line"], 4)

    def test_what_is_written_to_is_updated(self):
        files = imported('def f(x: "f32[n]", y: "f32[n]"):\n    x.add_(y)\n    return x * 2\n')["files"]
        self.assertEqual(json.loads(files["op.json"])["outputs"]["x_after"], {"updates": "x"})

    def test_rows_that_no_kernel_mixes_are_independent(self):
        def rows(source):
            return json.loads(imported(source)["files"]["op.json"])["properties"]

        self.assertIn({"independent_rows": ["x", "n"]}, rows('def f(x: "f32[n, h]"):\n    return torch.softmax(x, -1)\n'))
        self.assertNotIn({"independent_rows": ["x", "n"]}, rows('def f(x: "f32[n, h]"):\n    return torch.softmax(x, 0)\n'))
        self.assertNotIn({"independent_rows": ["x", "n"]}, rows('def f(x: "f32[n, h]"):\n    return torch.flip(x, [0])\n'))

    def test_what_the_function_asserts_of_an_extent_is_its_limit(self):
        def op(body):
            return json.loads(imported('def f(x: "f32[n, h]"):\n' + body + "    return torch.softmax(x, -1)\n")["files"]["op.json"])

        said = op("    assert x.shape[0] <= 1048576 and 4 <= x.shape[1] <= 256\n")
        self.assertEqual([(axis["min"], axis["max"]) for axis in said["axes"].values()], [(1, 1048576), (4, 256)])
        self.assertNotIn("constraints", said)
        related = op("    assert x.shape[0] <= 2 * x.shape[1]\n")
        self.assertEqual([axis["max"] for axis in related["axes"].values()], [4096, 4096])
        self.assertEqual(len(related["constraints"]), 1)
        # The example that an annotation leaves open may not be one that the function takes.
        refused = imported('def f(x: "f32[n, h]"):\n    assert x.shape[1] >= 32\n    return x * 2\n')["refused"]
        self.assertIn("tried with n = 6, h = 8: give an example that it takes by f_inputs()", refused["cure"])

    def test_sums_by_index_promise_no_order(self):
        source = 'def f(x: "f32[n, h]", i: "i64[m]", y: "f32[m, h]"):\n    return x.index_add(0, i, y)\n'
        self.assertNotIn("deterministic", json.loads(imported(source)["files"]["op.json"])["properties"])
        self.assertIn("deterministic", json.loads(imported('def f(x: "f32[n]"):\n    return x * 2\n')["files"]["op.json"])["properties"])

    def test_places_that_are_written_to_are_distinct(self):
        def made(body, more=""):
            return imported(f'def f(x: "f32[n, h]", i: "i64[m]", y: "f32[m, h]"{more}):\n{body}')

        files = made("    return x.index_copy(0, i, y)\n")["files"]
        op = json.loads(files["op.json"])
        self.assertEqual(op["inputs"]["i"]["domain"], {"kind": "generated"})
        self.assertIn("assay::permuted(i, n, seed)", files["generator.cu"])
        self.assertIn("m <= n", op["constraints"])
        # Not where all of them count, and not where a ramp keeps them apart.
        added = made("    return x.index_add(0, i, y)\n")["files"]
        self.assertNotIn("generator.cu", added)
        self.assertEqual(json.loads(added["op.json"])["inputs"]["i"]["domain"]["kind"], "index")
        rows = imported(
            'def f(x: "f32[n, w, h]", i: "i64[n]", y: "f32[n, h]"):\n    x = x.clone()\n    x[torch.arange(x.shape[0]), i] = y\n    return x\n'
        )["files"]
        self.assertNotIn("generator.cu", rows)

    def test_computed_places_that_are_written_to_are_refused(self):
        refused = imported('def f(x: "f32[n, h]", i: "i64[m]", y: "f32[m, h]"):\n    return x.index_copy(0, i // 2, y)\n')["refused"]
        self.assertIn("chance", refused["what"])

    def test_annotations_say_what_is_made(self):
        files = imported(
            'def f(x: "f32[total]", o: "i32[b] offsets of total", m: "bool[q, k] causal", s: "f32 in 0..1", c: "f32[n] in {1, 2}"):\n'
            "    at = torch.arange(x.shape[0])\n"
            "    return x * s, ((at[None] < o[1:, None]).to(x.dtype) @ x), m.sum(), c * 2\n"
        )["files"]
        op = json.loads(files["op.json"])
        self.assertIn("assay::offset_of(i, (b - 1), total, seed)", files["generator.cu"])
        self.assertIn("assay::causal(", files["generator.cu"])
        self.assertEqual(op["inputs"]["s"], {"shape": None, "dtype": "f32", "domain": {"kind": "range", "low": 0.0, "high": 1.0}})
        self.assertEqual(op["inputs"]["c"]["domain"], {"kind": "choice", "values": [1.0, 2.0]})
        self.assertIn("float s", files["reference.cu"])
        self.assertFalse([p for p in op["properties"] if isinstance(p, dict)])
        refused = imported('def f(x: "f32[n] sometimes"):\n    return x\n')["refused"]
        self.assertIn("sometimes", refused["what"])

    def test_examples_show_what_belongs_together(self):
        source = (
            "def f(x, mask, label):\n    return torch.softmax(x + mask, -1), label * 2\n"
            "def f_inputs():\n    seen = torch.ones(5, 7).tril(2) > 0\n"
            "    return [torch.randn(5, 7), torch.zeros(5, 7).masked_fill(~seen, -torch.inf), torch.eye(4)[torch.tensor([1, 0, 3, 3])]]\n"
        )
        op = json.loads(imported(source)["files"]["op.json"])
        self.assertEqual(op["inputs"]["mask"]["domain"], {"kind": "generated"})
        self.assertEqual(op["inputs"]["label"]["domain"], {"kind": "generated"})
        self.assertNotIn("generated", json.dumps(op["inputs"]["x"]))

    def test_bins_are_as_many_as_are_asked_for(self):
        source = 'def f(i: "i64[n]", w: "f32[bins]"):\n    return torch.bincount(i, minlength=w.shape[0]) * 2\n'
        op = json.loads(imported(source)["files"]["op.json"])
        self.assertEqual(op["outputs"]["out"]["shape"], ["bins"])
        self.assertEqual(op["inputs"]["i"]["domain"], {"kind": "index", "of": "bins"})
        self.assertIn("refused", imported('def f(i: "i64[n]"):\n    return torch.bincount(i)\n'))

    def test_functions_that_hang_on_values_can_be_their_own_reference(self):
        source = 'def f(x: "bf16[n, h]"):\n    while x.abs().max().item() > 1:\n        x = x * 0.5\n    return x, x.sum(-1)\n'
        self.assertIn("--value-only", imported(source)["refused"]["cure"])
        files = imported(source, value_only=True)["files"]
        op = json.loads(files["op.json"])
        self.assertEqual(op["reference"]["kind"], "python")
        self.assertEqual(op["outputs"], {"out0": {"shape": ["n", "h"], "dtype": "T"}, "out1": {"shape": ["n"], "dtype": "T"}})
        self.assertEqual(json.loads(files["reference.json"]), {"schema": "assay.python/1", "function": "f"})
        sized = 'def f(x: "f32[n]"):\n    return x[x > 0]\n'
        self.assertIn("refused", imported(sized, value_only=True))

    def test_numbers_taken_out_of_tensors_stay_numbers(self):
        self.assertIn("* Real(s[0])", reference('def f(x: "f32[n]", s: "f32[1]"):\n    return x * s.item()\n').replace("float", "Real"))
        # float() of a number that is computed asks for no value.
        self.assertEqual(reference('def f(x: "f32[n]"):\n    return x / max(float(x.norm().item()), 1e-6)\n').count("__global__"), 1)
        files = imported('def f(x: "f32[n, m]", k: "i64[1]"):\n    return torch.narrow(x, 1, k.item(), 3)\n')["files"]
        op = json.loads(files["op.json"])
        axis = op["inputs"]["k"]["domain"]["of"]
        self.assertEqual(op["axes"][axis], {"type": "expr", "expression": "m - 2"})
        sized = imported('def f(x: "f32[n]", k: "i64[1]"):\n    return x[: int(k.item())].sum()\n')["refused"]
        self.assertIn("size depends on values", sized["what"])
        chosen = imported('def f(x: "f32[n]", k: "i64[1]"):\n    return x if k.item() > 3 else -x\n')["refused"]
        self.assertIn("--value-only", chosen["cure"])

    def test_what_is_written_at_a_number_is_as_long_as_the_slice(self):
        source = 'def f(x: "f32[n, m]", y: "f32[n, 4]", k: "i64[1]"):\n    s = int(k.item())\n    x[:, s : s + 4] = y\n    return x * 1\n'
        self.assertIn("4 == y_1", json.dumps(json.loads(imported(source)["files"]["op.json"])).replace("y_1 == 4", "4 == y_1"))

    def test_computed_indices_stay_below_what_they_index(self):
        # How many of the offsets are not larger is at most how many there are: a constraint between two extents.
        source = 'def f(w: "f32[4, h]", o: "i32[5] offsets of n", x: "f32[n]"):\n    at = (torch.arange(x.shape[0])[:, None] >= o[None, 1:-1]).sum(1)\n    return w[at] * x[:, None]\n'
        op = json.loads(imported(source)["files"]["op.json"])
        self.assertIn("o_0 - 2 < w_0", op["constraints"])
        self.assertEqual(op["axes"]["w_0"]["type"], "var")
        # A sum of numbers reaches as far as in the example: neither its terms nor what they index are then free.
        source = 'def f(w: "f32[9, h]", c: "i64[n, 3] in 0..2"):\n    return w[c.sum(1)]\n'
        axes = json.loads(imported(source)["files"]["op.json"])["axes"]
        self.assertEqual((axes["w_0"]["type"], axes["c_1"]["type"], axes["n"]["type"]), ("const", "const", "var"))

    def test_words_of_python_are_given_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "problem.py"
            path.write_text("import torch\ndef f(x: 'f32[n]'):\n    assert isinstance(0.5, float) and int('12') == 12 and max([3, 4]) == 4\n    return x * float(x.sum().item())\n")
            self.assertIn("files", package.answer({"kind": "torch", "path": str(path), "function": "f"}))
        self.assertIs(type(float("0.5")), float)

    def test_devices_that_are_not_here_are_the_cpu(self):
        source = 'def f(x: "f32[n]"):\n    with torch.device("cuda"):\n        y = torch.ones(x.shape[0])\n    return x.cuda() + y.to(torch.device("cuda:1")) + torch.zeros(1, device="cuda")\n'
        self.assertIn("files", imported(source))

    def test_arguments_by_keyword_and_left_out(self):
        source = 'from typing import Optional\ndef f(x: "f32[n, h]", *, w: "f32[h]", b: "Optional[torch.Tensor]" = None, eps: float = 0.5):\n    return x * w + eps\n'
        op = json.loads(imported(source)["files"]["op.json"])
        self.assertEqual(list(op["inputs"]), ["x", "w"])

    def test_gradients_that_the_function_takes_itself(self):
        source = 'def f(x: "f32[n]"):\n    x = x.detach().requires_grad_(True)\n    torch.sin(x).sum().backward()\n    return x.grad\n'
        self.assertIn("cos(", reference(source))

    def test_a_median_is_an_element_and_its_index_is_refused(self):
        self.assertIn("files", imported('def f(x: "f32[n, h]"):\n    return x.median(-1).values\n'))
        self.assertIn("promises none", imported('def f(x: "f32[n, h]"):\n    return x.median(-1).indices\n')["refused"]["what"])

    def test_random_operators_are_refused_by_name(self):
        refused = imported('def f(x: "f32[n]"):\n    return x * torch.rand_like(x)\n')["refused"]
        self.assertIn("aten.rand_like.default draws random numbers", refused["what"])
        self.assertTrue(refused["cure"])

    def test_domains_follow_use(self):
        def domain(source, name):
            return json.loads(imported(source)["files"]["op.json"])["inputs"][name].get("domain")

        self.assertEqual(
            domain('def f(t: "f32[vocab, h]", i: "i64[n]"):\n    return F.embedding(i, t)\n', "i"),
            {"kind": "index", "of": "vocab"},
        )
        positive = "def f(x):\n    return torch.log(x)\ndef f_inputs():\n    return [torch.rand(6, 8) * 3 + 0.1]\n"
        self.assertEqual(domain(positive, "x")["kind"], "range")
        anything = "def f(x):\n    return torch.exp(x)\ndef f_inputs():\n    return [torch.randn(6, 8)]\n"
        self.assertIsNone(domain(anything, "x"))

    def test_extents_are_variables_unless_told_otherwise(self):
        source = 'def f(x: "f32[n, 24]"):\n    return x * 2\n'
        free = json.loads(imported(source)["files"]["op.json"])
        self.assertEqual({a["type"] for a in free["axes"].values()}, {"var"})
        fixed = json.loads(imported(source, specialised=True)["files"]["op.json"])
        self.assertEqual(fixed["inputs"]["x"]["shape"], [6, 24])

    def test_no_name_of_the_problem_becomes_code(self):
        source = 'def f(x: "f32[n]"):\n    y = x * 2  # */ " \\\\ \n    return y\n'
        text = reference(source)
        for line in text.splitlines():
            self.assertFalse(line.rstrip().endswith("\\"), line)

    def test_problems_of_the_corpus_that_are_to_be_refused_are(self):
        source = (CORPUS / "refused.py").read_text()
        for name, word in re.findall(r'def (\w+)\([^\n]*\n\s+"""(\w+)"""', source):
            with self.subTest(name):
                answer = imported(source, function=name)
                self.assertIn("refused", answer)
                self.assertIn(word, answer["refused"]["what"])
                self.assertTrue(answer["refused"]["cure"])


@unittest.skipUnless(shutil.which("c++"), "no C++ compiler")
class Truth(unittest.TestCase):
    """References against torch in f64, on the host. ASSAY_ALL_PROBLEMS=1 takes all of corpus/torch."""

    SOME = {
        "elementwise": ["mish", "int_mix", "elu_chain"],
        "norms": ["layer_norm_by_hand", "group_norm"],
        "rows": ["masked_softmax", "exclusive_cumprod", "sort_rows", "cross_entropy"],
        "products": ["mlp", "conv2d_strided", "conv_transposed", "bilinear_twice"],
        "attention": ["attention_window", "rope_interleaved", "decode_paged"],
        "indexed": ["graph_aggregate", "selective_state", "moe_route", "append_in_place"],
        "layers": ["transposed_dilated", "reflected_blur", "sampled"],
        "training": ["layer_norm_gradient", "max_pool_gradient"],
        "serving": ["cache_write", "ragged_mean", "int4_product", "segment_largest"],
        "spectral": ["fft_convolution", "transform_2d"],
        "scalars": ["dynamic_scale", "window_at", "write_at", "bias_corrected", "polar_rope", "running_logsumexp", "middle_of_rows", "mean_by_index"],
        "recurrent": ["gated_delta", "segsum"],
        "packed": ["nf4_lookup", "fp8_tensorwise", "page_gather_scale"],
    }

    def test_references_compute_what_the_functions_do(self):
        import host_truth

        problems = self.SOME
        if os.environ.get("ASSAY_ALL_PROBLEMS"):
            problems = {
                p.stem: re.findall(r"^def (\w+)", p.read_text(), re.M)
                for p in sorted(CORPUS.glob("*.py"))
                if p.stem not in ("refused", "import_all", "judge_kernels", "judge_shipped", "judging", "shipped")
            }
        for file, names in problems.items():
            for name in names:
                with self.subTest(f"{file}:{name}"):
                    compared = host_truth.compare(CORPUS / f"{file}.py", name)
                    self.assertNotIsInstance(compared, str)
                    self.assertLessEqual(compared[0], 1e-12, compared[1])

    def test_shipped_ops_are_imported_as_they_stand(self):
        """corpus/torch/shipped is what importing makes; ASSAY_REBASE=1 writes it again. Another torch may take a function apart
        differently: then what it makes is another text, which the other tests hold to the function."""
        import torch

        known = torch.__version__.startswith(GRAPHS_OF)
        path = CORPUS / "shipped.py"
        for name in re.findall(r"^def (\w+)", path.read_text(), re.M):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / "problem.py"
                copy.write_text(path.read_text())
                answer = package.answer({"kind": "torch", "path": str(copy), "function": name})
                self.assertNotIn("refused", answer)
                for file in ("op.json", "reference.cu", "reference.json"):
                    kept = CORPUS / "shipped" / name / file
                    if os.environ.get("ASSAY_REBASE"):
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        kept.write_text(answer["files"][file])
                    if not known and kept.read_text() != answer["files"][file]:
                        self.skipTest(f"torch {torch.__version__} makes another {file}; the kept ones are of {GRAPHS_OF}")
                    self.assertEqual(kept.read_text(), answer["files"][file])

    def test_a_wrong_reference_is_told(self):
        import host_truth

        answer = imported('def f(x: "f32[n, h]"):\n    return x.sum(-1)\n')
        answer["files"]["reference.cu"] = answer["files"]["reference.cu"].replace("k < h", "k < h - 1")
        host = host_truth.Host(answer["files"])
        x = host_truth.torch.ones(3, 4, dtype=host_truth.torch.float64)
        got = host.run({"n": 3, "h": 4}, {"x": x})["out"]
        self.assertGreater(host_truth.relative(x.sum(-1), got), 0.1)


if __name__ == "__main__":
    unittest.main()
