# %% [markdown]
# # Which parts of two documents match?
# Open this file as a notebook (VS Code, Jupytext), or run it: python examples/notebook.py

# %%
from pathlib import Path

import longmatch

FOLDER = Path("demo/corpus/eips")
index = longmatch.build("notebook.lm", FOLDER, encode="none")
index

# %% A notebook displays a result; here is its first hit as text.
result = index.search("demo/queries/eip-7702.pdf", k=5)
for snippet in result[0].snippets(3):
    print(snippet)

# %% One row per hit, and one row per part of a hit.
hits = result.to_pandas()
parts = result.parts_to_pandas(n_pairs=5)
print(hits[["rank", "score", "title"]])

# %% The contributions of the parts sum to the score of each hit.
print(parts.groupby("rank")["contribution"].sum().round(4).tolist())
print(hits["score"].round(4).tolist())

# %%
index.close()
