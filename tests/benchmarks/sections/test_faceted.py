from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.datasets import DATA, DatasetError
from benchmarks.sections.faceted import facet_sections, open_facets, read_labelled


def test_labels_are_headings_and_not_in_the_text(faceted_folder: Path) -> None:
    document = next(iter(read_labelled(faceted_folder / "corpus.jsonl.gz")))
    texts = [document.text[section.start : section.stop].strip() for section in document.sections]
    assert texts == ["On q", "cats sleep all day", "we count cats with care", "ten cats"]
    assert [section.heading for section in document.sections] == ["", "background", "method", "result"]
    assert document.sections[-1].stop == len(document.text)


def test_objectives_are_background(faceted_folder: Path) -> None:
    documents = {document.doc_id: document for document in read_labelled(faceted_folder / "corpus.jsonl.gz")}
    assert facet_sections(documents["same background"], "background") == {1}
    assert facet_sections(documents["no method"], "method") == frozenset()


def test_candidates_judged_irrelevant_are_there_and_the_query_is_not(faceted_folder: Path) -> None:
    background, method, _ = open_facets(faceted_folder)
    assert background.qrels["q"] == {"same background": 3, "same method": 0, "no method": 0, "far": 1}
    assert "far" not in method.qrels["far"]
    assert (method.folds, method.dataset[:7]) == ({"q": 1, "far": 2}, "facets@")
    assert background.dataset != method.dataset


def test_a_missing_file_is_told(faceted_folder: Path) -> None:
    (faceted_folder / "qrels_method.tsv").unlink()
    with pytest.raises(DatasetError, match=r"facets holds no qrels_method.tsv; pass the folder of a faceted corpus"):
        open_facets(faceted_folder)


def test_folds_that_do_not_part_the_queries_are_refused(faceted_folder: Path) -> None:
    splits = json.loads((faceted_folder / "splits.json").read_text())
    (faceted_folder / "splits.json").write_text(json.dumps({**splits, "method_fold2_test": ["q"]}))
    with pytest.raises(DatasetError, match=r"2 queries of 'method' must be in exactly one .* 2 entries for 1 queries"):
        open_facets(faceted_folder)


def test_a_line_without_sections_is_told(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as file:
        file.write('{"id": 1, "title": "a"}\n')
    with pytest.raises(DatasetError, match=r"line 1: KeyError.'sections'.; a line must be an object with id"):
        list(read_labelled(tmp_path / "corpus.jsonl.gz"))


@pytest.mark.needs_data
@pytest.mark.skipif(not (DATA / "csfcube").is_dir(), reason="csfcube is absent")
def test_csfcube_has_fifty_queries_whose_candidates_are_all_in_the_corpus() -> None:
    tasks = open_facets(DATA / "csfcube")
    assert [len(task.qrels) for task in tasks] == [16, 17, 17]
    names = {document.doc_id for document in read_labelled(tasks[0].corpus)}
    assert len(names) == 4205
    assert all(candidate in names for task in tasks for judged in task.qrels.values() for candidate in judged)
