"""Lowers what people have, a PyTorch function, to what Assay judges by: an op folder.

Runs in the jail (importers/import.cc starts it), with torch and the standard library alone, and
writes one JSON document; nothing else leaves. The way of a problem:

    problems.py   finds the function, its example inputs, what else the problem file says
    export.py     torch.export with every extent free, core ATen operators; torch ends here
    graph.py      the exported graph as plain data
    table.py      one row an operator: how it is lowered, what is charged, or why it is refused
    lower.py      graph -> values (values.py), each an expression over index variables (index.py)
    kernels.py    values -> kernels: what is fused, what is a workspace, which loops there are
    opfile.py     axes, domains, properties; op.json, reference.json, workloads, the naive candidate
    truth.py      the same graph in f64 by torch itself, for `--check`
"""
