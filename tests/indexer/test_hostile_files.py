"""Every hostile construction is read, or refused with its reason, within the limits of one document."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from engine.readers import Unreadable
from engine.text.document import Document
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest
from tests.indexer.hostile_files import FILES

LIMITS = ReadLimits(seconds=2.0, memory_bytes=512 * 2**20)
START_SECONDS = 4.0  # processor time of two processes that start, and import the parsers
PROGRAM_BYTES = 200 * 2**20  # that a process holds beside a document: modules and tables of parsers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="documents are read without limits there")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_stays_within_the_limits(tmp_path: Path, name: str) -> None:
    path, after = tmp_path / name, tmp_path / "after.txt"
    path.write_bytes(FILES[name]())
    after.write_text("The next document.")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with DocumentReader(LIMITS) as reader:
        *found, last = reader.read([ReadRequest(str(path)), ReadRequest(str(after))])
        peak = _peak_bytes(reader.pid)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert isinstance(last, Document) and last.text == "The next document."
    assert len(found) == 1
    if isinstance(found[0], Unreadable):
        assert found[0].reason
        assert not found[0].reason.startswith(("no answer", "the process that read it was killed", "the reader failed"))
    assert spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime <= 1.2 * LIMITS.seconds + START_SECONDS
    assert peak <= 1.2 * LIMITS.memory_bytes + PROGRAM_BYTES


def _peak_bytes(pid: int | None) -> int:
    """The most memory that a process has held; 0 where the system has no such file."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
