"""What the commands refuse: one line with the reason, exit status 1 or 2, and nothing written."""

import shlex
from pathlib import Path

import pytest

from engine.errors import install_command
from tests.commands import run

REFUSALS: list[tuple[str, int, str]] = [
    ("index no.lm", 2, "no.lm holds no index; name what to index: longmatch index no.lm PATH..."),
    ("index no.lm --prune", 2, "--prune needs PATH"),
    ("index {x} ''", 1, "'': an empty name, as of an unset variable; name a file or folder"),
    ("index '' draft.md", 2, "'INDEX': an empty name"),
    ("query {x} ''", 1, "'': an empty name"),
    ("index {x} /no/such/folder", 1, "does not exist and no file matches it"),
    ("index sub sub", 1, "is not empty and holds no index"),
    ("index {x} draft.md --read-memory much", 2, "'much' is not a size"),
    ("index no.lm draft.md --encode all --device tpu", 1, "is none of cpu, cuda, cuda:N"),
    ("index {x} --workers 2", 2, "--workers is for a Ray cluster"),
    ("index {x} --ray local --encode later", 2, "--encode does not go with --ray"),
    ("query {x}", 2, "no query: name a DOCUMENT"),
    ("pairs {x} -o pairs.parquet", 2, "pairs.parquet would be no parquet file; formats: csv"),
    ("pairs {x} -o pairs.json", 2, "pairs.json would be no json file; formats: csv"),
    ("pairs {x} --clusters c.html", 2, "c.html would be no html file; formats: csv"),
    ("query {x} --text ' '", 2, "--text is empty; give it some words\n"),
    ("query {x} --id fox", 1, "no document 'fox' among 60"),
    ("query {x} --id doc003 --where 'year >'", 1, "expected a value"),
    ("query {x} --id doc003 --where 'yaer >= 2019'", 1, "no document has the field 'yaer'; did you mean 'year'?"),
    ("query {x} --id doc003 -o x.docx", 2, "x.docx would be no docx file; formats: table, json"),
    ("query {x} --id doc003 -o x.xls", 2, "x.xls would be no xls file; formats: table, json"),
    ("query {x} --id doc003 -k 0", 2, "0 is not in the range x>=1"),
    ("query {x} --id doc003 --offset -1", 2, "-1 is not in the range x>=0"),
    ("query {x} --id doc003 --sections -1", 2, "-1 is not in the range x>=0"),
    ("query {x} --id doc003 --weight part", 2, "'part' gives no weight"),
    ("query {x} --id doc003 --weight zebra=3", 1, "is named 'zebra'; name a heading ('part one'"),
    ("query {x} --id doc003 --device cuda:77", 1, "device 'cuda:77' was requested, torch "),
    ("query {x} --id doc003 --explain model --format csv", 2, "shows no --explain model; use one of: table, json"),
    ("query {x} --id doc003 --explain model --mode novelty", 2, "explain is for rankings of documents; leave out with"),
    ("query {x} --id doc003 --mode novelty -k 3", 2, "k is for rankings of documents; leave out with mode 'novelty'"),
    ("query {x} --id doc003 --mode novelty --weight part=2", 2, "weights is for rankings"),
    ("query {x} --id doc003 --mode novelty --format trec", 2, "shows no novelty; use one of: table, json, jsonl"),
    ("query {x} --id doc003 --log no/log.jsonl", 2, "does not exist; make it: mkdir -p"),
    ("query {x} draft.md --as json", 2, "--as is the format of standard input, which no document is; name it '-'"),
    ("compare draft.md draft.md --as json", 2, "--as is the format of standard input"),
    ("query {x} - --as mp3", 2, "'mp3' is no known format; known are txt"),
    ("query {x} - -", 2, "standard input can be read once"),
    ("query {x} /no/such.md", 1, "/no/such.md: "),
    ("query {x} {x}", 1, "is an index; search one index at a time"),
    ("watch {x} --state s.json", 2, "no query: name a DOCUMENT"),
    ("watch {x} --state s.json --sort", 2, "No such option"),
    ("show '/no/such one.lm'", 1, "holds no index; make one: longmatch index '/no/such one.lm' PATH..."),
    ("show {x} absent.md", 1, "no document 'absent.md'"),
    ("compare draft.md", 2, "one document is named; use: longmatch compare A B, or A --index INDEX --id ID"),
    ("compare draft.md two.jsonl draft.md", 2, "3 documents are named"),
    ("compare draft.md --id doc003", 2, "--id needs --index"),
    ("compare draft.md draft.md --index {x} --encoder x", 2, "exclude each other"),
    ("compare draft.md no.md", 1, "no.md: No such file or directory"),
    ("compare draft.md sub", 1, "is a folder"),
    ("compare draft.md --index {x} --id no.md", 1, "no document 'no.md' among 60"),
    ("compare draft.md --index /no/such.lm --id doc003", 1, "holds no index"),
    ("compare draft.md - --index {x}", 1, "stdin: "),
    ("chart {x}", 2, "name one query"),
    ("chart {x} draft.md --id doc003", 2, "name one query"),
    ("chart {x} --id doc003 --format docx", 2, "-o chart.docx"),
    ("chart {x} --id doc003 --mode novelty", 2, "a chart has documents as columns; use --mode similar or containment"),
    ("chart {x} --id doc003 --by claim", 1, "no numbered claims"),
    ("chart {x} --id doc003 --least much", 2, "must be a number or auto"),
    ("chart {x} --id doc003 -o c.json", 2, "c.json would be no json file; formats: html, csv, docx"),
    ("chart {x} no.md", 1, "no.md: No such file or directory"),
    ("chart {x} --id no.md", 1, "no document 'no.md' among 60"),
    ("pairs {x} --cluster-least 0.8", 2, "--cluster-least needs --clusters, and"),
    ("pairs {x} --clusters c.csv --cluster-least 0.2", 2, "a score of at least --least"),
    ("pairs {x} --least 0", 2, "0.0 is not in the range 0<x<=1"),
    ("pairs {x} --clusters no/such/folder/c.csv", 2, "does not exist"),
    ("replay plain.json", 1, "write results: longmatch query INDEX DOCUMENT --format json -o FILE"),
    ("replay list.json", 1, "has the schema None"),
    ("replay other.json", 1, "has the schema 'other/1', not 'longmatch-result/1'"),
    ("diff {x} {x}", 2, "no query: name documents"),
    ("export {x}", 2, "name a file that ends in .parquet"),
    ("export {x} -o x.csv", 2, "name a file that ends in .parquet"),
    ("export {x} -o parquet", 2, "name a file that ends in .parquet"),
    ("export {x} --what vectors -o x.parquet", 1, "add them: longmatch index {x}"),
    ("plot {x}", 2, "name a file that ends in .png or .svg: -o map.svg"),
    ("plot {x} -o x.jpg", 2, "-o map.svg"),
    ("plot {x} draft.md --id doc003 -o x.png", 2, "DOCUMENT and --id exclude each other"),
    ("plot {x} --by yaer -o x.png", 1, "no document has the field 'yaer'; did you mean 'year'?"),
    ("plot {x} --id nope -o x.png", 1, "no document 'nope' among 60"),
    ("plot {x} no.md -o x.png", 1, "no.md: No such file or directory"),
    ("plot {x} two.jsonl -o x.png", 1, "two.jsonl holds 2 documents; name a file of one document"),
    ("remove {x} absent.md", 1, "nothing was removed"),
    ("upkeep verify /no/such.lm", 1, "holds no index"),
    ("upkeep compact /no/such.lm", 1, "holds no index"),
    ("upkeep rebase /no/such.lm", 1, "holds no index"),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "draft.md").write_text("# Draft\n\nThe fox runs over the old hill.\n")
    (folder / "two.jsonl").write_text('{"text": "fox"}\n{"text": "dog"}\n')
    (folder / "sub").mkdir()
    (folder / "sub" / "notes.txt").write_text("Mine.")
    for name, content in (("plain", "no json"), ("list", "[]"), ("other", '{"schema": "other/1"}')):
        (folder / f"{name}.json").write_text(content)
    return folder


@pytest.mark.parametrize(("line", "status", "message"), REFUSALS, ids=[line for line, _, _ in REFUSALS])
def test_wrong_use_ends_with_a_message_and_a_status(
    line: str, status: int, message: str, here: Path, words_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if line.startswith("plot"):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(here)
    before = sorted(here.rglob("*"))
    result = run(*shlex.split(line.format(x=words_folder)), stdin="")
    assert (result.exit_code, message.format(x=words_folder) in result.stderr) == (status, True), result.stderr
    assert "Traceback" not in result.output and sorted(here.rglob("*")) == before


_PYARROW = "needs pyarrow; install it: pip install 'pyarrow>=21'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("export {x} -o x.parquet", f"longmatch export {_PYARROW}"),
        ("plot {x} -o x.png", "longmatch plot needs matplotlib; install it: pip install 'matplotlib>=3.9'"),
        ("serve {x}", f"longmatch serve needs FastAPI; install it: {install_command('serve', '')}"),
        ("mcp {x}", f"longmatch mcp needs mcp; install it: {install_command('mcp', 'mcp')}"),
        ("index {x} . --ray local", f"longmatch index --ray needs Ray; install it: {install_command('ray', 'ray')}"),
    ],
)
def test_the_error_names_a_missing_package(
    line: str, message: str, words_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("importlib.util.find_spec", "indexer.cli.serve.find_spec"):
        monkeypatch.setattr(place, lambda _: None)
    result = run(*shlex.split(line.format(x=words_folder)))
    assert (result.exit_code, result.stderr, list(tmp_path.iterdir())) == (1, f"Error: {message}\n", [])


@pytest.mark.parametrize("command", [(), ("upkeep",)])
def test_a_group_without_a_command_prints_its_help(command: tuple[str, ...]) -> None:
    result, helped = run(*command), run(*command, "--help")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", helped.stdout)
