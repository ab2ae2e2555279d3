from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.isolation import Percentiles
from benchmarks.peers import stages
from benchmarks.peers.stages import WARM_UP, build, search
from benchmarks.systems import Ranking, Settings
from engine.text.document import Document
from tests.fakes import make_document

DOCUMENTS = {f"d{number}": make_document(f"d{number}", f"word{number}") for number in range(8)}


class Timetable:
    """A peer on a clock of its own: making it takes 100 s, building 10, opening 2, the n-th search n ms."""

    name = "timetable"
    encoder = "none@0"
    keeps_text = False
    reads = 7

    def __init__(self) -> None:
        self.settings: Settings = {"made": True}
        self.n_searches = 0
        Timetable.now += 100

    now = 0.0

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        (folder / "kept").write_text(" ".join(document.doc_id for document in documents))
        self.settings["built"] = True
        Timetable.now += 10

    def open(self, folder: Path) -> None:
        self._doc_ids = (folder / "kept").read_text().split()
        Timetable.now += 2

    def search(self, query: Document, k: int) -> Ranking:
        self.n_searches += 1
        Timetable.now += self.n_searches / 1000
        return [(doc_id, 1.0) for doc_id in self._doc_ids if doc_id != query.doc_id][:k]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timetable, "now", 0.0)
    monkeypatch.setattr(stages, "time", SimpleNamespace(perf_counter=lambda: Timetable.now))


def test_loading_is_no_part_of_building(tmp_path: Path) -> None:
    built = build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    assert (built.load_seconds, built.seconds, built.n_documents, built.reads) == (100, 10, 8, 7)
    assert built.settings == {"made": True, "built": True}  # as they are when it is built
    assert built.size_bytes == len("d0 d1 d2 d3 d4 d5 d6 d7")
    assert 0 < built.start_mib <= built.peak_mib


def test_a_warm_up_is_not_counted(tmp_path: Path) -> None:
    build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    queries = {name: DOCUMENTS[name] for name in ("d1", "d2", "d3", "d4")}
    searched = search(Timetable, queries, 2, tmp_path)
    assert searched.open_seconds == 2
    times = [WARM_UP + number for number in (1, 2, 3, 4)]  # milliseconds
    assert searched.latency == Percentiles(sum(times) / 4, pytest.approx(6.85), pytest.approx(6.97))
    assert searched.rankings["d1"] == [("d0", 1.0), ("d2", 1.0)]
