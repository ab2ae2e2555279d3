"""Reads the training data of an encoder from its model card; loads no encoder."""

from __future__ import annotations

import re
from pathlib import Path

from engine.encoders.files import resolve_backbone
from engine.training.card import CARD_FILE

_SECTION = re.compile(r"^## Training data\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| *([^|]+?) *\| *[\d,]+ *\| *([\d,]+) *\|", re.MULTILINE)  # corpus, documents, pairs


def training_pairs(encoder: str) -> dict[str, int]:
    """Pairs of query and target that an encoder, a folder or a name, was trained on, by corpus.

    They are in the table "Training data" of the README.md of its folder; models of other projects have none, and give
    {}. A corpus that was read without pairs has 0.
    """
    weights, colon, _ = encoder.rpartition(":")  # models of other projects are named WEIGHTS:MODEL-READING
    card = resolve_backbone(weights if colon and not Path(encoder).is_dir() else encoder) / CARD_FILE
    section = _SECTION.search(card.read_text("utf-8", errors="replace")) if card.is_file() else None
    return {name: int(pairs.replace(",", "")) for name, pairs in _ROW.findall(section[1])} if section else {}
