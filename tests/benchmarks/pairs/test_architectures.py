from dataclasses import asdict
from pathlib import Path

from benchmarks.runs import Run, read_runs
from benchmarks.tables.encoders import ArchitectureDetails, EncoderFacts, architectures_table
from benchmarks.tasks.architectures import encoder_facts, main
from engine.encoders.loading import load_trainable
from engine.machine import Origin
from tests.benchmarks.made_runs import made_run, run_program

FACTS = EncoderFacts(22_700_000, "all-MiniLM-L6-v2@0", 60, 180_000)


def of_encoder(name: str, values: list[float], origin: Origin, corpus: str, facts: EncoderFacts = FACTS) -> Run:
    details = asdict(ArchitectureDetails(240, 1000, facts))
    given = {"task": "architectures", "encoder": f"{name}@0", "details": details, "fit_seconds": 12.0, "n_tokens": 9}
    return made_run("document", values, origin, corpus, **given)


def test_an_encoder_is_compared_with_its_backbone_over_the_queries_of_all_corpora(origin: Origin) -> None:
    base = EncoderFacts(22_700_000)
    runs = [
        *(
            of_encoder("all-MiniLM-L6-v2", [0.2, 0.4], origin, corpus, base)
            for corpus in ("rfc_part", "proposals_part")
        ),
        *(of_encoder("colde", [0.4, 0.8], origin, corpus) for corpus in ("rfc_part", "proposals_part")),
        of_encoder("smith", [0.1, 0.1], origin, "rfc_part"),
    ]
    lines = architectures_table(runs).splitlines()
    assert lines[0] == (
        "| Document vector | proposals (2) | rfc (2) | Mean | Difference (p) | Parameters | Tokens | Seconds |"
    )
    assert lines[2].startswith(
        "| colde | 0.600 [0.400, 0.800] | 0.600 [0.400, 0.800] | 0.600 | +0.300 (0.125) | 22.7 M"
    )
    assert lines[2].endswith("| 180,000 | 50 (0123456) |")
    assert "| 0.300 |  | 22.7 M |  | 50 (0123456) |" in lines[3]
    assert lines[4].startswith("| smith | - | 0.100 [0.100, 0.100] | 0.100 |  |")


def test_the_command_ranks_a_part_by_systems_and_names_it_by_its_size(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "bm25,words", "--documents", "20", "--words", "50"]
    run_program(main, folder, *options, "--out", tmp_path / "out", "--work", tmp_path / "work")
    runs = read_runs(tmp_path / "out")
    assert [(run.system, run.corpus, run.details["facts"]) for run in runs] == [
        ("bm25", "pets_20documents_50words", None),
        ("words", "pets_20documents_50words", None),
    ]


def test_a_quick_run_takes_a_small_part_and_writes_nothing(folder: Path, tmp_path: Path) -> None:
    done = run_program(main, folder, "--quick", "--systems", "words", "--work", tmp_path)
    assert "| words |" in done.output


def test_facts_of_an_encoder_are_its_size_and_those_of_its_card(bert_folder: Path, tmp_path: Path) -> None:
    encoder = load_trainable(str(bert_folder), device="cpu")
    encoder.save_pretrained(tmp_path)
    untrained = encoder_facts(str(tmp_path))
    assert untrained.n_parameters == sum(weight.numel() for weight in encoder.module.parameters())
    assert (untrained.steps, untrained.n_tokens) == (0, 0)
    card = tmp_path / "README.md"
    card.write_text("| begins with | MiniLM |\n| steps | 1,060 |\n| tokens read | 169,472 |\n", "utf-8")
    facts = encoder_facts(str(tmp_path))
    assert (facts.begins_with, facts.steps, facts.n_tokens) == ("MiniLM", 1060, 169_472)
