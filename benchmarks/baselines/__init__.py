"""The baselines that longmatch is compared with, one file each.

CGNet (Zhang et al. 2021, NAACL, 2021.naacl-main.445), with which the paper of TDE compares TDE, is not here.
Published are these parts: phrase features are reconstructed from concept vectors of the whole corpus, under a
divergence and an evidence regulariser, and documents are compared by a distance like Wasserstein's over
both. Not published are how phrases are found, the formulas of the regularisers and of the distance, all sizes and
weights, and the code. An implementation from these parts would be another model under its name.
"""
