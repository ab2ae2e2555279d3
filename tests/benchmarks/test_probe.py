from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.probing import FrozenVectors, LabelledCorpus, open_labelled
from benchmarks.runs import Case, Run, read_header, read_run, run_files
from benchmarks.systems import BuildCost
from benchmarks.tables.encoders import ProbeDetails, probe_table
from benchmarks.tasks.probe import ProbeTrial, main, measure
from indexer.origin import Origin
from tests.benchmarks.labelled_corpus import write_labelled

pytest.importorskip("sklearn")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_labelled(tmp_path / "places")


def vectors_of(corpus: LabelledCorpus, misplaced: str) -> FrozenVectors:
    """Each class has a direction of its own; one document has that of the other class."""
    directions = {"sea": [1.0, 0.0], "sky": [0.0, 1.0]}
    rows = [directions[corpus.labels[doc_id]][:: -1 if doc_id == misplaced else 1] for doc_id in corpus.doc_ids]
    places = {doc_id: place for place, doc_id in enumerate(corpus.doc_ids)}
    return FrozenVectors("document", "fake@0", places, np.array(rows, np.float32), BuildCost(2.5, 700))


def test_a_run_holds_the_accuracy_of_each_document_and_draw(folder: Path, origin: Origin) -> None:
    corpus = open_labelled(str(folder))
    run = measure(vectors_of(corpus, "test-sky2"), ProbeTrial(corpus, (1, 5), 4, origin))
    details = run.details_as(ProbeDetails)
    assert [case.id for case in run.cases if not case.values["accuracy"]] == ["test-sky2"]
    sea, sky = 2 * 6 / (2 * 6 + 1), 2 * 5 / (2 * 5 + 1)
    assert (run.mean("accuracy"), details.macro_f1) == (round(11 / 12, 4), round((sea + sky) / 2, 4))
    assert details.few_shot["5"]["accuracy"] == [round(11 / 12, 4)] * 4
    assert (details.n_train, details.n_valid, len(run.cases), run.n_tokens) == (16, 8, 12, 700)
    assert run.name == "places-document-fake-test"


def test_the_command_writes_a_run_and_a_table(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "tfidf", "--shots", "2,4", "--draws", "3", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    assert "| Task (test) | System | Accuracy [95 %] | Macro-F1 | 2 a class | 4 a class | p, TF-IDF |" in done.output
    assert "| places (12) | tfidf | 1.000 [1.000, 1.000] | 1.000 | 1.000 ± 0.000 / 1.000 ± 0.000 |" in done.output
    (run,) = map(read_run, run_files(tmp_path / "out"))
    assert run.origin.command.endswith("run probe places --systems tfidf --shots 2,4 --draws 3")
    few = {"accuracy": [1.0] * 3, "macro_f1": [1.0] * 3}
    assert run.details_as(ProbeDetails).few_shot == {"2": few, "4": few}


@pytest.mark.slow
def test_an_encoders_vectors_are_made_once(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    options = ["--encoder", str(bert_folder), "--systems", "document", "--shots", "2", "--draws", "2"]
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    tokens = []
    for _ in range(2):
        assert CliRunner().invoke(main, [str(folder), *options, *places], catch_exceptions=False).exit_code == 0
        tokens += [read_header(path)["n_tokens"] for path in run_files(tmp_path / "out")]
    assert tokens[0] > 0 and tokens[1] == 0
    assert len(list((tmp_path / "work").iterdir())) == 1


def probe(system: str, wrong: int, origin: Origin, *, groups: str = "") -> Run:
    """Twelve documents, the first of which are classified wrongly."""
    details = ProbeDetails(False, 2, 20, 10, 0.4, {"5": {"accuracy": [0.25, 0.75], "macro_f1": [0.5, 0.5]}})
    cases = [
        Case(id=str(number), values={"accuracy": float(number >= wrong)}, group=groups[number : number + 1])
        for number in range(12)
    ]
    name, _, encoder = system.partition(", ")
    named = {"task": "probe", "dataset": "places@0", "system": name, "encoder": encoder and f"{encoder}@1"}
    return Run(**named, details=asdict(details), origin=origin, cases=cases)


def cells_of(table: str, system: str) -> list[str]:
    return next(line.split(" | ")[2:] for line in table.splitlines() if line.split(" | ")[1] == system)


def test_p_values_are_adjusted_over_the_systems_of_a_task(origin: Origin) -> None:
    runs = [probe("tfidf", 6, origin), probe("document, good", 0, origin), probe("document, fair", 3, origin)]
    table = probe_table(runs)
    for name, p in (("document, good", 2 * 2 / 2**6), ("document, fair", 2 / 2**3)):
        assert cells_of(table, name)[-1] == f"{p:.3f} |"
    assert cells_of(table, "tfidf") == ["0.500 [0.250, 0.750]", "0.400", "0.500 ± 0.354 / 0.500 ± 0.000", " |"]


def test_seeds_of_training_are_one_row(origin: Origin) -> None:
    first, second = probe("document, good", 0, origin), probe("document, good-seed1", 3, origin)
    second.details["few_shot"]["5"]["accuracy"] = [0.75, 0.75]
    table = probe_table([probe("tfidf", 6, origin), second, first])
    accuracy, _, few, _ = cells_of(table, "document, good, 2 seeds")
    assert accuracy.startswith("0.875 [") and accuracy.endswith(" ± 0.177")
    assert few == "0.625 ± 0.177 / 0.500 ± 0.000"
    assert "good-seed1" not in table
    second.details["few_shot"] = {}
    assert "document, good-seed1" in probe_table([second, first])
