from __future__ import annotations

from pathlib import Path

from benchmarks.systems import training_pairs


def test_the_bundled_encoder_learned_from_four_corpora() -> None:
    assert training_pairs("longmatch-minilm") == {
        "rfc": 20613,
        "wikipedia_seealso": 3622,
        "clscisumm": 1950,
        "proposals": 3139,
    }


def test_a_folder_without_our_model_card_has_no_training_pairs(tmp_path: Path) -> None:
    assert training_pairs(str(tmp_path)) == {}
    (tmp_path / "README.md").write_text("# A model\n\n| corpus | documents | pairs |\n| a | 1 | 2 |\n")
    assert training_pairs(str(tmp_path)) == {}
