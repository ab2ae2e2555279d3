"""Which doc_id a file gets, and what happens to files that would share one."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from engine.readers import Unreadable
from engine.store.catalog import CATALOG_FILE, open_catalog
from engine.store.checks import record_documents, record_tables
from engine.store.partitioned import stored_sources
from engine.store.writable import engine_of
from indexer.building.builder import build
from indexer.building.corpus import FileIds, list_corpus, read_corpus
from indexer.building.report import BuildReport
from tests.fakes import FakeEncoder


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def index(tmp_path: Path, *names: str, prefix: str = "", prune: bool = False, replace: bool = False) -> BuildReport:
    ids = FileIds(prefix, tmp_path / "x.lm")
    documents = read_corpus([str(tmp_path / name) for name in names], ids=ids)
    return build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), prune=prune, replace_files=replace)


def held(tmp_path: Path) -> dict[str, str]:
    """Each doc_id of the index with its file, below the folder of the test."""
    return {
        doc_id: Path(source).relative_to(tmp_path).as_posix() for doc_id, source in stored_sources(tmp_path / "x.lm")
    }


def test_a_file_of_another_folder_never_replaces_one_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "dogs and houses", "2022__y": "light"})
    index(tmp_path, "2021")
    report = index(tmp_path, "2022")
    assert (report.n_added, report.n_replaced) == (1, 0)
    assert report.failures == [
        Unreadable(
            str(tmp_path / "2022/x.txt"),
            f"doc_id 'x.txt' belongs to another file, {tmp_path}/2021/x.txt, which stays indexed; keep both with "
            "--id-prefix 2022/ (Python: id_prefix=), or put this one in its place with --replace (index.update)",
            "x.txt",
        )
    ]
    assert held(tmp_path) == {"x.txt": "2021/x.txt", "y.txt": "2022/y.txt"}


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_records_without_an_id_are_named_by_file_and_place(tmp_path: Path, name: str) -> None:
    for year, animal in (("2021", "foxes"), ("2022", "dogs")):
        (tmp_path / year).mkdir()
        records = [json.dumps({"text": f"{animal} and {place}"}) for place in ("rivers", "houses")]
        (tmp_path / year / name).write_text("\n".join(records) if name == "x.jsonl" else f"[{','.join(records)}]")
    assert (index(tmp_path, "2021").n_numbered, held(tmp_path).keys()) == (2, {f"{name}#1", f"{name}#2"})
    assert index(tmp_path, "2021").n_unchanged == 2
    failures = index(tmp_path, "2022").failures
    assert [failure.reason.partition(";")[0] for failure in failures] == [
        f"doc_id '{name}#{number}' belongs to another file, {tmp_path}/2021/{name}, which stays indexed"
        for number in (1, 2)
    ]
    assert "with --id-prefix 2022/ (" in failures[0].reason
    index(tmp_path, "2022", prefix="2022/")
    assert held(tmp_path).keys() == {f"{prefix}{name}#{number}" for prefix in ("", "2022/") for number in (1, 2)}


@pytest.mark.slow
def test_a_prefix_keeps_both_and_leaves_known_files_their_doc_ids(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "dogs and houses"})
    index(tmp_path, "2021")
    assert index(tmp_path, "2022", prefix="2022/").n_added == 1
    both = {"x.txt": "2021/x.txt", "2022/x.txt": "2022/x.txt"}
    assert held(tmp_path) == both
    again = [index(tmp_path, "2022"), index(tmp_path, "2021", prefix="2021/"), index(tmp_path, "2021", "2022")]
    assert [one.n_unchanged for one in again] == [1, 1, 2] and held(tmp_path) == both


def test_a_file_replaces_another_one_on_request(tmp_path: Path) -> None:
    write(tmp_path, **{"v1__x": "foxes and rivers", "v2__x": "dogs and houses"})
    index(tmp_path, "v1")
    report = index(tmp_path, "v2", replace=True)
    assert (report.n_replaced, report.failures) == (1, []) and held(tmp_path) == {"x.txt": "v2/x.txt"}


def test_files_of_one_run_keep_the_names_of_their_folders(tmp_path: Path) -> None:
    write(tmp_path, **{"c1__x": "foxes", "c2__x": "dogs", "c2__sub__y": "light"})
    report = index(tmp_path, "c1", "c2")
    assert (report.n_added, report.failures) == (3, [])
    assert held(tmp_path) == {name: name for name in ("c1/x.txt", "c2/x.txt", "c2/sub/y.txt")}


def test_a_part_of_an_indexed_folder_is_not_indexed_twice(tmp_path: Path) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    index(tmp_path, "corpus")
    write(tmp_path, **{"corpus__papers__a": "foxes that changed"})
    report = index(tmp_path, "corpus/papers")
    assert (report.n_added, report.n_replaced) == (0, 1)
    assert sorted(held(tmp_path)) == ["b.txt", "papers/a.txt"]


def test_a_folder_and_its_part_give_the_names_of_the_folder_and_others_paths_below_each(tmp_path: Path) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    for names in (["corpus", "corpus/papers"], ["corpus/papers", "corpus"]):
        assert [name for _, name in list_corpus([str(tmp_path / name) for name in names]).named()] == [
            "b.txt",
            "papers/a.txt",
        ]
    write(tmp_path, **{"c1__x": "foxes", "c2__y": "dogs"})
    assert [name for _, name in list_corpus([str(tmp_path / "c1"), str(tmp_path / "c2")]).named()] == ["x.txt", "y.txt"]


def test_a_copy_leaves_the_document_to_the_first_file(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "foxes and rivers"})
    index(tmp_path, "2021")
    assert index(tmp_path, "2022").n_unchanged == 1
    assert held(tmp_path) == {"x.txt": "2021/x.txt"}
    write(tmp_path, **{"2022__x": "dogs and houses"})
    assert len(index(tmp_path, "2022").failures) == 1


def test_a_corpus_that_was_moved_is_still_the_same(tmp_path: Path) -> None:
    write(tmp_path, old__x="foxes and rivers", old__y="light")
    index(tmp_path, "old")
    (tmp_path / "old").rename(tmp_path / "new")
    write(tmp_path, new__x="foxes and houses")
    lines: list[str] = []
    documents = read_corpus([str(tmp_path / "new")], ids=FileIds(index=tmp_path / "x.lm"))
    report = build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), log=lines.append)
    assert (report.n_added, report.n_replaced, report.n_unchanged) == (0, 1, 1)
    assert held(tmp_path) == {"x.txt": "new/x.txt", "y.txt": "new/y.txt"}
    assert any(f"{tmp_path}/old/x.txt by {tmp_path}/new/x.txt" in line for line in lines)


@pytest.mark.slow
def test_an_index_of_relative_paths_finds_everything_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    index(tmp_path, "corpus")
    with (
        closing(open_catalog(tmp_path / "x.lm" / CATALOG_FILE, read_only=False)) as catalog,
        engine_of(catalog).begin(),
    ):
        catalog.execute("UPDATE documents SET source = replace(source, ?, '')", [f"{tmp_path}/"])
        record_documents(catalog)
        record_tables(catalog)
    monkeypatch.chdir(tmp_path)
    for folder in ("corpus/papers", "corpus"):
        report = build("x.lm", read_corpus([folder], ids=FileIds(index=Path("x.lm"))), encoder=FakeEncoder())
        assert (report.n_added, report.n_replaced, len(report.failures)) == (0, 0, 0)
    assert held(tmp_path) == {"papers/a.txt": "corpus/papers/a.txt", "b.txt": "corpus/b.txt"}


def test_a_prefix_stands_before_the_doc_ids_of_json_lines(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "foxes"}\n{"id": "b", "text": "dogs"}\n')
    write(tmp_path, t="light")
    documents = read_corpus([str(tmp_path / "c.jsonl"), str(tmp_path / "t.txt")], ids=FileIds("p-"))
    assert [one.doc_id for one in documents] == ["p-a", "p-b", "p-t.txt"]
