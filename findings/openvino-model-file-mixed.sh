#!/usr/bin/env bash
# OpenVINO: copy a new model over the file of a compiled one, and the running encoder has new embeddings and old matrices.
#
# Expected: compile_model() makes a program for the device. What then happens to the file does not matter until it is compiled
# again; or, if the file is still read, the answers become those of the new model.
# What happens: the file of constants is mapped, not read. The matrices of linear layers are copied into another order as they are
# compiled; a table that only a Gather reads, such as that of token embeddings, stays in the file. After shutil.copyfile() or
# save_model() over it the answers are those of neither model. A file put in place by os.replace(), or ENABLE_MMAP=False, is safe.
# Who meets this: a search service whose encoder is updated in its folder while it runs; its queries no longer match the index.
# Versions: openvino 2026.4.1, on Linux. Source: pull request 12673 (mapping) and issue 30061 (the file is held) of
# openvinotoolkit/openvino, and 3734 of openvinotoolkit/open_model_zoo (do not write a file that is mapped).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openvino==2026.4.1 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import openvino
from openvino import opset13 as op

TOKENS, WIDTH = 5000, 64
folder = Path(sys.argv[1])
random = np.random.default_rng(0)
PARTS = {
    release: (random.normal(size=(TOKENS, WIDTH)).astype("float32"), random.normal(size=(WIDTH, WIDTH)).astype("float32"))
    for release in ("old", "new")
}
tokens = np.arange(100, dtype=np.int32)


def save(release: str, file: Path) -> None:
    table, matrix = PARTS[release]
    numbers = op.parameter([-1], np.int32)
    rows = op.gather(op.constant(table), numbers, op.constant(np.int32(0)))
    openvino.save_model(openvino.Model([op.matmul(rows, op.constant(matrix), False, False)], [numbers]), file)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(vectors: np.ndarray) -> dict[tuple[str, str], float]:
    """Of the vectors with those of each table of embeddings times each matrix."""
    return {
        (table, matrix): round(float((unit(vectors) * unit(PARTS[table][0][tokens] @ PARTS[matrix][1])).sum(1).mean()), 2)
        for table in PARTS
        for matrix in PARTS
    }


def after(update: str, **settings: bool) -> dict[tuple[str, str], float]:
    for release in PARTS:
        save(release, folder / f"{release}.xml")
    core = openvino.Core()
    core.set_property(settings)
    compiled = core.compile_model(folder / "old.xml", "CPU")
    before = cosines(compiled(tokens)[0])
    assert before["old", "old"] > 0.99, before
    if update == "save_model":
        save("new", folder / "old.xml")
    for suffix in (".bin", ".xml"):
        if update == "copyfile":
            shutil.copyfile(folder / f"new{suffix}", folder / f"old{suffix}")
        if update == "replace":
            os.replace(folder / f"new{suffix}", folder / f"old{suffix}")
    fresh = cosines(openvino.Core().compile_model(folder / "old.xml", "CPU")(tokens)[0])
    assert fresh["new", "new"] > 0.99, fresh
    found = cosines(compiled(tokens)[0])
    named = {f"{table} table, {matrix} matrix": value for (table, matrix), value in found.items()}
    print(f"{update} {settings or ''}: cosine with", named)
    return found


print("openvino", version("openvino"))
for update in ("copyfile", "save_model"):
    mixed = after(update)
    assert mixed["new", "old"] > 0.99 and abs(mixed["old", "old"]) < 0.2 and abs(mixed["new", "new"]) < 0.2
assert after("replace")["old", "old"] > 0.99
assert after("copyfile", ENABLE_MMAP=False)["old", "old"] > 0.99
PYTHON
