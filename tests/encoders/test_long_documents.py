"""A document of 200,000 words in bounded memory, by an encoder of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.encoders.long_reading import N_WORDS
from tests.encoders.tiny import ENCODERS

# Two layers of width 32 over all 222,000 tokens at once would take 890 MiB; tokens and offsets alone take 65.
MOST_MIB = 200
ROOT = Path(__file__).parents[2]
READING = "import sys; from tests.encoders.long_reading import long_reading; print(long_reading(sys.argv[1]))"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    "name", ["mean", "smith fixed normal", "smith-short", "matchbert fixed", "colde fixed", "tde fixed"]
)
def test_a_book_is_read_whole_in_bounded_memory(name: str, bert_folder: Path, tmp_path: Path) -> None:
    ENCODERS[name](bert_folder).save_pretrained(tmp_path / "encoder")
    command = [sys.executable, "-c", READING, str(tmp_path / "encoder")]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    n_tokens, n_chunks, grown_mib = map(int, process.stdout.split())
    assert n_tokens == N_WORDS * 11 // 10  # ten words and a full stop
    assert n_chunks >= n_tokens // 46
    assert grown_mib < MOST_MIB
