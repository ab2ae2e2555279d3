from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.datasets import DATA, TASKS
from benchmarks.fetch import RECIPES
from benchmarks.fetching.sources import FOLDER, document_digest, judgment_lines, read_recorded, record, source_digest


def test_every_corpus_of_the_tasks_has_a_recipe_and_shipped_facts() -> None:
    assert set(RECIPES) == {task.folder for task in TASKS.values()}
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json.xz" for name in RECIPES}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("name", ["proposals", "clscisumm"])
def test_the_shipped_facts_are_those_of_the_recorded_corpus(name: str) -> None:
    shipped = read_recorded(name)
    found = record(DATA / name, RECIPES[name].given, shipped.source)
    assert replace(found, given={}) == replace(shipped, given={})
    assert found.given == shipped.given


def test_a_corpus_is_described_by_its_files(folder: Path) -> None:
    facts = record(folder, ["year"], "0123")
    assert facts.ids == ["cat", "kitten", "dog", "rocket"]
    assert facts.judgments == {"qrels.tsv": {"cat": {"2": ["kitten"], "1": ["dog"]}, "dog": {"1": ["cat"]}}}
    assert (facts.splits["splits.json"]["valid"], facts.query_ids, facts.source) == (["rocket"], [], "0123")
    assert facts.given["cat"] == {"year": 2020}


def test_judgments_are_written_by_query_and_then_by_target() -> None:
    judged = {"q": {"1": ["b", "c"], "2": ["a"]}, "p": {"1": ["z"]}}
    assert list(judgment_lines(judged)) == ["q\ta\t2\n", "q\tb\t1\n", "q\tc\t1\n", "p\tz\t1\n"]


def test_a_digest_sees_text_and_not_metadata() -> None:
    document = {"id": "a", "title": "T", "sections": [{"heading": "H", "text": "x"}], "meta": {"year": 1}}
    assert document_digest(document) == document_digest({**document, "meta": {}})
    assert document_digest(document) != document_digest({**document, "title": "U"})


def test_a_digest_of_sources_does_not_depend_on_the_order() -> None:
    assert source_digest({"a": b"1", "b": b"2"}) == source_digest({"b": b"2", "a": b"1"})
    assert source_digest({"a": b"1", "b": b"2"}) != source_digest({"a": b"2", "b": b"1"})
