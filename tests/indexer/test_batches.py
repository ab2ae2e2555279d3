"""Small files are sent to the reading process together, and everything else is sent alone."""

from __future__ import annotations

from pathlib import Path

from indexer.reading.batches import batches
from indexer.reading.requests import Request


def _requests(folder: Path, sizes: dict[str, int]) -> list[Request]:
    for name, size in sizes.items():
        (folder / name).write_bytes(b"x" * size)
    return [Request(str(folder / name), name) for name in sizes]


def _names(folder: Path, sizes: dict[str, int]) -> list[list[str | None]]:
    return [[request.doc_id for request in batch] for batch in batches(_requests(folder, sizes))]


def test_a_batch_ends_at_a_number_of_files(tmp_path: Path) -> None:
    found = _names(tmp_path, {f"{at}.txt": 10 for at in range(70)})
    assert [len(batch) for batch in found] == [32, 32, 6]
    assert [name for batch in found for name in batch] == [f"{at}.txt" for at in range(70)]


def test_a_batch_ends_at_a_number_of_bytes(tmp_path: Path) -> None:
    half = 2**18
    sizes = {"a.txt": half, "b.txt": half, "c.txt": 1, "d.pdf": 2**20, "e.txt": 1, "f.txt": half}
    assert _names(tmp_path, sizes) == [["a.txt", "b.txt"], ["c.txt"], ["d.pdf"], ["e.txt", "f.txt"]]


def test_files_of_many_documents_single_lines_and_missing_files_are_sent_alone(tmp_path: Path) -> None:
    [first, lines, last] = _requests(tmp_path, {"a.txt": 1, "b.jsonl.gz": 1, "c.txt": 1})
    line, missing = Request("stdin:1", line=b"{}"), Request(str(tmp_path / "no.txt"))
    found = list(batches([first, last, lines, line, first, missing, last, first]))
    assert found == [[first, last], [lines], [line], [first], [missing], [last, first]]


def test_a_batch_draws_at_most_one_request_ahead(tmp_path: Path) -> None:
    requests = iter(_requests(tmp_path, {f"{at}.txt": 10 for at in range(70)}))
    next(batches(requests))
    assert next(requests).doc_id == "33.txt"
