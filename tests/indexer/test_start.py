"""A command imports only the packages that it needs, because start-up is most of the time of a query."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.building.builder import build
from tests.fakes import make_document

ROOT = Path(__file__).parents[2]
_CODE = """
import sys
from indexer.cli import main
main(sys.argv[1:], standalone_mode=False)
watched = {"torch", "transformers", "scipy", "pandas", "engine.readers", "sqlalchemy", "faiss", "ray", "engine.gpu",
           "numpy.ma", "openvino.tools.ovc.convert"}
print("imported:", *sorted(watched & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    path = tmp_path_factory.mktemp("start") / "fox.lm"
    documents = [make_document(topic, f"the old {topic} runs. " * 20) for topic in ("fox", "dog")]
    build(path, documents, encoder=str(bert_folder), device="cpu")
    return path


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        (["--id", "fox"], "faiss sqlalchemy"),
        pytest.param(["--text", "the young dog"], "faiss sqlalchemy", marks=pytest.mark.slow),
        (["QUERY"], "engine.readers faiss sqlalchemy"),
    ],
)
def test_a_query_imports_only_packages_that_it_needs(
    built: Path, tmp_path: Path, arguments: list[str], imported: str
) -> None:
    query = tmp_path / "query.txt"
    query.write_text("the fox and the dog. " * 9)
    named = [str(query) if one == "QUERY" else one for one in arguments]
    command = [sys.executable, "-c", _CODE, "query", str(built), *named, "--device", "cpu"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == f"imported: {imported}", run.stderr


def test_an_index_of_words_alone_is_built_and_searched_without_faiss_and_torch(tmp_path: Path) -> None:
    (tmp_path / "fox.txt").write_text("the fox and the dog. " * 9)
    code = "import sys; sys.modules['faiss'] = sys.modules['torch'] = None; " + _CODE  # as if they were not installed
    code = code.replace("watched &", "(watched - {'faiss', 'torch'}) &")
    for arguments in (["index", "fox.lm", "fox.txt", "--encode", "none"], ["query", "fox.lm", "--text", "dog"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert {"ray", "engine.gpu", "scipy"}.isdisjoint(run.stdout.splitlines()[-1].split()), run.stderr


@pytest.mark.parametrize(
    ("arguments", "printed", "others"),
    [
        (["--help"], "train    Train an encoder.", {"numpy", "openvino", "engine.search"}),
        (["query", "--help"], "-h, --help", {"openvino", "engine.index"}),
        (["doctor"], "ok    encoder", {"numpy", "openvino", "engine.search"}),
    ],
)
def test_a_command_without_an_index_imports_no_package_that_searches(
    arguments: list[str], printed: str, others: set[str]
) -> None:
    code = _CODE.replace("watched &", f"(watched | {others}) &")
    run = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.strip() for line in run.stdout.splitlines()]
    assert lines[-1] == "imported:", run.stderr
    assert any(line.startswith(printed) for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "fox.lm", "fox.txt", "--encode", "all", "--encoder", "BERT", "--device", "cpu"],
        ["compare", "fox.txt", "fox.txt", "--encoder", "BERT", "--device", "cpu"],
    ],
    ids=" ".join,
)
def test_a_command_on_a_cpu_does_not_import_torch(bert_folder: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "fox.txt").write_text("the fox and the dog. " * 9)
    named = [str(bert_folder) if argument == "BERT" else argument for argument in arguments]
    command = [sys.executable, "-c", _CODE, *named]
    run = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert not {"torch", "transformers"} & set(run.stdout.splitlines()[-1].split()), run.stderr
