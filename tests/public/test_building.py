"""Building an index from Python, and what is shown meanwhile."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas
import pytest

import longmatch
from engine.errors import DocumentError, IndexBusy, IndexMismatch
from engine.store.writer import Writer
from indexer.building.builder import remove_stub
from indexer.building.report import BuildReport
from longmatch.writing import is_shown, listening, progress_log
from tests.fakes import FakeEncoder, Terminal

TEXTS = ["The fox hunts at night.", "A dog sleeps all day.", "Rivers run to the sea."]


def build(path: Path, source: Any, **options: Any) -> longmatch.Index:  # noqa: ANN401
    return longmatch.build(path, source, encoder=FakeEncoder(), **options)


def test_a_second_build_changes_only_what_changed(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", TEXTS).close()
    with build(tmp_path / "x.lm", [*TEXTS[1:], "New words."], prune=True) as index:
        assert (index.report.n_added, index.report.n_unchanged, index.report.n_removed) == (1, 2, 1)


def test_a_table_is_indexed_by_its_columns(tmp_path: Path) -> None:
    table = pandas.DataFrame({"doi": ["a", "b"], "abstract": TEXTS[:2], "year": [2019, 2021]})
    with build(tmp_path / "x.lm", table, text="abstract", id="doi") as index:
        assert list(index) == ["a", "b"]
        assert [hit.doc_id for hit in index.search("A dog sleeps", where={"year": {">": 2020}})] == ["b"]


def test_an_empty_index_can_be_made_and_filled(tmp_path: Path) -> None:
    with build(tmp_path / "x.lm", []) as index:
        assert len(index) == 0
        index.add(TEXTS)
        assert len(index) == 3


def broken() -> Iterator[str]:
    yield TEXTS[0]
    raise RuntimeError("the database is gone")


def in_vain() -> Iterator[str]:
    raise KeyboardInterrupt
    yield ""


FAILURES: list[tuple[Any, dict[str, Any], type[BaseException]]] = [
    ([5], {}, DocumentError),
    (["words", 5], {}, DocumentError),
    ([" "], {}, DocumentError),
    ([{"text": "words"}], {"text": "body"}, DocumentError),
    (TEXTS, {"factory": "Foo12"}, IndexMismatch),
    (TEXTS, {"language": "elvish"}, longmatch.EngineError),
    ([], {"encode": "none"}, DocumentError),
    ([" ", "..."], {"encode": "none"}, DocumentError),
    (broken, {}, RuntimeError),
    (in_vain, {}, KeyboardInterrupt),
]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "options", "error"), FAILURES)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_failed_build_leaves_no_folder(
    tmp_path: Path, source: object, options: dict[str, Any], error: type[BaseException], is_there: bool
) -> None:
    path = tmp_path / "x.lm"
    if is_there:
        path.mkdir()
    with pytest.raises(error):
        build(path, source() if callable(source) else source, **options)
    assert not path.exists() or not any(path.iterdir())
    with build(path, TEXTS) as index:
        assert len(index) == 3


def test_a_failed_build_of_an_index_that_was_there_changes_nothing(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", TEXTS).close()
    with pytest.raises(DocumentError, match="none of 1 documents could be indexed; the first: b: it holds no text"):
        build(tmp_path / "x.lm", [{"id": "b", "text": ""}])
    with longmatch.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert len(index) == 3


def test_files_of_others_and_busy_folders_are_never_removed(tmp_path: Path) -> None:
    (tmp_path / "x.lm").mkdir()
    with Writer(tmp_path / "x.lm"):
        remove_stub(tmp_path / "x.lm")
        assert (tmp_path / "x.lm" / "catalog.sqlite").exists()
        with pytest.raises(IndexBusy):
            build(tmp_path / "x.lm", TEXTS)
    (tmp_path / "x.lm" / "letter.txt").write_text("mine")
    remove_stub(tmp_path / "x.lm")
    assert [path.name for path in (tmp_path / "x.lm").iterdir()] == ["letter.txt"]
    with pytest.raises(IndexMismatch, match="not empty and holds no index"):
        build(tmp_path / "x.lm", TEXTS)
    assert (tmp_path / "x.lm" / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize("path", [None, 5, "", [1], ["a text"]])
def test_an_argument_that_is_not_a_path_is_refused(path: Any) -> None:  # noqa: ANN401
    expected = "is not a path of an index; pass the folder first, for example 'papers.lm'"
    with pytest.raises(IndexMismatch, match=expected):
        longmatch.build(path, TEXTS)


def test_documents_that_fail_cause_a_warning(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match="1 of 2 documents could not be indexed, see report.failures; the first: b:"
    ) as warned:
        index = build(tmp_path / "x.lm", [{"id": "a", "text": "fox"}, {"id": "b", "text": ""}])
    assert Path(warned[0].filename).name == "test_building.py"
    assert list(index) == ["a"]
    assert index.report is not None and [one.doc_id for one in index.report.failures] == ["b"]


def test_progress_is_printed_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    build(tmp_path / "x.lm", [*TEXTS, TEXTS[0]], progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "3 added, 0 replaced, 0 unchanged, 0 removed, 0 failed, 1 repeated texts left out\n" in shown.err


def test_progress_may_be_a_function(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    counts: list[int] = []

    def record(report: BuildReport) -> None:
        counts.append(report.n_added)

    build(tmp_path / "x.lm", TEXTS, progress=record)
    assert counts[-1] == 3
    assert capfd.readouterr() == ("", "")


def test_a_prefix_stands_before_every_doc_id_of_a_table(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}]
    with build(tmp_path / "x.lm", rows, id_prefix="t-") as index:
        assert sorted(index) == ["t-a", "t-b"]


def test_a_named_encoder_is_loaded_once(tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.encoders.loading as loading

    loaded: list[str] = []
    load = loading.load_encoder
    monkeypatch.setattr(
        loading, "load_encoder", lambda name, **options: (loaded.append(name), load(name, **options))[1]
    )
    with longmatch.build(tmp_path / "x.lm", ["old fox"], encoder=str(bert_folder), device="cpu") as index:
        index.search("young dog")
        index.add(["young dog"])
        index.search("young dog")
    assert loaded == [str(bert_folder)]


@pytest.mark.slow
def test_two_folders_with_equal_file_names_never_replace_each_other(tmp_path: Path) -> None:
    for year, text in zip(("2021", "2022", "2023"), TEXTS, strict=True):
        (tmp_path / year).mkdir()
        (tmp_path / year / "x.txt").write_text(text)
    build(tmp_path / "x.lm", tmp_path / "2021").close()
    with pytest.raises(DocumentError, match="keep both with --id-prefix 2022/"):
        build(tmp_path / "x.lm", tmp_path / "2022")
    with build(tmp_path / "x.lm", tmp_path / "2022", id_prefix="2022/") as index:
        assert sorted(index) == ["2022/x.txt", "x.txt"]
        index.update(tmp_path / "2023" / "x.txt")  # an update replaces, whichever file it names
        assert index.document("x.txt").text.strip() == TEXTS[2]


def notebook(kernel: object) -> ModuleType:
    module = ModuleType("IPython")
    module.get_ipython = lambda: SimpleNamespace(kernel=kernel)  # type: ignore[attr-defined]
    return module


def test_a_pipe_is_quiet_a_terminal_and_a_notebook_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not is_shown(None)
    assert is_shown(True)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert is_shown(None)
    assert not is_shown(False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", notebook(object()))
    assert is_shown(None)
    monkeypatch.setitem(sys.modules, "IPython", notebook(None))
    assert not is_shown(None)


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    progress_log(True)("one")
    progress_log(None)("two")
    assert capsys.readouterr() == ("", "one\n")


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with listening(None, 3) as (listener, log):
        assert listener is not None
        listener(BuildReport(n_added=2))
        log("done")
    printed = terminal.getvalue()
    assert "2 of 3 documents" in printed and "━" in printed
    assert "done\n" in printed
