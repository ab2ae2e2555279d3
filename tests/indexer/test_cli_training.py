"""`longmatch train`: what it prints where, its settings, and what it refuses."""

import io
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from engine.training.trainer import Step
from indexer.cli import main
from indexer.cli.terminal import TrainingProgress
from indexer.cli.train import ALONE, KINDS, PAIRS, command_text, resumable
from indexer.training.recipe import OBJECTIVES
from indexer.training.start import NewKind
from tests.fakes import Terminal, make_corpus
from tests.indexer.training_corpus import write_corpus, write_documents

ROOT = Path(__file__).parents[2]
Run = Callable[..., Result]


def words_of(settings: str) -> list[str]:
    """`a=1 b=2` as options."""
    return [word for setting in settings.split() for word in ("--set", setting)]


FEW = ("--device", "cpu", *words_of("steps=2 validate_every=2 learning_rate=1e-3"))
OF_PAIRS = words_of("miner=none queries=6 query_chunks=3 target_chunks=2")
VIEWS = ("--objective", "docsplit", *words_of("batch_size=4 view_tokens=60"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "papers")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("data") / "notes.jsonl", make_corpus(12))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def invoke(*arguments: str | Path) -> Result:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["/usr/bin/longmatch", *words])
        return CliRunner().invoke(main, words)

    return invoke


@pytest.mark.slow
def test_train_prints_its_gain_and_the_next_command(tmp_path: Path, papers: Path, bert_folder: Path, run: Run) -> None:
    out = tmp_path / "out"
    words = ("train", out, f"{papers}:", f"--encoder={bert_folder}", *FEW, *OF_PAIRS, "--set", "licence=apache-2.0")
    result = run(*words)
    assert result.exit_code == 0, result.output
    first, deleted, following = result.stdout.splitlines()
    assert first.startswith(f"{out} holds the encoder of step ")
    assert "nDCG@10 on valid" in first and " tokens read): " in first
    assert deleted.startswith(f"{out / 'run'}, ") and deleted.endswith("needed any more and may be deleted")
    assert following == f"next: longmatch index papers.lm DOCUMENTS --encoder {out}"
    assert "papers: 24 documents, 28 pairs" in result.stderr
    card = (out / "README.md").read_text()
    expected = " ".join(("longmatch train out papers: --encoder=bert", *FEW, *OF_PAIRS, "--set licence=apache-2.0"))
    assert f"```sh\n{expected}\n```" in card
    assert 'license: "apache-2.0"' in card and str(tmp_path) not in card
    again = run(*words)
    assert "continues after step 2 of 2" in again.stderr and again.stdout.splitlines()[0] == first
    indexed = run("index", tmp_path / "papers.lm", papers / "corpus.jsonl", "--encoder", out)
    assert indexed.stdout.startswith("24 added, ")


def test_objectives_kinds_and_settings_are_those_of_the_documents(run: Run) -> None:
    assert {*PAIRS, *ALONE} == {*OBJECTIVES}
    assert {name for name, recipe in OBJECTIVES.items() if recipe.needs_pairs} == {*PAIRS}
    assert [*KINDS] == [kind.value for kind in NewKind]
    listed = run("train", "--list-settings").stdout.rstrip()
    assert f"```\n{listed}\n```" in (ROOT / "docs" / "reference" / "training.md").read_text()
    assert max(map(len, listed.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("{out} /no/such", 1, "/no/such does not exist; pairs are read from a folder with corpus.jsonl"),
        ("{out} {papers}:_other", 1, "has no train_pairs_other.tsv, so no pairs to learn from"),
        ("{out} {papers} --set losses=hinge=1", 1, "losses cannot be 'hinge=1'; give some of maxsim=WEIGHT, document="),
        ("{out} {papers} --set losses=bce=much", 1, "losses cannot be 'bce=much'; give some of"),
        ("{out} {papers} --set steps", 2, "'steps' is not NAME=VALUE, for example steps=500"),
        ("{out} {papers} --set steps=many", 1, "steps cannot be 'many'; give a whole number"),
        ("{out} {papers} --set half=perhaps", 1, "half cannot be 'perhaps'; give true or false"),
        ("{out} {papers} --set miner=bm26", 1, "miner cannot be 'bm26'; give model, bm25, none"),
        (
            "{out} {papers} --set querys=5",
            1,
            "there is no setting 'querys'; near names: queries, query_chunks, valid_q",
        ),
        ("{out} {papers} --set learning_rate=inf", 1, "learning_rate is inf; it must be finite"),
        ("{out} {papers} --set seed=4294967296", 1, "seed is 4294967296; it must be from 0 to 4294967295"),
        ("{out} {papers} --set xyz=5", 1, "there is no setting 'xyz'; longmatch train --list-settings prints all"),
        ("{out} {papers} --set size.width=8", 1, "size.width is a setting of a new encoder; name its kind with --new"),
        ("{out} {papers} --set variant=paper", 1, "variant is a setting of a new encoder; name its kind with --new"),
        ("{out} {papers} --objective sections --set losses=bce", 1, "losses is a setting of the objective pairs, and"),
        ("{out} {notes} --objective ct --set head_learning_rate=1", 1, "Contrastive Tension trains nothing beside its"),
        ("{out} {notes} --objective docsplit --set queue=9 --set mlp_head=true", 1, "a queue of 9 goes with none of"),
    ],
)
def test_wrong_use_ends_with_a_message_and_a_status(
    words: str, status: int, message: str, tmp_path: Path, papers: Path, notes: Path, bert_folder: Path, run: Run
) -> None:
    encoder = "" if "--encoder" in words else f" --encoder {bert_folder}"
    places = {"out": tmp_path / "out", "papers": papers, "notes": notes}
    result = run("train", *shlex.split(words.format(**places) + encoder))
    assert result.exit_code == status, result.output
    assert message in result.stderr and "Traceback" not in result.output


def test_an_interrupt_reports_the_step_after_which_the_same_command_continues(
    tmp_path: Path, notes: Path, bert_folder: Path, run: Run
) -> None:
    with pytest.raises(click.ClickException) as raised, resumable(tmp_path / "out"):
        raise KeyboardInterrupt
    assert (
        raised.value.message
        == "interrupted; the same command starts from the beginning, because no checkpoint was saved yet"
    )
    run("train", tmp_path / "out", notes, "--encoder", bert_folder, *VIEWS, *FEW)
    with pytest.raises(click.ClickException) as raised, resumable(tmp_path / "out"):
        raise KeyboardInterrupt
    assert raised.value.message == "interrupted; the same command continues after step 2"
    assert raised.value.exit_code == 130


def test_the_recorded_command_has_no_folders_of_the_machine() -> None:
    words = "/usr/bin/longmatch train /home/me/out data/x:_y --encoder=/opt/bert --indexes /opt/b"
    assert command_text(words.split()) == "longmatch train out data/x:_y --encoder=bert --indexes b"


def test_a_terminal_has_a_bar_with_the_figures() -> None:
    stream = Terminal()
    with TrainingProgress(stream) as progress:
        progress.log("papers: 24 documents")
        progress(Step(8, 20, 1.5, 1234.5, None))
        progress.log("valid nDCG@10 after step 8")
        for number in range(9, 21):
            progress(Step(number, 20, 0.25, 1000.0, 0.625))
            progress._bar.refresh()
    text = stream.getvalue()
    assert text.startswith("papers: 24 documents\n") and "valid nDCG@10 after step 8\n" in text
    assert "8/20" in text and "20/20" in text and "loss 0.2500, 1,000 tokens/s, valid 0.6250" in text


def test_without_a_terminal_lines_are_printed_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    progress = TrainingProgress(stream)
    progress(Step(8, 20, 1.5, 1234.5, None))
    assert stream.getvalue() == ""  # too soon
    progress._last -= 60
    progress._began -= 600
    progress(Step(10, 20, 0.5, 999.6, 0.625))
    assert stream.getvalue() == "step 10 of 20, loss 0.5000, 1,000 tokens/s, valid 0.6250, about 50 min left\n"
