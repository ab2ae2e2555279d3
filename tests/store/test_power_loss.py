"""Every disk that a power loss may leave during an operation opens with all that was reported, and can go on.

Each night: `STATES=3000 pytest tests/store/test_power_loss.py -o junit_family=xunit1 --junitxml=counts.xml` opens about
so many disks of each operation, some at each moment between two system calls. Otherwise a few of two are opened.
"""

import os
import re
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import EncoderError, EngineError
from engine.index import Index
from engine.search.request import Request
from engine.store.writable import WritableIndex
from indexer.building.builder import build
from indexer.searches import Watch
from indexer.upkeep.verify import verify
from tests.contents import Contents, DocumentContents, read_contents
from tests.store.crashing import Trace, record, write_disk
from tests.store.test_interruptions import DOCUMENTS, OPERATIONS, contents_of

N_STATES = int(os.environ.get("STATES", "0"))  # of each operation, about
N_FEW = 24  # of some operations, without that
SOME = ("gain vectors", "update and prune", "backup and restore")
NEXT_STEP = re.compile(r"longmatch |run the command|index it|restore ")
Documents = dict[str, DocumentContents]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")]


def main(name: str, root: Path, mark: Path) -> None:
    """Run an operation, and open `mark` for writing whenever a commit is reported."""
    transaction = WritableIndex._transaction

    @contextmanager
    def marked(self: WritableIndex, *values: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
        with transaction(self, *values, **options) as connection:
            yield connection
        mark.write_bytes(b"")

    if name == "watch":
        with watched(root / "x.lm", root / "state.json").saved():
            mark.write_bytes(b"")  # hits are printed
    else:
        WritableIndex._transaction = marked  # type: ignore[method-assign]
        OPERATIONS[name][1](root)
    mark.write_bytes(b"")


def watched(folder: Path, state: Path) -> Watch:
    """A standing question that was searched once more."""
    watch = Watch(state, folder)
    with Index.open(folder) as index:
        watch.search(index, DOCUMENTS[0], Request())
    return watch


def seen_in(path: Path) -> Documents | str:
    """The documents that a reader sees, once a query has run; or why it is refused."""
    try:
        documents = read_contents(path, []).documents
        with Index.open(path) as index:
            for doc_id in sorted(documents)[:1]:
                with suppress(EncoderError):  # a document that waits for vectors needs the encoder of the writer
                    assert index.search(doc_id).hits
    except EngineError as error:
        return str(error)
    return documents


@dataclass
class Study:
    """The disks of one operation, and what was wrong with them."""

    name: str
    trace: Trace
    disk: Path
    expected: Contents
    n_disks: int = 0
    n_finished: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, int, str]] = field(default_factory=list)

    def run(self, n_states: int) -> None:
        """Open each disk once; run the operation again on some."""
        place, rng = self.disk / OPERATIONS[self.name][2], np.random.default_rng(0)
        reported: list[tuple[int, Documents | str]] = []
        for n in [0, *self.trace.marks]:
            write_disk(self.trace.disk(range(n)), self.disk)
            reported.append((n, seen_in(place)))
        for n, changes in self._disks(n_states, rng):
            write_disk(self.trace.disk(changes), self.disk)
            self.n_disks += 1
            before, later = [seen for at, seen in reported if at <= n][-1], [seen for at, seen in reported if at > n]
            try:
                wrong = self._wrong(seen_in(place), before, later[:1])
                if not wrong and rng.random() < max(0.05, 8 / n_states):
                    self.n_finished += 1
                    OPERATIONS[self.name][1](self.disk)
                    if (verify(place), contents_of(place)) != ([], self.expected):
                        wrong = "the same command does not finish it"
            except Exception:  # noqa: BLE001 - each is listed
                wrong = traceback.format_exc()
            if wrong:
                self.wrong.append((n, len(changes), wrong))

    def _wrong(self, seen: Documents | str, before: Documents | str, later: list[Documents | str]) -> str:
        if not isinstance(seen, str):
            return "" if seen in (before, *later) else "other documents"
        if not isinstance(before, str):
            self.refused[seen.replace(str(self.disk), "")] += 1
        return "" if isinstance(before, str) or not before or NEXT_STEP.search(seen) else seen

    def _disks(self, n_states: int, rng: np.random.Generator) -> Iterator[tuple[int, list[int]]]:
        """The number of changes before a power loss, and those on disk."""
        moments, seen = list(self.trace.moments()), set()
        for n, n_syncs in moments:
            if n in self.trace.marks or rng.random() < n_states / len(moments) / 3:
                for changes in self.trace.disks(n, n_syncs, rng, max(1, n_states // len(moments) // 3)):
                    if tuple(changes) not in seen:
                        seen.add(tuple(changes))
                        yield n, changes


def study(name: str, folder: Path) -> Study:
    begin, _, place = OPERATIONS[name]
    (root := folder / "root").mkdir()
    begin(root)
    trace = record(__name__, name, root)
    return Study(name, trace, folder / "disk", contents_of(root / place))


def test_every_disk_after_a_power_loss_holds_the_state_of_a_watch(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    build(root / "x.lm", DOCUMENTS[:6], encoder=None, encode="none")
    with watched(root / "x.lm", root / "state.json").saved():
        pass
    before = Watch(root / "state.json", root / "x.lm")._reported
    build(root / "x.lm", DOCUMENTS, encoder=None, encode="none")
    trace, rng = record(__name__, "watch", root), np.random.default_rng(0)
    after = Watch(root / "state.json", root / "x.lm")._reported
    assert before != after
    printed, _ = trace.marks
    for n, n_syncs in trace.moments():
        for changes in trace.disks(n, n_syncs, rng, 99):
            write_disk(trace.disk(changes), tmp_path / "disk")
            seen = Watch(tmp_path / "disk" / "state.json", root / "x.lm")._reported
            assert seen == before or n > printed
            assert seen == after or n_syncs < len(trace.synced)  # the last is that of the folder


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("name", OPERATIONS if N_STATES else SOME)
def test_every_disk_after_a_power_loss_holds_all_reported_commits(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    of_operation = study(name, tmp_path)
    of_operation.run(N_STATES or N_FEW)
    for key in ("n_disks", "n_finished", "refused"):
        record_property(key, str(getattr(of_operation, key)))
    assert of_operation.wrong == []


def test_a_missing_sync_is_found(tmp_path: Path) -> None:
    of_operation = study("gain vectors", tmp_path)
    of_operation.trace.synced.clear()
    of_operation.run(N_FEW)
    assert of_operation.wrong or of_operation.refused


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
