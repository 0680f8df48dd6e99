#!/usr/bin/env python3
"""Writes ops/OP/transcript.jsonl from the replies in ops/OP/transcript/1.md, 2.md, ...

A hand-written transcript is edited as Markdown, one reply a file; runs/transcript_test.cc checks that the two agree.

    scripts/write_transcript.py ops/embedding_rmsnorm_backward
"""
import json
import pathlib
import sys

op = pathlib.Path(sys.argv[1])
replies = sorted((op / "transcript").glob("*.md"), key=lambda p: int(p.stem))
header = {
    "schema": "assay.transcript/1",
    "written": "by hand",
    "note": "written by hand for the demo: no model was asked. Three wrong attempts and a right one.",
    "instance": op.name,
    "model": "a person",
}
with open(op / "transcript.jsonl", "w") as out:
    print(json.dumps(header), file=out)
    for n, reply in enumerate(replies, 1):
        print(json.dumps({"type": "exchange", "name": f"attempt-{n}", "reply": {"text": reply.read_text(), "stop": "end"}}), file=out)
