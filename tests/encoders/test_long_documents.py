"""A document of 80,000 words in bounded memory, by an encoder of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.encoders.long_reading import N_WORDS
from tests.encoders.tiny import ENCODERS

# Two layers of width 32 over all 88,000 tokens at once would take 350 MiB; tokens and offsets alone take 26.
MOST_MIB = 110
ROOT = Path(__file__).parents[2]
READING = "import sys; from tests.encoders.long_reading import long_readings; long_readings(sys.argv[1:])"
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
