"""What reaches a terminal or a log: styles, progress, plans, and no control character of a document."""

import io
import json
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

import indexer.cli.terminal as progress_module
from engine.report.lines import Run, Style, line
from indexer.building.report import Activity, BuildReport
from indexer.cli import terminal
from indexer.cli.index import describe_plan
from indexer.cli.terminal import BuildProgress
from indexer.plan import Plan, Way
from tests.commands import run, succeed
from tests.fakes import FakeEncoder, Terminal, make_document

LINES = [line("the ", Run("fox", Style.MATCH), Run(" 狐[b]x[/b]", Style.FAINT)), line(Run("█" * 200, Style.NUMBER))]
PLAIN = "the fox 狐[b]x[/b]\n" + "█" * 200 + "\n"


def _screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return found


def test_a_terminal_gets_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _screen(monkeypatch)
    terminal.show(LINES)
    shown = screen.getvalue()
    assert "\x1b[1;33mfox\x1b[0m" in shown and "\x1b[36m█" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == PLAIN  # not wrapped, and markup is not interpreted


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colours_gets_plain_text(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    screen = _screen(monkeypatch)
    monkeypatch.setenv(name, value)
    terminal.show(LINES)
    assert screen.getvalue() == PLAIN


def test_a_pipe_is_80_columns_wide_and_a_terminal_within_limits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.show(LINES)
    assert capsys.readouterr().out == PLAIN
    assert terminal.width() == 80
    _screen(monkeypatch)
    for columns, width in ((40, 60), (97, 97), (300, 120)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert terminal.width() == width


def test_a_pipe_does_not_import_rich() -> None:
    code = "import sys; from indexer.cli import main; main(['query', '--help'], standalone_mode=False); "
    code += "from indexer.cli.terminal import show; from engine.report.lines import Run, Style; "
    code += "show([(Run('fox', Style.TITLE),)]); print('rich' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-2:] == ["fox", "False"]


def _lines(text: str) -> list[tuple[str, str]]:
    found = [json.loads(line) for line in text.splitlines()]
    assert all(set(one) == {"time", "level", "message"} and one["time"].endswith("+00:00") for one in found)
    return [(one["level"], one["message"]) for one in found]


def test_progress_and_counts_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A fox hunts at night in the wood.")
    done = succeed("--log-json", "index", tmp_path / "x.lm", tmp_path / "a.txt", "--encode", "none", "--json")
    assert json.loads(done.stdout)["n_added"] == 1
    assert len(_lines(done.stderr)) > 0


def test_errors_and_wrong_usage_are_lines_of_the_log(tmp_path: Path) -> None:
    done = run("--log-json", "upkeep", "verify", tmp_path / "absent")
    ((level, message),) = _lines(done.stderr)
    assert (done.exit_code, level) == (1, "error") and "holds no index" in message
    done = run("--log-json", "upkeep", "verify")
    assert (done.exit_code, _lines(done.stderr)[-1]) == (2, ("error", "Error: Missing argument 'INDEX'."))


def test_a_line_that_comes_in_pieces_is_one_object() -> None:
    plain = io.StringIO()
    stream = terminal.JsonLines(plain)
    stream.write("one ")
    stream.write("line\n\ntwo\rthree\nrest")
    stream.end()
    assert _lines(plain.getvalue()) == [("info", "one line"), ("info", "three"), ("info", "rest")]
    assert not stream.isatty()


PLAN = Plan(
    n_new=100,
    n_changed=0,
    n_unchanged=0,
    n_unreadable=0,
    n_tokens=100_000,
    n_chunks=1_000,
    is_counted=False,
    ways=(Way("none", 2, 0, 3_000_000), Way("later", 9, 15_000, 4_000_000), Way("all", 50, 100_000, 6_000_000)),
)


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN_LINES", 0.0)


@pytest.mark.parametrize(
    ("n_files", "n_to_encode", "line"),
    [
        (100, 0, "25 documents of 100, about 30 s left, 50,000 tokens, 5,000"),
        (None, 0, "25 documents, 50,000 tokens, 5,000"),
        (25, 25, "10 documents encoded of 25, about 15 s left, 50,000 tokens, 5,000"),
    ],
)
def test_the_time_left_follows_documents(n_files: int | None, n_to_encode: int, line: str) -> None:
    stream, report = io.StringIO(), BuildReport(seconds=10, n_added=25, n_encoded=10, n_tokens=50_000)
    with BuildProgress(n_files, stream) as progress:
        activity = Activity(report, progress)
        activity.begin()
        activity.n_to_encode = n_to_encode
        progress(report)
    assert stream.getvalue() == f"{line} tokens/s\n"


def test_a_plan_is_shown_line_by_line() -> None:
    assert describe_plan(PLAN).splitlines() == [
        "new              about 100 documents",
        "changed          about 0",
        "unchanged        about 0",
        "unreadable       about 0",
        "to encode        about 100,000 tokens in 1,000 chunks",
        "--encode none    about 2.0 s, 0 tokens encoded, 3.0 MB on disk: words alone",
        "--encode later   about 9.0 s, 15,000 tokens encoded, 4.0 MB on disk: words, and a sample of vectors; queries "
        "encode what they need",
        "--encode all     about 50 s, 100,000 tokens encoded, 6.0 MB on disk: words and all vectors",
    ]


class CountingEncoder(FakeEncoder):
    """An encoder that counts the chunks it reads, as encoders of texts do."""

    chunks_read = 0

    @property
    def n_read(self) -> int:
        return self.chunks_read


def test_a_batch_counts_by_the_share_of_its_chunks() -> None:
    encoder = CountingEncoder()
    documents = [encoder.segment(make_document(name, "fox " * 16)) for name in ("a", "b")]  # two chunks each
    activity = Activity(BuildReport())
    encoder.chunks_read = 7
    assert activity.n_being_encoded == 0
    with activity.encoding(encoder, documents):
        assert activity.n_being_encoded == 0
        encoder.chunks_read += 1
        assert activity.n_being_encoded == 0.5
        encoder.chunks_read += 5
        assert activity.n_being_encoded == 2
    assert activity.n_being_encoded == 0


def test_a_bar_moves_before_the_first_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal, encoder = Terminal(), CountingEncoder()
    activity = Activity(BuildReport())
    with BuildProgress(4, terminal) as progress:
        shown = [line for line in _drawn(progress, terminal) if line]
        assert shown[-1].startswith("reading ")
        progress.begin(activity)
        activity.n_read = 3
        assert _drawn(progress, terminal)[-1].startswith("0 of 4 documents, 3 read ")
        with activity.encoding(encoder, [encoder.segment(make_document("a", "fox " * 16))] * 3):
            encoder.chunks_read += 4
            assert _drawn(progress, terminal)[-1].startswith("2 of 4 documents, 3 read ")
        activity.report.n_added, activity.report.n_encoded = 4, 1
        activity.n_to_encode = 3
        assert _drawn(progress, terminal)[-1].startswith("1 of 3 encoded ")
        progress.log("[a line] of its own")
    assert "[a line] of its own" in terminal.getvalue()


def _drawn(progress: BuildProgress, terminal: Terminal) -> list[str]:
    """The lines on the terminal after it is drawn again, without control sequences."""
    progress._bar.refresh()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").rstrip("\n").splitlines()


CLI = Path(__file__).parents[2] / "indexer" / "cli"
NAME = "fox\nError: forged\x1b]0;title\x07.md"
TEXT = "# A fox\x1b[31m\ufffe in\u202e red\n\nThe quick fox\x9b runs over the hill\x07 and the old house.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "papers").mkdir()
    (folder / "papers" / NAME).write_text(TEXT)
    (folder / "papers" / "plain.md").write_text("# Plain\n\nThe quick fox runs over the house.\n")
    (folder / "papers" / NAME.replace(".md", ".pdf")).write_text("no PDF")
    done = run("index", folder / "x.lm", folder / "papers", "--encode", "none")
    assert done.exit_code == 3
    assert controls(done.output) == set() and "\nError:" not in done.output
    return folder


def controls(text: str) -> set[str]:
    """The characters of a text that a terminal would obey."""
    unsafe = {character for character in text if unicodedata.category(character) in ("Cc", "Cs")} - {"\n", "\t"}
    return unsafe | {"\u202e"} & set(text)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{x}", "--documents"],
        ["show", "{x}", "--failures"],
        ["show", "{x}", "--documents", "--json"],
        ["show", "{x}", NAME],
        ["show", "{x}", NAME, "--json"],
        ["show", "{x}", "absent\x1b[31m\nError: forged"],
        ["show", "{x}", NAME, "--section", "no\nError: forged\x1b"],
        ["show", "no\nError: forged\x1b.lm"],
        ["remove", "{x}", "absent\nError: forged\x1b"],
        ["index", "{x}", "/no/such\nError: forged\x1b"],
        ["upkeep", "verify", "no\nError: forged\x1b.lm"],
        ["no\nError: forged\x1b"],
        ["--no\nError: forged\x1b"],
        *(["query", "{x}", "--id", "plain.md", "--format", form] for form in ("table", "csv", "trec", "json", "jsonl")),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:40],
)
def test_no_command_prints_what_a_terminal_obeys(folder: Path, words: list[str]) -> None:
    done = run(*(word.format(x=folder / "x.lm") for word in words))
    assert controls(done.output) == set()
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == (1 if done.exit_code in (1, 2) else 0)


def test_a_log_of_json_lines_has_one_line_for_each_failure(folder: Path, tmp_path: Path) -> None:
    done = run("--log-json", "index", tmp_path / "y.lm", folder / "papers", "--encode", "none")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines if line["level"] == "error"] == []
    assert sum(line["message"].startswith("failed: ") for line in lines) == 1
    assert controls(done.stderr) == set()


def test_the_exact_text_reaches_a_file_but_not_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("show", folder / "x.lm", NAME, "--text").stdout.endswith("hill\x07 and the old house.\n\n")
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = run("show", folder / "x.lm", NAME, "--text").stdout
    assert controls(shown) == set() and "hill\ufffd and" in shown


@pytest.mark.parametrize("command", ["chart", "query"])
def test_html_reaches_a_pipe_but_not_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    index, draft = folder / "x.lm", folder / "papers" / "plain.md"
    assert "<!doctype html>" in run(command, index, draft, "--format", "html").stdout
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    refused = run(command, index, draft, "--format", "html")
    assert (refused.exit_code, f"name a file: -o {command}.html" in refused.stderr) == (2, True)


def test_a_chart_as_a_word_file_takes_any_text(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("docx")
    out = tmp_path / "chart.docx"
    succeed("chart", folder / "x.lm", folder / "papers" / NAME, "--format", "docx", "-o", out)
    assert out.stat().st_size > 1000


@pytest.mark.parametrize(("is_terminal", "is_long"), [(True, True), (True, False), (False, True)])
def test_a_terminal_says_what_takes_long(monkeypatch: pytest.MonkeyPatch, is_terminal: bool, is_long: bool) -> None:
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("indexer.cli.terminal._PATIENCE_SECONDS", 0.0 if is_long else 600.0)
    with terminal.waiting("searching"):
        until = time.monotonic() + 10
        while is_terminal and is_long and not stream.getvalue() and time.monotonic() < until:
            time.sleep(0.001)
    assert stream.getvalue() == is_terminal * (is_long * "searching …\r" + 11 * " " + "\r")


def test_commands_print_by_the_functions_that_make_text_safe() -> None:
    direct = {file.name for file in CLI.glob("*.py") if "click.echo(" in file.read_text()}
    assert direct == {"terminal.py"}
