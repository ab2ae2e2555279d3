"""Folders, packages and devices that do not fit a training run are refused before anything is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.errors import EncoderError, MissingExtra, TrainingError
from indexer.training.run import check_start


def test_a_new_folder_an_empty_one_and_that_of_a_run_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "run").mkdir(parents=True)
    (tmp_path / "begun" / "README.md").touch()
    (tmp_path / "indexed" / "indexes").mkdir(parents=True)
    (tmp_path / "indexed" / ".gitattributes").touch()
    for name in ("new", "empty", "begun", "indexed"):
        check_start(tmp_path / name, "all-MiniLM-L6-v2", "cpu")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").touch()
    message = (
        rf"^{tmp_path} holds corpus.jsonl, and no run to go on with; OUT, which comes first, must be a new folder$"
    )
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, "all-MiniLM-L6-v2", "cpu")
    with pytest.raises(TrainingError, match=rf"^{tmp_path / 'corpus.jsonl'} is a file; name a folder for the encoder$"):
        check_start(tmp_path / "corpus.jsonl", "all-MiniLM-L6-v2", "cpu")


def test_the_encoder_itself_is_not_overwritten(tmp_path: Path) -> None:
    message = rf"^{tmp_path} is the encoder that training starts from; name another folder for the new one$"
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, str(tmp_path / "." / ""), None)


def test_a_missing_package_is_an_error_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtra, match=r"^training needs accelerate; install it: pip install 'accelerate"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "cpu")


def test_a_missing_device_is_an_error_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"^device 'tpu' cannot be used \(.+\); see what there is: longmatch d"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "tpu")
