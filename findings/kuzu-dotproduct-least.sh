#!/usr/bin/env bash
# Kuzu: a vector index of metric "dotproduct" returns vectors that point away from the query, and none of the ten best.
#
# Expected: the ten highest inner products come back, with a distance that is smaller for the better ones (1 less the product, or its
# negative), as "cosine", "l2" and "l2sq" have it, and as ARRAY_INNER_PRODUCT(), its own exact function, ranks them.
# What happens: the distance is the product itself, and the smallest are searched for. The graph is built so too: it links each vector
# to its opposites, and search does not find its way. Of 1,000 vectors of length one, for which "dotproduct" is "cosine", it
# finds none of the 10 highest products and 3 of the 10 lowest; a query with all signs turned finds 3 of the 10 highest.
# Who meets this: whoever keeps passages and their vectors in one embedded graph database, for retrieval over linked documents.
# Versions: kuzu 0.11.3 (the last one; the project is archived). Source: none found; issue 1009 of ruvnet/RuVector is the same elsewhere.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kuzu==0.11.3 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import kuzu
import numpy as np

WIDTH, K = 16, 10
random = np.random.default_rng(0)
vectors = random.normal(size=(1000, WIDTH)).astype("float32")
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
queries = random.normal(size=(50, WIDTH)).astype("float32")
queries /= np.linalg.norm(queries, axis=1, keepdims=True)
products = queries @ vectors.T

print("kuzu", kuzu.__version__)
connection = kuzu.Connection(kuzu.Database(":memory:"))
connection.execute(f"CREATE NODE TABLE passage(id INT64, vector FLOAT[{WIDTH}], PRIMARY KEY(id))")
for number, vector in enumerate(vectors):
    connection.execute("CREATE (:passage {id: $id, vector: $vector})", {"id": number, "vector": vector.tolist()})


def search(metric: str, query: np.ndarray) -> list[tuple[int, float]]:
    call = f"CALL QUERY_VECTOR_INDEX('passage', '{metric}', $query, {K}, efs := 200) RETURN node.id, distance ORDER BY distance"
    return [tuple(row) for row in connection.execute(call, {"query": query.tolist()}).get_all()]


def share(metric: str, sign: int, best: np.ndarray) -> float:
    found = [[number for number, _ in search(metric, sign * query)] for query in queries]
    return float(np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, best)]))


HIGHEST, LOWEST = np.argsort(-products, axis=1)[:, :K], np.argsort(products, axis=1)[:, :K]
shares = {}
for metric in ("cosine", "l2", "dotproduct"):
    connection.execute(f"CALL CREATE_VECTOR_INDEX('passage', '{metric}', 'vector', metric := '{metric}')")
    shares[metric] = share(metric, 1, HIGHEST), share(metric, 1, LOWEST)
    print(f"{metric}: share of the {K} highest products {shares[metric][0]:.2f}, of the {K} lowest {shares[metric][1]:.2f}")
turned = share("dotproduct", -1, HIGHEST)
print(f"dotproduct with all signs of the query turned: share of the {K} highest {turned:.2f}")
number, distance = search("dotproduct", queries[0])[0]
print(f"first result: distance {distance:.3f}, product {products[0, number]:.3f}, highest product {products[0].max():.3f}")
assert shares["cosine"][0] > 0.9 and shares["l2"][0] > 0.9
assert shares["dotproduct"][0] < 0.01 and 0.1 < shares["dotproduct"][1] < 0.8 and turned < 0.8
assert abs(distance - products[0, number]) < 1e-4 and distance < 0
PYTHON
