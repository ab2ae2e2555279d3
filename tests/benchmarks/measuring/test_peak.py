from __future__ import annotations

import numpy as np

from benchmarks.measuring.peak import forget_peak, peak_rss_mib, rss_mib


def test_a_peak_is_remembered_until_it_is_forgotten() -> None:
    forget_peak()
    before = peak_rss_mib()
    held = np.ones(8 << 20)  # 64 MiB
    assert rss_mib() > before + 50
    del held
    assert peak_rss_mib() > before + 50
    forget_peak()
    assert peak_rss_mib() < before + 20
