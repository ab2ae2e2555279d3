"""A document of 80,000 words in bounded memory, by an encoder of each kind."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from engine.encoders.loading import load_trainable
from tests.encoders.tiny import ENCODERS
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


# Two layers of width 32 over all 88,000 tokens at once would take 350 MiB; tokens and offsets alone take 26.
MOST_MIB = 110
ROOT = Path(__file__).parents[2]
READING = "import sys; from tests.encoders.test_long_documents import long_readings; long_readings(sys.argv[1:])"
NAMES = ["mean", "smith fixed normal", "smith-short", "matchbert fixed", "colde fixed", "tde fixed"]


@pytest.fixture(scope="module")
def readings(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """Tokens, chunks and memory by encoder."""
    folder = tmp_path_factory.mktemp("long")
    for name in NAMES:
        ENCODERS[name](bert_folder).save_pretrained(folder / name)
    command = [sys.executable, "-c", READING, *(str(folder / name) for name in NAMES)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    return {name: [int(number) for number in line.split()] for name, line in zip(NAMES, lines, strict=True)}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", NAMES)
def test_a_book_is_read_whole_in_bounded_memory(name: str, readings: dict[str, list[int]]) -> None:
    n_tokens, n_chunks, grown_mib = readings[name]
    assert n_tokens == N_WORDS * 11 // 10  # ten words and a full stop
    assert n_chunks >= n_tokens // 46
    assert grown_mib < MOST_MIB
