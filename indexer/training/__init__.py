"""`train`: from corpora to an encoder in a folder, with its card."""

from engine.training.trainer import Step
from indexer.training.recipe import (
    OBJECTIVES,
    Negatives,
    PairsObjective,
    Recipe,
    SectionsObjective,
    SmithObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
    recipe_of,
)
from indexer.training.run import Trained, train
from indexer.training.start import NewEncoder, NewKind, Start

__all__ = [
    "OBJECTIVES",
    "Negatives",
    "NewEncoder",
    "NewKind",
    "PairsObjective",
    "Recipe",
    "SectionsObjective",
    "SmithObjective",
    "Start",
    "Step",
    "TensionObjective",
    "TextPairsObjective",
    "Trained",
    "ViewsObjective",
    "recipe_of",
    "train",
]
