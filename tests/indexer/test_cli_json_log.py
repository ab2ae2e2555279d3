"""`--log-json` turns all of standard error into JSON lines, and leaves standard output as it is."""

from __future__ import annotations

import io
import json
from pathlib import Path

from click.testing import CliRunner

from indexer.cli import main
from indexer.cli.json_log import JsonLines


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


def test_errors_are_lines_of_the_log(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--log-json", "upkeep", "verify", str(tmp_path / "absent")])
    assert done.exit_code == 1
    ((level, message),) = _lines(done.stderr)
    assert level == "error" and "holds no index" in message


def test_wrong_usage_is_an_error_of_the_log() -> None:
    done = CliRunner().invoke(main, ["--log-json", "upkeep", "verify"])
    assert done.exit_code == 2
    assert _lines(done.stderr)[-1] == ("error", "Error: Missing argument 'INDEX'.")


def test_a_line_that_comes_in_pieces_is_one_object() -> None:
    plain = io.StringIO()
    stream = JsonLines(plain)
    stream.write("one ")
    stream.write("line\n\ntwo\rthree\nrest")
    stream.end()
    assert _lines(plain.getvalue()) == [("info", "one line"), ("info", "three"), ("info", "rest")]
    assert not stream.isatty()
