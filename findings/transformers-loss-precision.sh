#!/usr/bin/env bash
# transformers: with bf16=True the Trainer computes a loss of one's own in float32; only the call of the model is in bfloat16.
#
# Expected: `compute_loss` is called inside of `compute_loss_context_manager()`, which with bf16=True is autocast. So products of
# a contrastive loss, such as all queries by all documents, are bfloat16.
# What happens: the context is empty. accelerate wraps `forward` of the model alone, and converts what it returns to float32. A
# product in the loss, and every part of a model that is called past `forward`, is float32, at the speed and memory of float32.
# Nothing says so. `trainer.accelerator.autocast()` is the context that knows the precision.
# Who meets this: dual encoders, whose loss multiplies large batches of vectors, and heads that only a loss calls.
# Versions: transformers 5.23.0, accelerate 1.15.0, torch 2.13.0. Source: `autocast_smart_context_manager` of transformers/trainer.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --extra-index-url https://download.pytorch.org/whl/cpu \
    torch==2.13.0 transformers==5.23.0 accelerate==1.15.0 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON' 2>/dev/null
import sys

import torch
import transformers

dtypes: dict[str, torch.dtype] = {}


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        dtypes["layer, inside of forward"] = self.layer(x).dtype
        return self.layer(x)


class Contrastive(transformers.Trainer):
    def compute_loss(self, model, inputs, **_):
        vectors = model(inputs["x"])
        dtypes["vectors that forward returns"] = vectors.dtype
        dtypes["product in compute_loss"] = (vectors @ vectors.T).dtype
        dtypes["layer, called past forward"] = model.layer(inputs["x"]).dtype
        with self.accelerator.autocast():
            dtypes["product in accelerator.autocast()"] = (vectors @ vectors.T).dtype
        return (vectors @ vectors.T).logsumexp(1).mean()


print("transformers", transformers.__version__)
arguments = transformers.TrainingArguments(sys.argv[1], max_steps=1, bf16=True, use_cpu=True, report_to="none", disable_tqdm=True)
Contrastive(Encoder(), arguments, train_dataset=[{"x": torch.ones(8)} for _ in range(8)]).train()
for place, dtype in dtypes.items():
    print(f"{place:36} {dtype}")
low, full = torch.bfloat16, torch.float32
assert list(dtypes.values()) == [low, full, full, full, low]
PYTHON
