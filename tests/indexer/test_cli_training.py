"""`longmatch train` and `longmatch pretrain`: what they print where, and what they refuse."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from indexer.cli import main
from indexer.cli.progress import TrainingProgress
from indexer.cli.training_options import command_text, resumable
from indexer.training import Step
from tests.fakes import make_corpus
from tests.indexer.training_corpus import write_corpus, write_documents
from tests.indexer.training_sizes import COLDE, SMITH, TDE

FEW = ("--steps", "2", "--valid-every", "2", "--device", "cpu", "--learning-rate", "1e-3")
PAIRS = ("--negatives", "none", "--queries", "6", "--query-chunks", "3", "--target-chunks", "2")
VIEWS = ("--batch", "4", "--view-tokens", "60")
Run = Callable[..., Result]


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


def sizes(given: dict[str, str]) -> list[str]:
    return [word for name, value in given.items() for word in ("--size", f"{name}={value}")]


@pytest.mark.slow
def test_train_prints_the_folder_of_the_encoder_its_gain_and_the_next_command(
    tmp_path: Path, papers: Path, bert_folder: Path, run: Run
) -> None:
    result = run("train", tmp_path / "out", papers, "--encoder", bert_folder, *FEW, *PAIRS)
    assert result.exit_code == 0, result.output
    first, deleted, following = result.stdout.splitlines()
    assert first.startswith(f"{tmp_path / 'out'} holds the encoder of step ")
    assert "nDCG@10 on valid" in first and " tokens read): " in first
    assert deleted.startswith(f"{tmp_path / 'out' / 'run'}, ") and deleted.endswith(
        "needed any more and may be deleted"
    )
    assert following == f"next: longmatch index papers.lm DOCUMENTS --encoder {tmp_path / 'out'}"
    assert "papers: 24 documents, 28 pairs" in result.stderr


@pytest.mark.slow
def test_the_next_command_works(tmp_path: Path, papers: Path, bert_folder: Path, run: Run) -> None:
    run("train", tmp_path / "out", papers, "--encoder", bert_folder, *FEW, *PAIRS, "--half")
    indexed = run("index", tmp_path / "papers.lm", papers / "corpus.jsonl", "--encoder", tmp_path / "out")
    assert indexed.stdout.startswith("24 added, ")


@pytest.mark.slow
def test_the_card_has_the_command_without_folders(tmp_path: Path, papers: Path, bert_folder: Path, run: Run) -> None:
    out = tmp_path / "out"
    run("train", out, f"{papers}:", f"--encoder={bert_folder}", *FEW, *PAIRS, "--licence", "apache-2.0")
    card = (out / "README.md").read_text()
    words = " ".join((*FEW, *PAIRS))
    assert f"```sh\nlongmatch train out papers: --encoder=bert {words} --licence apache-2.0\n```" in card
    assert 'license: "apache-2.0"' in card and str(tmp_path) not in card


@pytest.mark.slow
def test_a_finished_run_is_not_trained_again(tmp_path: Path, papers: Path, bert_folder: Path, run: Run) -> None:
    words = ("train", tmp_path / "out", papers, "--encoder", bert_folder, *FEW, *PAIRS)
    first, second = run(*words), run(*words)
    assert (
        "continues after step 2 of 2" in second.stderr and second.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    )
    other = run(*words, "--hard", "1")
    assert other.exit_code == 1
    assert "began with negatives 3, not 1; give again what it began with, or name another folder" in other.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "given", "objective"),
    [
        ("smith", SMITH, ("--loss", "document", *PAIRS)),
        ("colde", COLDE, ("--objective", "sections", "--queries", "4")),
        ("tde", TDE, ("--objective", "text-pairs", "--negatives", "none", "--topic-epochs", "1")),
        ("longformer", {"max_tokens": "64", "window": "8"}, ("--loss", "document", *PAIRS)),
        ("bigbird", {"max_tokens": "64", "block_tokens": "4", "random_blocks": "1"}, ("--loss", "document", *PAIRS)),
    ],
)
def test_new_encoders_are_made_and_trained(
    new: str,
    given: dict[str, str],
    objective: tuple[str, ...],
    tmp_path: Path,
    papers: Path,
    bert_folder: Path,
    run: Run,
) -> None:
    words = ("train", tmp_path / "out", papers, "--encoder", bert_folder, "--new", new, *sizes(given), *objective)
    result = run(*words, *FEW)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "longmatch.json").read_text())["encoder"] == (
        new if new in ("smith", "colde", "tde") else "mean"
    )
    settings = json.loads((tmp_path / "out" / "run" / "recipe.json").read_text())["settings"]
    assert settings["head learning rate"] == (1e-3 if new == "tde" else None)
    precision = "no" if new == "bigbird" else "yes"  # on any processor
    assert f"| mixed precision | {precision} |" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("docsplit", {"sampling": "docsplit", "mlm weight": 0.0, "queue": 0, "pooling": None}),
        ("contriever", {"sampling": "contriever", "queue": 131072, "momentum": 0.9995}),
        ("words", {"objective": "words", "batch size": 4}),
    ],
)
def test_pretrain_learns_from_a_file_of_documents(
    task: str, settings: dict[str, object], tmp_path: Path, notes: Path, bert_folder: Path, run: Run
) -> None:
    result = run("pretrain", tmp_path / "out", notes, "--encoder", bert_folder, "--task", task, *VIEWS, *FEW)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].endswith(" tokens read)")  # nothing was validated
    recorded = json.loads((tmp_path / "out" / "run" / "recipe.json").read_text())["settings"]
    assert {name: recorded[name] for name in settings} == settings


def test_docsplit_as_published_is_a_variant(tmp_path: Path, notes: Path, bert_folder: Path, run: Run) -> None:
    result = run("pretrain", tmp_path / "out", notes, "--encoder", bert_folder, "--variant", "paper", *VIEWS, *FEW)
    assert result.exit_code == 0, result.output
    recorded = json.loads((tmp_path / "out" / "run" / "recipe.json").read_text())["settings"]
    names = ("mlm weight", "mlp head", "pooling", "window tokens")
    assert [recorded[name] for name in names] == [0.1, True, "cls", 60]


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [((), None), (("--objectives", "wp"), "wp")])
def test_smith_is_pretrained(
    given: tuple[str, ...], expected: str | None, tmp_path: Path, notes: Path, bert_folder: Path, run: Run
) -> None:
    words = ("--task", "smith", "--new", "smith", *sizes(SMITH), *given, "--batch", "4")
    result = run("pretrain", tmp_path / "out", notes, "--encoder", bert_folder, *words, *FEW)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "run" / "recipe.json").read_text())["settings"]["losses"] == expected


@pytest.mark.slow
def test_options_for_speed_and_memory_are_recorded(tmp_path: Path, papers: Path, bert_folder: Path, run: Run) -> None:
    flags = ("--group-tokens", "200", "--checkpoint-gradients", "--no-mixed-precision", "--head-learning-rate", "0.01")
    result = run("train", tmp_path / "out", papers, "--encoder", bert_folder, *FEW, *PAIRS, *flags)
    assert result.exit_code == 0, result.output
    recorded = json.loads((tmp_path / "out" / "run" / "recipe.json").read_text())["settings"]
    names = ("group tokens", "checkpoint gradients", "mixed precision", "head learning rate")
    assert [recorded[name] for name in names] == [200, True, False, 0.01]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("train", "{out}", "/no/such"), 1, "/no/such does not exist; pairs are read from a folder with corpus.jsonl"),
        (("train", "{out}", "{notes}"), 1, "notes.jsonl is a file; pairs are read from a folder"),
        (
            ("train", "{papers}", "{out}"),
            1,
            "holds README.md, and no run to go on with; OUT, which comes first",
        ),
        (("train", "{out}", "{papers}", "{papers}"), 1, "2 corpora have the name 'papers'"),
        (("train", "{out}", "{papers}:_other"), 1, "has no train_pairs_other.tsv, so no pairs to learn from"),
        (("train", "{out}", "{papers}", "--loss", "distillation"), 1, "needs a teacher; name a stronger encoder"),
        (("train", "{out}", "{papers}", "--teacher", "x"), 1, "no loss learns from the teacher x; add --loss distill"),
        (("train", "{out}", "{papers}", "--loss", "hinge=1"), 2, "'hinge' is none of evidence, maxsim"),
        (("train", "{out}", "{papers}", "--loss", "bce=much"), 2, "'bce=much' is no NAME=WEIGHT"),
        (("train", "{out}", "{papers}", "--size", "width"), 2, "'width' is not KEY=VALUE, for example width=128"),
        (("train", "{out}", "{papers}", "--size", "width=8"), 2, "--size goes with --new smith or smith-short or"),
        (("train", "{out}", "{papers}", "--variant", "paper"), 2, "--variant goes with --new"),
        (
            ("train", "{out}", "{papers}", "--objective", "sections", "--loss", "bce"),
            2,
            "--loss goes with --objective pairs, not with sections",
        ),
        (
            ("train", "{out}", "{papers}", "--negatives-per-positive", "2"),
            2,
            "--negatives-per-positive goes with --objective text-pairs, not with pairs",
        ),
        (
            ("train", "{out}", "{papers}", "--freeze-first-stage", "--head-learning-rate", "1"),
            1,
            "with a frozen first stage heads are all that is trained",
        ),
        (
            ("train", "{out}", "{papers}", "--objective", "sections"),
            1,
            "sections trains a CoLDE, the encoder is of",
        ),
        (("train", "{papers}", "{papers}", "--encoder", "{papers}"), 1, "is the encoder that training starts from"),
        (("pretrain", "{out}", "/no/such"), 1, "/no/such does not exist and no file matches it as a pattern"),
        (
            ("pretrain", "{out}", "{notes}", "--task", "ct", "--mlm-weight", "1"),
            2,
            "--mlm-weight goes with --task d",
        ),
        (("pretrain", "{out}", "{notes}", "--task", "smith"), 1, "but a SMITH; make one: --new smith"),
        (
            ("pretrain", "{out}", "{notes}", "--queue", "9", "--symmetric"),
            1,
            "a queue of 9 goes with none of sym",
        ),
        (
            ("pretrain", "{out}", "{notes}", "--variant", "released"),
            2,
            "goes with --new, or with docsplit, which",
        ),
        (("pretrain", "{out}", "{notes}", "--new", "tde", "--variant", "released"), 1, "no code of TDE was published"),
    ],
)
def test_wrong_use_ends_with_a_message_and_a_status(
    words: tuple[str, ...],
    status: int,
    message: str,
    tmp_path: Path,
    papers: Path,
    notes: Path,
    bert_folder: Path,
    run: Run,
) -> None:
    places = {"out": tmp_path / "out", "papers": papers, "notes": notes}
    encoder = () if "--encoder" in words else ("--encoder", bert_folder)
    result = run(*(word.format(**places) for word in words), *encoder)
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
    run("pretrain", tmp_path / "out", notes, "--encoder", bert_folder, *VIEWS, *FEW)
    with pytest.raises(click.ClickException) as raised, resumable(tmp_path / "out"):
        raise KeyboardInterrupt
    assert raised.value.message == "interrupted; the same command continues after step 2"


def test_the_recorded_command_has_no_folders_of_the_machine() -> None:
    words = [
        "/usr/bin/longmatch",
        "train",
        "/home/me/out",
        "data/x:_y",
        "--encoder=/opt/bert",
        "--size",
        "a=1",
        "--half",
    ]
    assert command_text(words) == "longmatch train out data/x:_y --encoder=bert --size a=1 --half"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_with_the_figures() -> None:
    stream = Terminal()
    with TrainingProgress(stream) as progress:
        progress.log("papers: 24 documents")
        progress(Step(8, 20, 1.5, 1234.5, None))
        progress.log("valid nDCG@10 after step 8")
        for number in range(9, 21):
            progress(Step(number, 20, 0.25, 1000.0, 0.625))
            assert progress._bar is not None
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


@pytest.mark.parametrize("name", ["train", "pretrain"])
def test_help_groups_the_options(name: str, run: Run) -> None:
    text = run(name, "--help").stdout
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[0] == "Objective:" and {"Encoder:", "Steps, memory, speed:", "Validation:", "Files:"} < {*headings}
    assert "Other options" not in text and "RANGE" not in text and "x>=" not in text
    assert max(map(len, text.splitlines())) <= 80
