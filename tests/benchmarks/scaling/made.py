"""Records of grown indexes, at 1,024 lists."""

from __future__ import annotations

from benchmarks.measuring.latency import Percentiles
from benchmarks.measuring.peak import Memory
from benchmarks.scaling.calibration import Calibration
from benchmarks.scaling.neighbours import CandidateLists
from benchmarks.scaling.record import Asked, Cold, GrowthCost, ScaleRecord
from benchmarks.scaling.stages import HITS, LISTS, OTHER, SCORES, THRESHOLDS, WORDS
from indexer.training.origin import Origin

NEAR = CandidateLists(400, 16_000, [0.1, 0.2, 0.3, 0.4, 0.5], [0.45, 0.5, 0.6, 0.7, 0.9], [0.6, 0.65, 0.7, 0.75, 0.8])
CALIBRATION = Calibration(1.4, 0.03, {"1.4": 0.03, "2.0": 0.1}, NEAR, NEAR)


def scale_record(origin: Origin, n_chunks: int, *, is_quick: bool = False) -> ScaleRecord:
    """40 chunks a document; lists cost 2 ms and 1 ms for 10,000 codes, postings 1 ms for 5,000 documents."""
    n_documents = n_chunks // 40
    stages = {
        THRESHOLDS: 1.0,
        LISTS: 2 + n_chunks * 32 / 1024 / 10_000,
        WORDS: n_documents / 5_000,
        SCORES: 3.0,
        HITS: 1.5,
        OTHER: 0.5,
    }
    asked = Asked(100, 40.0, Percentiles(20.0, 30.0, 40.0), stages, 9.5, 0.985, 0.8)
    memory = Memory(150.0, 900.0, 300 + n_documents * 1.5 / 1024, 500.0)
    return ScaleRecord(
        source="papers@0123456789ab",
        is_quick=is_quick,
        n_documents=n_documents,
        n_real=1000,
        n_chunks=n_chunks,
        width=384,
        factory="IVF1024,PQ192x4fs",
        n_lists=1024,
        nprobe=32,
        generation_recall=0.98,
        memory_bytes=None,
        cap_bytes=None,
        cap_kind="",
        k=10,
        threads=2,
        workers=2,
        calibration=CALIBRATION,
        neighbours=NEAR,
        growth=GrowthCost(n_chunks / 100_000, n_chunks / 200_000, 1 + n_chunks / 50_000),
        disk={
            "catalog": n_documents * 2048,
            "shards": n_chunks * 800,
            "ann": n_chunks * 104,
            "postings": n_documents * 9,
            "reference": 99,
        },
        cold=Cold(0.5, 0.5 + n_chunks / 1_000_000),
        asked={"real": asked, "synthetic": asked},
        queries_per_second=55.5,
        memory=dict.fromkeys(("grow", "publish", "search", "batch"), memory),
        gflops=480.0,
        origin=origin,
    )
