"""Writes statistics.json: what SciPy and statsmodels say of made-up shares, clusters and ranks.

    python3 make_statistics.py > statistics.json     needs numpy, scipy and statsmodels
"""
import json

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

rng = np.random.default_rng(5)
shares = []
for right, count in [(0, 10), (10, 10), (5, 10), (812, 1000), (3, 7), (1, 1)]:
    low, high = proportion_confint(right, count, method="wilson")
    shares.append({"right": right, "count": count, "low": low, "high": high})

clusters = []
for sizes in [[20, 20, 20], [5, 50, 11, 30, 8], [3, 4]]:
    values, groups = [], []
    for group, size in enumerate(sizes):
        chance = rng.uniform(0.4, 0.95)
        values += [float(v) for v in rng.binomial(1, chance, size)]
        groups += [group] * size
    values, groups = np.array(values), np.array(groups)
    left_out = np.array([values[groups != k].mean() for k in range(len(sizes))])
    error = np.sqrt((len(sizes) - 1) / len(sizes) * ((left_out - values.mean()) ** 2).sum())
    half = stats.t.isf(0.025, max(1, sum(sizes) ** 2 / sum(n * n for n in sizes) - 1)) * error
    low, high = values.mean() - half, values.mean() + half
    if len(set(sizes)) == 1:  # the same as cluster-robust regression on a constant
        fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
        assert np.allclose(fit.conf_int()[0], [low, high])
    sums = [float(values[groups == k].sum()) for k in range(len(sizes))]
    clusters.append({"sums": sums, "counts": sizes, "mean": values.mean(), "low": low, "high": high})

pairs = []
for count in [4, 9, 30]:
    a = rng.integers(0, 8, count).astype(float)
    b = a + rng.normal(0, 3, count).round()
    pairs.append({"a": a.tolist(), "b": b.tolist(), "ranks": stats.rankdata(a).tolist(), "spearman": stats.spearmanr(a, b)[0]})

print(json.dumps({"shares": shares, "clusters": clusters, "pairs": pairs}, indent=1))
