"""Which code each kind of record measures: files and folders of the checkout."""

from __future__ import annotations

from collections.abc import Mapping

_ENCODING = (
    *("engine/text/segmentation.py", "engine/encoders/chunking.py", "engine/encoders/backbone/tokenizer.py"),
    *("engine/encoders/backbone/backbone.py", "engine/encoders/mean.py"),
)
_SCORING = (
    *(
        "engine/scoring",
        "engine/words",
        "engine/store/reference.py",
        "engine/store/coarse.py",
        "engine/text/section_kinds.py",
    ),
    *(
        f"engine/search/{name}.py"
        for name in (
            *("searcher", "scorer", "query", "long_query", "candidates", "document_lists"),
            *("local_partition", "pool", "merging", "section_weights", "skipping"),
        )
    ),
)
_STORING = (
    *("engine/store/catalog.py", "engine/store/documents.py", "engine/store/durable.py", "engine/store/publishing.py"),
    *("engine/store/seal.py", "engine/store/shards.py", "engine/store/writer.py", "indexer/building/pipeline.py"),
)
_LISTS = (
    *("engine/store/ann.py", "engine/store/postings.py", "engine/search/candidates.py"),
    *("engine/search/document_lists.py", "indexer/generation/new_generation.py"),
)
_METRICS = ("benchmarks/metrics.py",)
_SYSTEMS = (*_ENCODING, *_SCORING)
_MODELS = ("engine/encoders", "engine/training")
_JUDGING = ("benchmarks/pairs/judging.py", "benchmarks/pairs/splitting.py")
_LAYERS = (
    *(f"benchmarks/frozen/{name}.py" for name in ("corpora", "layers", "training")),
    "engine/encoders/colde/layers.py",
)
_PEERS = tuple(f"benchmarks/peers/{name}.py" for name in ("peer", "shared_weights", "stages"))
_GROWTH = ("benchmarks/speed/growth/stream.py", "benchmarks/speed/growth/texts.py")

# Files and folders of the checkout, by kind of record; only those that determine the values of the record.
MEASURED: Mapping[str, tuple[str, ...]] = {
    "retrieval": _SYSTEMS,  # for evidence; other systems have fewer, see `modules_of`
    "positions": (*_SYSTEMS, "benchmarks/tasks/positions.py"),
    "samples": (*_METRICS, *_SYSTEMS),
    "demand": (*_METRICS, *_SYSTEMS, "engine/search/on_demand.py"),
    "boilerplate": _SYSTEMS,
    "architectures": (*_SYSTEMS, *_MODELS),  # for encoders; other systems: `modules_of`
    "pairs": (*_JUDGING, *_MODELS),  # for encoders; other scorers: `modules_of`
    "probe": ("benchmarks/probing.py", *_ENCODING),
    "document_layers": (*_LAYERS, "engine/encoders/smith/layers.py"),
    "term_vectors": ("benchmarks/frozen/terms.py", *_LAYERS),
    "second_stage": (
        *(f"benchmarks/frozen/{name}.py" for name in ("candidates", "rerankers", "reranking")),
        *(*_LAYERS, *_SCORING),
    ),
    "summaries": ("benchmarks/scisumm.py", *_SYSTEMS),
    "facets": ("benchmarks/sections/faceted.py", "benchmarks/sections/subcorpus.py", *_SYSTEMS),
    "faithfulness": (
        *(f"benchmarks/sections/{name}.py" for name in ("removal", "parts", "matches", "subcorpus")),
        *_SYSTEMS,
    ),
    "planted": ("benchmarks/sections/planting.py", "benchmarks/sections/subcorpus.py", *_SYSTEMS),
    "contained": ("engine/search/novelty.py", *_SCORING),
    "duplicates": ("indexer/pairs", "engine/search/pair_search.py", *_SCORING),
    "peers": (*_PEERS, "benchmarks/peers/longmatch.py", *_SYSTEMS, *_LISTS),  # for longmatch; other peers: `modules_of`
    "ann": ("benchmarks/speed/vectors", *_LISTS),
    "recall": (*_SCORING, *_LISTS),
    "gpu_search": ("engine/gpu", "engine/store/replica.py", *_SCORING, *_LISTS),
    "exactness": _SCORING,
    "stability": (*_SCORING, *_LISTS),
    "throughput": (
        *("benchmarks/speed/encode", *_ENCODING),
        *("engine/encoders/backbone/cpu_bert.py", "indexer/building/pipeline.py"),
    ),
    "plan": ("indexer/plan", "indexer/generation/footprint.py"),
    "scale": (*_GROWTH, *_SCORING, *_LISTS),
    "word_postings": ("engine/store/postings.py", "engine/words"),
    "addition": (*_GROWTH, *_SCORING, *_STORING),
    "memory": ("indexer/reading/reader.py", "engine/encoders/backbone/batching.py", *_STORING),
    "faults": (*_STORING, "indexer/upkeep", "indexer/generation", "indexer/partitions"),
    "concurrency": (*_STORING, "engine/store/snapshot.py", "indexer/upkeep", "indexer/generation"),
    "row_checks": tuple(f"engine/store/{name}.py" for name in ("catalog", "checks", "documents", "opened")),
    "fuzz": ("engine/readers", "indexer/reading/reader.py", "indexer/reading/process.py"),
    "load": ("indexer/serving", *_SCORING),
    "startup": ("longmatch/__main__.py", "engine/index.py", "indexer/cli/query.py", "indexer/cli/query_files.py"),
    "first_answer": tuple(
        f"engine/store/{name}.py"
        for name in ("snapshot", "roster_blocks", "opened", "checks", "seal", "shards", "postings")
    ),
    "reading": ("indexer/reading", "engine/readers/reader.py", "engine/readers/text.py"),
}
TASKS = (  # kinds of runs
    *("retrieval", "architectures", "pairs", "probe", "summaries", "peers"),
    *("facets", "faithfulness", "planted", "contained", "positions"),
)
# The code that the rankings and scores of a system depend on, where that is not all of `MEASURED`.
# Metrics are not included: a run keeps rankings, and its values are computed from them.
_LEXICAL, _WORD_VECTORS = "benchmarks/baselines/lexical.py", "benchmarks/baselines/word_vectors.py"
_DISTANCES = ("benchmarks/baselines/word_distances.py", _WORD_VECTORS)
_OF_SYSTEM: Mapping[str, tuple[str, ...]] = {
    "words": _SCORING,
    "document": _ENCODING,
    "bm25": (_LEXICAL,),
    "tfidf": (_LEXICAL,),
    "doc2vec": ("benchmarks/baselines/doc2vec.py", _LEXICAL, _WORD_VECTORS),
    "wmd": _DISTANCES,
    "wrd": _DISTANCES,
    "hidden_topics": ("benchmarks/baselines/hidden_topics.py", _LEXICAL, *_DISTANCES),
}
_OF_WORDS = tuple(f"benchmarks/baselines/{name}.py" for name in ("pair_model", "text_inputs", "word_vectors"))
_OF_BERT = (*_OF_WORDS[:2], "benchmarks/baselines/transformer_scorers.py", "engine/encoders/backbone")
_OF_SCORER: Mapping[str, tuple[str, ...]] = {  # of pairs
    **dict.fromkeys(("dssm", "arc-i"), (*_OF_WORDS, "benchmarks/baselines/matchers.py")),
    **dict.fromkeys(("han", "smash"), (*_OF_WORDS, "benchmarks/baselines/hierarchical.py")),
    "re2": (*_OF_WORDS, "benchmarks/baselines/re2.py"),
    "concept-graph": (
        *_OF_WORDS,
        *(
            f"benchmarks/baselines/{name}.py"
            for name in (
                *("concept_matcher", "concept_graphs", "concepts", "edge_betweenness", "keywords"),
                "term_similarities",
            )
        ),
    ),
    **dict.fromkeys(("matchbert", "s-bert-512"), _OF_BERT),
    **dict.fromkeys(("s-longformer", "s-bigbird"), (*_OF_BERT, "indexer/training/long_encoder.py")),
}
_OF_TEXTS = ("bm25", "tfidf", "doc2vec", "wmd", "wrd", "hidden_topics")


_OF_PEER: Mapping[str, tuple[str, ...]] = {  # modules of benchmarks/peers, by the name of a peer before "@"
    "st-first-256": ("first_tokens", "chunk_vectors"),
    "st-first-512": ("first_tokens", "chunk_vectors"),
    "st-chunks": ("chunk_vectors",),
    "st-chunks-sum": ("chunk_vectors",),
    "txtai": ("txtai_chunks", "chunk_vectors"),
    "late-interaction": ("late_interaction", "chunk_vectors"),
    "lancedb": ("lancedb_chunks", "chunk_vectors"),
}


def modules_of(kind: str, system: str = "") -> tuple[str, ...]:
    """The files and folders that a record measures; `system` is that of a run."""
    measured = MEASURED[kind]
    if kind in ("pairs", "architectures") and (modules := _OF_SCORER.get(system)):
        return (*_JUDGING, *modules)
    if kind == "pairs" and system in _OF_TEXTS:
        return (*_JUDGING, *_OF_SYSTEM[system])
    if kind == "retrieval" or (kind == "architectures" and system != "document"):
        return _OF_SYSTEM.get(system, measured)
    if kind == "summaries" and system in _OF_SYSTEM:
        return ("benchmarks/scisumm.py", *_OF_SYSTEM[system])
    if kind == "peers" and (modules := _OF_PEER.get(system.partition("@")[0])):
        return (*_PEERS, *(f"benchmarks/peers/{name}.py" for name in modules))
    return measured
