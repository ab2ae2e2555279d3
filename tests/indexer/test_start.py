"""A command imports only the packages that it needs, because start-up is most of the time of a query."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.building.builder import build
from tests.fakes import make_document

ROOT = Path(__file__).parents[2]
_CODE = """
import ast, sys
from indexer.cli import main
watched = {"torch", "transformers", "scipy", "pandas", "engine.readers", "sqlalchemy", "faiss", "ray", "asyncio",
           "engine.gpu", "numpy.ma", "openvino.tools.ovc.convert", "numpy", "openvino", "engine.search", "engine.index"}
watched -= {name for name, module in sys.modules.items() if module is None}
for arguments in map(ast.literal_eval, sys.argv[1:]):
    main(arguments, standalone_mode=False)
    print("imported:", *sorted(watched & set(sys.modules)))
modules = [module for module in sys.modules.values() if module is not None]
patterns = [value for module in modules for value in vars(module).values() if type(value).__name__ == "regex"]
print("patterns:", len([pattern.search for pattern in patterns]))  # compiled at the first use, without an error
print("modules:", sum(name.partition(".")[0] in ("engine", "indexer", "longmatch") for name in sys.modules))
"""
MOST_MODULES = 67  # of this project, loaded by a query by words
SEARCHING = {"numpy", "openvino", "engine.search", "engine.index"}


def run(folder: Path, *commands: list[str], absent: tuple[str, ...] = ()) -> tuple[list[str], list[set[str]]]:
    """The printed lines, and the watched packages after each command, all run in one process.

    Args:
        absent: packages that cannot be imported.
    """
    code = "".join(f"import sys; sys.modules[{name!r}] = None\n" for name in absent) + _CODE
    words = [sys.executable, "-c", code, *map(str, commands)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    after = [set(line.split()[1:]) for line in lines if line.startswith("imported:")]
    assert len(after) == len(commands)
    return lines, after


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    path = tmp_path_factory.mktemp("start") / "fox.lm"
    documents = [make_document(topic, f"the old {topic} runs. " * 20) for topic in ("fox", "dog")]
    build(path, documents, encoder=str(bert_folder), device="cpu")
    return path


def test_a_query_imports_only_packages_that_it_needs(built: Path, tmp_path: Path) -> None:
    """Each command imports what stands there and no more, as those before it import less."""
    (tmp_path / "query.txt").write_text("the fox and the dog. " * 9)
    queries = (["--id", "fox"], ["--text", "the young dog"], ["query.txt"])
    shown = (["show", str(built)], ["show", str(built), "--documents"])
    commands = (["query", str(built), *query, "--device", "cpu"] for query in queries)
    lines, after = run(tmp_path, ["--help"], ["doctor"], ["query", "--help"], *shown, *commands)
    for printed in ("train    Train an encoder.", "ok    encoder", "-h, --help"):
        assert any(line.startswith(printed) for line in lines)
    assert after[:2] == [set(), set()]
    assert after[2] <= {"numpy", "engine.search"}
    wanted = [set(), set(), set(), {"engine.readers"}, {"engine.readers"}]
    assert [imported - SEARCHING for imported in after[3:]] == wanted


def test_an_index_of_words_alone_is_built_and_searched_without_faiss_and_torch(tmp_path: Path) -> None:
    (tmp_path / "fox.txt").write_text("the fox and the dog. " * 9)
    commands = ["index", "fox.lm", "fox.txt", "--encode", "none"], ["query", "fox.lm", "--text", "dog"]
    _, (_, imported) = run(tmp_path, *commands, absent=("faiss", "torch"))
    assert {"ray", "engine.gpu", "scipy"}.isdisjoint(imported)
    lines, _ = run(tmp_path, ["query", "fox.lm", "fox.txt"], absent=("faiss", "torch"))
    assert int(lines[-1].removeprefix("modules:")) <= MOST_MODULES


@pytest.mark.slow
def test_a_command_on_a_cpu_does_not_import_torch(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "fox.txt").write_text("the fox and the dog. " * 9)
    encoder = ["--encoder", str(bert_folder), "--device", "cpu"]
    commands = ["index", "fox.lm", "fox.txt", "--encode", "all", *encoder], ["compare", "fox.txt", "fox.txt", *encoder]
    _, (_, imported) = run(tmp_path, *commands)
    assert {"torch", "transformers"}.isdisjoint(imported)


_SAFE = "committed documents are safe, run the same command to continue"
_INTERRUPTED = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from longmatch.__main__ import main
main()
"""


@pytest.mark.parametrize(("module", "status"), [("indexer.cli.options", -signal.SIGINT), ("indexer.cli.show", 130)])
def test_an_interrupt_while_the_command_is_loaded_prints_no_traceback(module: str, status: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, "show", module]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stderr == ("" if status < 0 else f"Error: interrupted; {_SAFE}\n")


@pytest.mark.parametrize(("closed", "printed"), [("<&-", True), (">&-", False), ("<&- >&- 2>&-", False)])
def test_closed_streams_are_empty_and_their_numbers_are_not_given_to_files(
    closed: str, printed: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a text of some words")
    command = f"exec {sys.executable} -m longmatch index x.lm a.txt - --encode none {closed}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.startswith("1 added")) == (0, printed), done.stderr


def test_arguments_that_are_not_utf_8_name_files_and_no_document(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a text of some words")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def called(*words: str | bytes) -> str:
        command = [sys.executable, "-m", "longmatch", *map(os.fsdecode, words)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else done.stdout

    assert called("index", b"\xff.lm", ".", "--encode", "none").startswith("1 added")
    assert called("watch", b"\xff.lm", "--text", "some words", "--state", b"\xff.json", "--least", "0").startswith(
        "query"
    )
    assert called("query", b"\xff.lm", b"\xff.txt", "--format", "html").startswith("<!doctype html>")
    assert called("show", b"\xff.lm", b"\xff.txt").startswith(r"Error: '\udcff.txt' is not UTF-8; names of documents")
