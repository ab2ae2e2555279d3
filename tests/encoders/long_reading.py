"""Measures the memory that encoding one very long document takes; run by tests in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from engine.encoders.loading import load_trainable
from tests.fakes import make_document

N_WORDS = 80_000
_SENTENCE = "The quick brown fox jumps over the lazy old dog. "  # 10 words


def long_readings(encoder_folders: Sequence[str]) -> None:
    """Print a line for each encoder, each from a process of its own, which has the imports of this one."""
    for folder in encoder_folders:
        child = os.fork()
        if child == 0:
            sys.stdout.write(f"{long_reading(folder)}\n")
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(f"reading by {folder} ended with {os.waitstatus_to_exitcode(status)}")


def long_reading(encoder_folder: str) -> str:
    """The number of tokens read, of chunks, and of MiB by which the process grew at its peak."""
    encoder = load_trainable(encoder_folder, device="cpu", dtype=torch.float32)
    encoder.encode([make_document("short", _SENTENCE * 40)])  # what is allocated once
    before = _memory_mib("VmRSS")
    document = make_document("long", [("", _SENTENCE * 200) for _ in range(N_WORDS // 2000)])
    (encoded,) = encoder.encode([document])
    grown = _memory_mib("VmHWM") - before
    return f"{encoded.coverage.tokens_read} {len(encoded.chunks)} {grown}"


def _memory_mib(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(entry))
