from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.report import drawn
from benchmarks.training import TrainingRecord, main, training_table
from engine.training.run.history import History

SETTINGS = {"seed": 3, "queries": 20, "losses": "maxsim=1", "label": None}


def make_run(folder: Path) -> Path:
    folder.mkdir()
    recipe = {"command": "train", "corpora": {"pets": "0a", "cars": "0b"}, "settings": SETTINGS, "changes": []}
    (folder / "recipe.json").write_text(json.dumps(recipe))
    history = History.begin(folder / "history.csv")
    history.add_validation(0, "nDCG@10", {"pets": 0.2, "cars": 0.4})
    history.add_step(1, {"loss": 2.0}, learning_rate=1e-5, tokens_per_second=10.0, seconds=1.5)
    history.add_validation(1, "nDCG@10", {"pets": 0.4, "cars": 0.5})
    history.add_step(2, {"loss": 1.0}, learning_rate=1e-5, tokens_per_second=10.0, seconds=3.25)
    history.add_validation(2, "nDCG@10", {"pets": 0.1, "cars": 0.5})
    return folder


def test_a_record_holds_the_course_of_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    options = ["--name", "tried", "--note", "a thing", "--commit", "0123456789ab", "--dirty", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, [str(run), *options]).output == "training-tried.json\n"
    (record,) = (each for each in read_records(tmp_path) if isinstance(each, TrainingRecord))
    assert (record.n_steps, record.seconds, record.valid_steps) == (2, 3.2, [0, 1, 2])
    assert record.valid["pets"] == [0.2, 0.4, 0.1]
    assert record.settings == SETTINGS
    assert (record.origin.commit, record.origin.is_dirty, record.origin.seed) == ("0123456789ab", True, 3)
    table = drawn("<!-- results:training -->\n<!-- /results -->", [record]).splitlines()
    row = "| tried | a thing | 2 x 20 | 0.200, 0.400, 0.100 | 0.400, 0.500, 0.500 | 0.300, 0.450, 0.300 |"
    assert table[3] == row


def test_a_corpus_that_a_run_did_not_have_is_left_blank(tmp_path: Path) -> None:
    CliRunner().invoke(main, [str(make_run(tmp_path / "run")), "--name", "both", "--out", str(tmp_path)])
    (both,) = (each for each in read_records(tmp_path) if isinstance(each, TrainingRecord))
    one = replace(both, run="cars", corpora={"cars": "0b"}, valid={"cars": [0.4, 0.5], "mean": [0.4, 0.5]})
    head, _, *rows = training_table([one, both]).splitlines()[:4]
    assert head.endswith("| cars | pets | mean |")
    assert rows[0].endswith("| 0.400, 0.500, 0.500 |  | 0.400, 0.500, 0.500 |")
    assert rows[1].endswith("| 0.400, 0.500, 0.500 | 0.200, 0.400, 0.100 | 0.300, 0.450, 0.300 |")


def test_the_error_for_a_folder_that_is_not_a_run_names_the_folder_to_pass(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path), "--name", "x"])
    assert done.exit_code == 1
    assert "name the folder OUT/run of longmatch train" in done.stderr
