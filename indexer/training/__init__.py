"""`train` and `pretrain`: from corpora to an encoder in a folder, with its card and its curves."""

from __future__ import annotations

from indexer.training.corpora import CorpusPath
from indexer.training.fine_tuning import train
from indexer.training.new_encoder import Kind, NewEncoder
from indexer.training.objectives import (
    Negatives,
    PairsObjective,
    SectionsObjective,
    SmithObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
    WordsObjective,
)
from indexer.training.pretraining import pretrain
from indexer.training.recipe import PretrainingRecipe, TrainingRecipe
from indexer.training.run import Trained
from indexer.training.start import Start
from indexer.training.watch import Step

__all__ = [
    "CorpusPath",
    "Kind",
    "Negatives",
    "NewEncoder",
    "PairsObjective",
    "PretrainingRecipe",
    "SectionsObjective",
    "SmithObjective",
    "Start",
    "Step",
    "TensionObjective",
    "TextPairsObjective",
    "Trained",
    "TrainingRecipe",
    "ViewsObjective",
    "WordsObjective",
    "pretrain",
    "train",
]
