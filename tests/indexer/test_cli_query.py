"""`longmatch query`, `compare` and `chart`: what comes in, what is printed and written, and what is left out."""

import csv
import gzip
import io
import json
import os
import stat
from pathlib import Path

import docx
import lxml.html
import pytest
from click.testing import CliRunner, Result

import longmatch
from engine.errors import BudgetExceeded
from indexer.cli import main, terminal
from tests.commands import run, succeed
from tests.readers.made import docx_bytes
from tests.readers.made_pdf import pdf_of_contents
from tests.strict_schema import check

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
        missing = run("query", built, "--id", "dog.md", "--format", "json", "-o", tmp_path / "new.json")
    assert (found.exit_code, missing.exit_code) == (1, 1)
    assert "hits.json: No space left on device; it is as it was before; free some space" in found.stderr
    assert "new.json: No space left on device; no file was made; free some space" in missing.stderr
    assert output.read_text() == "before" and len(list(tmp_path.iterdir())) == 2
    succeed("query", built, "--id", "dog.md", "--format", "json", "-o", tmp_path / "link.json")
    assert json.loads(output.read_text())["results"][0]["query"]["id"] == "dog.md"
    assert stat.S_IMODE(output.stat().st_mode) == 0o640 and (tmp_path / "link.json").is_symlink()


def test_an_output_may_be_a_device(built: Path) -> None:
    succeed("query", built, "--id", "dog.md", "-o", "/dev/null")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_an_output_that_is_full_is_named(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["-o", "/dev/full"], ["--log", "/dev/full"]):
        failed = run("query", built, "--id", "dog.md", *words)
        assert (failed.exit_code, "Error: /dev/full: No space left" in failed.stderr) == (1, True)

    def echo(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("indexer.cli.terminal.click.echo", echo)
    for show in (terminal.echo, terminal.echo_text):
        with pytest.raises(BudgetExceeded, match="standard output: No space left on device; free some space"):
            show("hits")


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


NEW = "Keel, mast and harbour: the wind fills a sail, and a rope holds the anchor against the tide. " * 4
OLD = "Old foxes cross the wide river at night, and a stone house by the bank stays dark until dawn. " * 4


@pytest.fixture(scope="module")
def novelties(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("novelty")
    (made / "fox.md").write_text(
        f"# Foxes\n\n{OLD}\n\n# Bread\n\nFlour, water and salt make a dough. " + "It rises. " * 30
    )
    (made / "draft.md").write_text(f"# Seen before\n\n{OLD}\n\n# Ships\n\n{NEW}\n")
    succeed("index", made / "x.lm", made / "fox.md", "--encode", "none")
    return made


def novelty(novelties: Path, *arguments: str | Path) -> Result:
    return succeed("query", novelties / "x.lm", *arguments, "--mode", "novelty")


def test_the_table_and_the_report_list_sections_from_the_most_novel(novelties: Path, tmp_path: Path) -> None:
    result = novelty(novelties, novelties / "draft.md")
    assert "2 sections, most novel first" in result.stdout
    ships, seen = result.stdout.index("  Ships\n"), result.stdout.index("  Seen before\n", 20)
    assert ships < seen < result.stdout.rindex("fox.md")
    novelty(novelties, novelties / "draft.md", "--format", "html", "-o", tmp_path / "novelty.html")
    page = (tmp_path / "novelty.html").read_text(encoding="utf-8")
    assert "longmatch novelty report" in page and "Made by <code>longmatch query" in page
    assert page.index(">Ships</a>") < page.index(">Seen before</a>")


def test_json_holds_the_schema_of_novelty(novelties: Path) -> None:
    values = json.loads(novelty(novelties, novelties / "draft.md", "--format", "json").stdout)
    (found,) = check(values)["results"]
    assert found["schema"] == "longmatch-novelty/1"
    assert [one["section"]["heading"] for one in found["sections"]] == ["Ships", "Seen before"]
    assert found["sections"][1]["novelty"] < 0.2 and found["sections"][1]["hit"]["id"] == "fox.md"
    (line,) = novelty(novelties, novelties / "draft.md", "--format", "jsonl").stdout.splitlines()
    assert json.loads(line)["sections"] == found["sections"]
    assert found["provenance"]["parameters"]["mode"] == "novelty"


def test_csv_has_a_row_for_each_section(novelties: Path, tmp_path: Path) -> None:
    novelty(novelties, novelties / "draft.md", "--format", "csv", "-o", tmp_path / "novelty.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "novelty.csv").read_text())))
    assert [(row["rank"], row["heading"], row["doc_id"]) for row in rows][1] == ("2", "Seen before", "fox.md")
    assert float(rows[0]["novelty"]) > 0.8 > 0.2 > float(rows[1]["novelty"])
    assert rows[1]["target_heading"] == "Foxes" and rows[1]["words"]


def pair_of_topics(first: str, second: str) -> str:
    bodies = [
        " ".join(f"the old {topic} runs over the dark {topic} and on" for _ in range(9)) for topic in (first, second)
    ]
    return f"# On the {first}\n\n{bodies[0]}.\n\n## On the {second}\n\n{bodies[1]}.\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    (folder / "a.md").write_text(pair_of_topics("fox", "river"))
    (folder / "b.md").write_text(pair_of_topics("river", "house"))
    (folder / "c.md").write_text(pair_of_topics("bank", "dog"))
    return folder


@pytest.fixture(scope="module")
def compared_index(files: Path, bert_folder: Path) -> Path:
    succeed("index", files / "x.lm", *sorted(files.glob("*.md")), "--encoder", bert_folder)
    return files / "x.lm"


def test_two_files_are_compared_without_an_index(files: Path, bert_folder: Path) -> None:
    table = succeed("compare", files / "a.md", files / "b.md", "--encoder", bert_folder, "--sections", "1")
    assert table.stdout.startswith("< On the fox  ") and "> On the river  " in table.stdout
    assert "On the river -> On the river" in table.stdout and "without an index there are no thresholds" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80


def test_changes_are_shown_in_every_format(files: Path, bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text((files / "a.md").read_text().replace("over the dark fox", "under it", 1))
    command = [files / "a.md", tmp_path / "new.md", "--encoder", bert_folder, "--changes"]
    assert "runs [-over the dark fox-]{+under it+} and on" in run("compare", *command).stdout
    (answer,) = check(json.loads(run("compare", *command, "--format", "json").stdout))["results"]
    ((start, end),) = [change["deleted"] for change in answer["changes"]]
    assert (files / "a.md").read_text()[start:end] == "over the dark fox"
    assert "<del>over the dark fox</del>" in run("compare", *command, "--format", "html").stdout


def test_weights_and_skipped_kinds_change_the_parts(files: Path, bert_folder: Path) -> None:
    command = [files / "a.md", files / "b.md", "--encoder", bert_folder, "--format", "json"]
    found = run("compare", *command, "--weight", "on the river=0", "--skip", "appendix")
    (answer,) = check(json.loads(found.stdout))["results"]
    assert (answer["hits"][0]["id"], answer["query"]["id"]) == ("b.md", "a.md")
    parts = [part for part in answer["hits"][0]["parts"] if part["kind"] == "section_pair"]
    assert {part["query_section"]["heading"] for part in parts} == {"On the fox"}
    used = answer["provenance"]["parameters"]
    assert (used["weights"], used["skip"]) == ({"on the river": 0.0}, ["appendix"])
    wrong = run("compare", *command, "--weight", "on the dog=2")
    assert wrong.exit_code == 1 and "no section of" in wrong.stderr and "named 'on the dog'" in wrong.stderr


def test_json_holds_the_whole_results_of_python(files: Path, compared_index: Path) -> None:
    queries = [files / "a.md", files / "b.md"]
    shown = succeed("query", compared_index, *queries, "--sections", "1", "--format", "json").stdout
    written = check(json.loads(shown))["results"]
    with longmatch.open(compared_index) as index:
        expected = [result.to_dict(n_pairs=1) for result in index.search(queries)]
    for result in (*written, *expected):
        del result["seconds"], result["provenance"]["time"]
    assert written == expected
    parts = [part["kind"] for result in written for hit in result["hits"] for part in hit["parts"]]
    assert set(parts) == {"section_pair", "rest"}


@pytest.mark.slow
def test_an_index_gives_the_score_of_a_search_also_to_standard_input(files: Path, compared_index: Path) -> None:
    search = ["query", str(compared_index), str(files / "a.md"), "--format", "json"]
    hits = json.loads(CliRunner().invoke(main, search).stdout)["results"][0]["hits"]
    expected = next(hit["score"] for hit in hits if hit["id"] == "b.md")
    for target in (["--id", "b.md"], [files / "b.md"]):
        found = run("compare", files / "a.md", *target, "--index", compared_index, "--format", "json")
        assert json.loads(found.stdout)["results"][0]["hits"][0]["score"] == expected
    assert (
        f"word statistics of {compared_index}"[:30]
        in run("compare", files / "a.md", "--id", "b.md", "--index", compared_index).stdout
    )
    found = succeed("compare", "-", files / "b.md", "--index", compared_index, stdin=pair_of_topics("fox", "river"))
    assert found.stdout.startswith("< ")


def test_a_report_is_one_file_with_the_numbers_of_the_json(files: Path, compared_index: Path, tmp_path: Path) -> None:
    command = [files / "a.md", files / "b.md", "--index", compared_index, "--sections", "1", "--format"]
    (answer,) = json.loads(run("compare", *command, "json").stdout)["results"]
    succeed("compare", *command, "html", "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    for row in answer["hits"][0]["by_section"]["rows"]:
        assert f'<data value="{row["contribution"]}">{row["contribution"]:.4f}</data>' in page
    assert f"--index {compared_index} --sections 1 --format html" in page


FOX = "# Traps\n\nOld foxes cross the wide river at night.\n\n## House\n\nA stone house by the wide river is red.\n"
PATENT = "# Trap\n\n## Description\n\nIt catches foxes by the river.\n\n## Claims\n\n"
PATENT += "1. A trap for old foxes that cross a wide river at night.\n2. The trap of claim 1 by a stone house.\n"


@pytest.fixture(scope="module")
def charted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("charts")
    (made / "fox.md").write_text(FOX)
    (made / "patent.md").write_text(PATENT)
    succeed("index", made / "x.lm", made / "fox.md", made / "patent.md", "--encode", "none")
    return made


def test_claims_and_their_elements_are_rows_and_the_document_itself_is_no_column(charted: Path) -> None:
    result = succeed("chart", charted / "x.lm", charted / "patent.md", "--by", "claim", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["label"] for row in rows] == ["Claim 1", "Claim 2"]
    assert rows[0]["fox.md passage"] == "Old foxes cross the wide river at night."
    assert "patent.md passage" not in rows[0]
    (charted / "long.md").write_text("# Trap\n\n## Claims\n\n1. A trap comprising: a door; and a stone house.\n")
    result = succeed(
        "chart", charted / "x.lm", charted / "long.md", "--by", "element", "--format", "csv", "--least", "0"
    )
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["text"] for row in rows] == ["1. A trap comprising:", "a door; and", "a stone house."]


def test_an_indexed_document_is_charted_by_its_id_in_every_format(charted: Path, tmp_path: Path) -> None:
    by_id = succeed("chart", charted / "x.lm", "--id", "fox.md", "--format", "csv", "--by", "sentence")
    assert (
        by_id.stdout == run("chart", charted / "x.lm", charted / "fox.md", "--format", "csv", "--by", "sentence").stdout
    )
    succeed("chart", charted / "x.lm", "--id", "fox.md", "-o", tmp_path / "x.docx")
    assert len(docx.Document(str(tmp_path / "x.docx")).tables) == 1
    page = run("chart", charted / "x.lm", "--id", "fox.md").stdout
    assert page.startswith("<!doctype html>") and "longmatch chart" in page and "--id fox.md" in page


@pytest.mark.parametrize(
    ("words", "name", "beginning"),
    [
        ("chart", "x.csv", b"row,label,"),
        ("chart", "x.HTM", b"<!doctype html>"),
        ("chart", "x.txt", b"<!doctype html>"),
        ("query", "x.txt", b"query  "),
        ("query", "x.csv", b"query_id,rank,score,"),
        ("query", "x.json", b'{\n "schema"'),
        ("query", "x.bib", b"@"),
        ("query --format jsonl", "x.json", b'{"schema"'),
    ],
)
def test_the_file_names_the_format(charted: Path, tmp_path: Path, words: str, name: str, beginning: bytes) -> None:
    command, *options = words.split()
    assert succeed(command, charted / "x.lm", "--id", "fox.md", "-o", tmp_path / name, *options).stdout == ""
    assert (tmp_path / name).read_bytes().startswith(beginning)
