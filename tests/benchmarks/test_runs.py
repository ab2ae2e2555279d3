from __future__ import annotations

from pathlib import Path

from benchmarks.runs import rank, write_trec
from benchmarks.systems import DocumentCosine, Searchable
from engine.document import Document


def test_a_run_holds_every_query_in_order(index: Searchable) -> None:
    queries = [Document(doc_id, "", "", ()) for doc_id in ("rocket", "cat")]
    run, seconds = rank(DocumentCosine(index, "mean"), queries, k=1)
    assert {query_id: ranking[0][0] for query_id, ranking in run.items()} == {"rocket": "dog", "cat": "kitten"}
    assert list(run) == ["rocket", "cat"]
    assert 0 <= seconds < 10


def test_a_trec_file_has_six_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "pets.trec"
    write_trec({"cat": [("kitten", 0.8), ("dog", 1 / 3)], "dog": []}, path, "document")
    assert path.read_text() == "cat Q0 kitten 1 0.8 document\ncat Q0 dog 2 0.33333333 document\n"
