"""Bold and colours on terminals alone, plain text elsewhere; `--log-json` turns standard error into JSON lines."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.report.lines import Run, Style, line
from indexer.cli import main, terminal
from tests.fakes import Terminal

LINES = [line("the ", Run("fox", Style.MATCH), Run(" 狐[b]x[/b]", Style.FAINT)), line(Run("█" * 200, Style.SHADE_4))]
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
    assert "\x1b[1;33mfox\x1b[0m" in shown and "\x1b[1;31m█" in shown
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
    command = ["index", str(tmp_path / "x.lm"), str(tmp_path / "a.txt"), "--encode", "none", "--json"]
    done = CliRunner().invoke(main, ["--log-json", *command])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["n_added"] == 1
    assert len(_lines(done.stderr)) > 0


def test_errors_and_wrong_usage_are_lines_of_the_log(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--log-json", "upkeep", "verify", str(tmp_path / "absent")])
    ((level, message),) = _lines(done.stderr)
    assert (done.exit_code, level) == (1, "error") and "holds no index" in message
    done = CliRunner().invoke(main, ["--log-json", "upkeep", "verify"])
    assert (done.exit_code, _lines(done.stderr)[-1]) == (2, ("error", "Error: Missing argument 'INDEX'."))


def test_a_line_that_comes_in_pieces_is_one_object() -> None:
    plain = io.StringIO()
    stream = terminal.JsonLines(plain)
    stream.write("one ")
    stream.write("line\n\ntwo\rthree\nrest")
    stream.end()
    assert _lines(plain.getvalue()) == [("info", "one line"), ("info", "three"), ("info", "rest")]
    assert not stream.isatty()
