"""`longmatch query`: standard input, output files, pages, filters, weights, and documents that are left out."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path

import lxml.html
import pytest

from tests.commands import run, succeed
from tests.readers.made import docx_bytes
from tests.readers.made_pdf import pdf_of_contents

TOPICS = ("fox", "dog", "river", "house")


def _text(topic: str) -> str:
    return f"the {topic} runs over the old {topic} and jumps through the dark light of the {topic}. " * 9


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    for number, topic in enumerate(TOPICS):
        (folder / f"{topic}.md").write_text(f"---\nyear: {2019 + number}\n---\n# The {topic}\n\n{_text(topic)}\n")
    succeed("index", folder / "x.lm", *folder.glob("*.md"), "--encode", "none")
    return folder / "x.lm"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (pdf_of_contents([b"BT /F1 10 Tf 72 700 Td (%s) Tj ET" % _text("river")[:80].encode()]), "stdin.pdf"),
        (docx_bytes([("Normal", _text("river"))]), "stdin.docx"),
        (gzip.compress(f"<html><body><p>{_text('river')}</p></body></html>".encode()), "stdin.html"),
        (_text("river").encode(), "stdin.txt"),
    ],
)
def test_standard_input_is_read_in_its_format(built: Path, content: bytes, name: str) -> None:
    found = succeed("query", built, "-", "-k", "1", "--format", "json", stdin=content)
    (answer,) = json.loads(found.stdout)["results"]
    assert (answer["query"]["id"], answer["query"]["source"]) == (name, "stdin")
    assert answer["hits"][0]["id"] == "river.md"


def test_json_lines_on_standard_input_are_several_queries_and_their_format_can_be_named(built: Path) -> None:
    lines = "".join(json.dumps({"id": topic, "text": _text(topic)}) + "\n" for topic in ("dog", "house"))
    found = run("query", built, "-", "-k", "1", "--format", "jsonl", stdin=lines)
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert [answer["hits"][0]["id"] for answer in answers] == ["dog.md", "house.md"]
    text = f"# Heading\n\n{_text('dog')}\n\n## Another\n\n{_text('dog')}"
    found = run("query", built, "-", "--as", "md", "--format", "json", "-k", "1", stdin=text)
    assert json.loads(found.stdout)["results"][0]["query"]["id"] == "stdin.md"


def test_standard_input_that_cannot_be_read_fails_with_its_reason(built: Path) -> None:
    found = run("query", built, "-", stdin=b"PK\x03\x04 damaged")
    assert found.exit_code == 1 and found.stderr.startswith("failed: stdin: it is a damaged archive")
    broken = run("query", built, "-", stdin=b"%PDF-1.4 damaged")
    assert broken.exit_code == 1 and broken.stderr.startswith("failed: stdin: ")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("{here}/no/dir/x.json", "does not exist; make it: mkdir -p"),
        ("{here}", "is a folder; name a file in it"),
        ("{here}/file/x.json", "is not a folder"),
        ("/proc/x.json", "no file can be written in /proc"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_search(
    built: Path, tmp_path: Path, output: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr("indexer.cli.query.opened_index", None)  # must not be reached
    found = run("query", built, "--id", "dog.md", "-o", output.format(here=tmp_path))
    assert found.exit_code == 2 and message in found.stderr


def test_an_output_is_written_whole_or_not_at_all(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "hits.json"
    output.write_text("before")
    output.chmod(0o640)
    (tmp_path / "link.json").symlink_to(output)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", full)
        found = run("query", built, "--id", "dog.md", "--format", "json", "-o", output)
    assert found.exit_code == 1 and "No space left on device); it is as it was before" in found.stderr
    assert output.read_text() == "before" and len(list(tmp_path.iterdir())) == 2
    succeed("query", built, "--id", "dog.md", "--format", "json", "-o", tmp_path / "link.json")
    assert json.loads(output.read_text())["results"][0]["query"]["id"] == "dog.md"
    assert stat.S_IMODE(output.stat().st_mode) == 0o640 and (tmp_path / "link.json").is_symlink()


def test_an_output_may_be_a_device(built: Path) -> None:
    succeed("query", built, "--id", "dog.md", "-o", "/dev/null")


def test_an_offset_past_the_end_is_reported(built: Path) -> None:
    table = succeed("query", built, "--id", "dog.md", "--offset", "1000")
    assert "past the end: 3 documents match; take a smaller offset" in table.stdout
    values = run("query", built, "--id", "dog.md", "--offset", "1000", "--format", "csv")
    assert "past the end" in values.stderr and "past the end" not in values.stdout


def test_words_in_the_place_of_a_file_get_a_hint(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as unloaded:
        unloaded.setattr("indexer.cli.query.opened_index", None)  # must not be reached
        found = run("query", built, "the old fox")
        assert found.exit_code == 1 and "to search with these words: --text 'the old fox'" in found.stderr
        assert "is a folder; name files in it" in run("query", built, built.parent).stderr
    beside = run("query", built, "absent.md", built.parent / "dog.md", "-k", "1")
    assert (
        beside.exit_code == 3
        and "failed: absent.md: No such file" in beside.stderr
        and "query  The dog" in beside.stdout
    )


def test_a_missing_index_is_reported_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.cli.query.opened_index", None)  # must not be reached
    found = run("query", "/no/such.lm", "--text", "fox")
    assert found.exit_code == 1 and "/no/such.lm holds no index; make one: longmatch index" in found.stderr


def test_weights_change_the_order_of_a_query_by_containment(tmp_path: Path, built: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text(f"# Fox\n\n{_text('fox')}\n\n# Dog\n\n{_text('dog')}\n")
    options = ["-k", "2", "--mode", "containment", "--format", "json", "--weight", "fox=3,2=0"]
    (answer,) = json.loads(run("query", built, draft, *options).stdout)["results"]
    assert answer["hits"][0]["id"] == "fox.md" and answer["hits"][0]["score"] > 0.8
    assert answer["provenance"]["parameters"]["weights"] == {"fox": 3.0, "2": 0.0}
    reversed_weights = [*options[:-1], "2=3", "--weight", "fox=0"]
    assert json.loads(run("query", built, draft, *reversed_weights).stdout)["results"][0]["hits"][0]["id"] == "dog.md"


def test_a_report_has_the_numbers_of_the_json_for_every_query(built: Path, tmp_path: Path) -> None:
    command = ["query", built, "--id", "fox.md", "--text", "an old house", "--sections", "2", "--format"]
    results = json.loads(run(*command, "json").stdout)["results"]
    succeed(*command, "html", "-o", tmp_path / "report.html")
    page = lxml.html.document_fromstring((tmp_path / "report.html").read_text())
    for number, result in enumerate(results, start=1):
        shown = page.xpath(f"//section[@id='q{number}']//table[@class='ranking']//data/@value")
        assert [float(one) for one in shown] == [hit["score"] for hit in result["hits"]]
    assert page.xpath("//footer//code")[0].text == (
        f"longmatch query {built} --id fox.md --text 'an old house' --sections 2 --format html "
        f"-o {tmp_path}/report.html"
    )
