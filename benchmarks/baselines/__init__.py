"""What longmatch is compared with: each baseline a file of its own.

CGNet (Zhang et al. 2021, NAACL, 2021.naacl-main.445), which the paper of TDE compares itself with, is not here.
What is known of it: phrase features are reconstructed from concept vectors of the whole corpus, under a
divergence and an evidence regulariser, and documents are compared by a distance like Wasserstein's over
both. What is not: how phrases are found, the formulas of the regularisers and of the distance, any size or weight;
and no code was published. Whatever could be built from this would be another model under its name.

`concept_matcher` is another model, and no substitute: the concept interaction graph of Liu et al. (2019, ACL,
arXiv:1802.07459), which is trained on pairs. The figures of CGNet in the paper of TDE do not apply to it.
"""
