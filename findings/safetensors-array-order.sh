#!/usr/bin/env bash
# safetensors: save_file() of a NumPy array in Fortran order writes the values in other places, and load_file() returns them so.
#
# Expected: a saved array is equal to the loaded one, in whatever order NumPy keeps it in memory; releases up to 0.7.0 copy it
# into C order first. Where a release cannot do that it raises an error, as safetensors.torch does for a transposed tensor.
# What happens: 0.8.0 writes the memory as it lies, with the shape of the array. The file is valid, shape and type are right, and
# the values are those of another matrix: a transposed one folded into the old shape. A projection of scipy or of a PCA of
# scikit-learn is in Fortran order, so vectors that are projected with the loaded file are noise. Nothing is logged.
# Who meets this: whoever saves a matrix of linear algebra beside a model. np.ascontiguousarray() before saving helps.
# Versions: safetensors 0.7.0 and 0.8.0. Source: issue 825 of safetensors/safetensors.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@" 2>/dev/null; }

cat >"$folder/order.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import scipy.linalg
from safetensors.numpy import load_file, save_file

random = np.random.default_rng(0)
rotation, _ = scipy.linalg.qr(random.normal(size=(64, 64)))
path, right = sys.argv[1] + "/rotation.safetensors", sys.argv[2] == "right"
save_file({"fortran": rotation, "c": np.ascontiguousarray(rotation)}, path)
loaded = load_file(path)
vectors = random.normal(size=(1000, 64))
cosine = np.mean(
    [np.dot(a, b) / np.dot(a, a) for a, b in zip(vectors @ rotation, vectors @ loaded["fortran"])]
)  # a rotation keeps lengths
print(f"safetensors {version('safetensors')}: Fortran order {rotation.flags.f_contiguous}, contiguous and dense")
print(f"equal after loading: {np.array_equal(loaded['fortran'], rotation)}; mean cosine of projected vectors {cosine:.3f}")
assert rotation.flags.f_contiguous and not rotation.flags.c_contiguous
assert np.array_equal(loaded["c"], rotation)
assert np.array_equal(loaded["fortran"], rotation) == right
assert np.array_equal(loaded["fortran"], rotation.T) != right
PYTHON
pip numpy==2.4.6 scipy==1.17.1 safetensors==0.7.0
"$folder/venv/bin/python" "$folder/order.py" "$folder" right
pip safetensors==0.8.0
"$folder/venv/bin/python" "$folder/order.py" "$folder" wrong
