from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.papers.backbones import shallow_backbone
from engine.encoders.backbone.backbone import Backbone


def test_the_lowest_layers_are_kept(bert_folder: Path, tmp_path: Path) -> None:
    folder = Path(shallow_backbone(str(bert_folder), 1, tmp_path))
    assert folder.name == "bert-first1"
    whole, shallow = (Backbone(one, device="cpu", dtype=torch.float32) for one in (bert_folder, folder))
    assert (whole.model.config.num_hidden_layers, shallow.model.config.num_hidden_layers) == (2, 1)
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    with torch.no_grad():
        below = whole.model(ids, output_hidden_states=True).hidden_states[1]
        torch.testing.assert_close(shallow.model(ids).last_hidden_state, below)


def test_a_backbone_without_more_layers_is_used_unchanged(bert_folder: Path, tmp_path: Path) -> None:
    assert shallow_backbone(str(bert_folder), 0, tmp_path) == str(bert_folder)
    assert shallow_backbone(str(bert_folder), 2, tmp_path) == str(bert_folder)
    assert list(tmp_path.iterdir()) == []
