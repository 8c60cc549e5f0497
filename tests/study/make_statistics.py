"""Writes statistics.json: what SciPy and NumPy say of a few made-up studies.

    python3 make_statistics.py > statistics.json     needs numpy and scipy

Draws that other programs repeat are those of the project's counter-based generator (Philox4x32-10, core/random.h),
written here once more.
"""
import json

import numpy as np
from scipy import integrate, optimize, stats

MASK = (1 << 64) - 1


def finalise(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def mix(a, b):
    return finalise(finalise((a + 0x9E3779B97F4A7C15) & MASK) ^ ((b + 0xD1B54A32D192ED03) & MASK))


def name_hash(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def philox(counter, key):
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ counter[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def draws_below(seed, item):
    key = mix(mix(seed, name_hash("bootstrap")), 0)
    block = 0
    words = []

    def bits():
        nonlocal block
        if not words:
            words.extend(philox([block, 0, item & 0xFFFFFFFF, item >> 32], key))
            block += 1
        return words.pop(0)

    def below(n):  # Lemire 2019
        product = bits() * n
        if product & 0xFFFFFFFF < n:
            while product & 0xFFFFFFFF < (1 << 32) % n:
                product = bits() * n
        return product >> 32

    return below


def crossed(arm, base, counts, documents):
    """The standard error of the examples and its degrees of freedom: the jackknife that leaves out one document at a
    time, of the mean over seeds, less what seeds and documents share."""
    seeds = len(arm)
    def left_out(document):
        kept = documents != document
        return (arm - base)[:, kept].sum(1) / counts[kept].sum()
    u = np.array([left_out(document) for document in np.unique(documents)]).T  # [S, G]
    u -= ((arm - base).sum(1) / counts.sum())[:, None]
    groups = u.shape[1]
    of_means = (u.mean(0) ** 2).sum()
    interaction = ((u - u.mean(0)) ** 2).sum() / (seeds - 1) / seeds
    sizes = np.array([counts[documents == document].sum() for document in np.unique(documents)])
    freedom = max(1, sizes.sum() ** 2 / (sizes ** 2).sum() - 1)
    return np.sqrt(max(0, of_means - interaction) * (groups - 1) / groups), freedom


def reach(error, seeds, of_examples, freedom, level, items=0):
    """Half of the interval; of a share of items with the Clopper-Pearson bound of none of them."""
    exact = 100 * stats.beta.isf(level / 2, 1, items) if items else 0
    seeds_part = stats.t.isf(level / 2, seeds - 1) * error
    return np.sqrt(seeds_part ** 2 + (stats.t.isf(level / 2, freedom) * of_examples) ** 2 + exact ** 2)


def crossed_power(seeds, of_examples, examples, level, difference):
    """Of differences with an sd of 1 over seeds, by an integral over the quantiles of the sample's variance."""
    error = 1 / np.sqrt(seeds)
    whole = np.hypot(error, of_examples)
    def at(q):
        limit = reach(error * np.sqrt(stats.chi2.ppf(q, seeds - 1) / (seeds - 1)), seeds, of_examples, examples - 1, level)
        return stats.norm.sf((limit - difference) / whole) + stats.norm.cdf((-limit - difference) / whole)
    return integrate.quad(at, 0, 1, limit=1000, epsabs=1e-12)[0]


def power(difference, sd, n):
    limit, shift = stats.t.ppf(0.975, n - 1), difference / sd * np.sqrt(n)
    return stats.nct.sf(limit, n - 1, shift) + stats.nct.cdf(-limit, n - 1, shift)


def detectable(seeds, confidence, wanted):
    """The difference in sds with this power, by an integral over the sample's sd: scipy.stats.nct has no value for
    some large shifts, and agrees where it has one."""
    freedom = seeds - 1
    limit = stats.t.ppf(0.5 + confidence / 2, freedom)

    def power_at(shift):
        def integrand(u):
            t = limit * u / np.sqrt(freedom)
            return stats.chi.pdf(u, freedom) * (stats.norm.sf(t - shift) + stats.norm.cdf(-t - shift))
        step = shift * np.sqrt(freedom) / limit
        return integrate.quad(integrand, 0, 12, points=[min(step, 12)], limit=2000, epsabs=1e-13)[0]

    shift = optimize.brentq(lambda s: power_at(s) - wanted, 0.01, 1000, xtol=1e-12)
    known = stats.nct.sf(limit, freedom, shift) + stats.nct.cdf(-limit, freedom, shift)
    assert np.isnan(known) or abs(known - wanted) < 1e-9
    return {"seeds": seeds, "confidence": confidence, "power": wanted, "difference": shift / np.sqrt(seeds)}


def comparison(random, seeds, examples, gain, margin, documents, spread=0.0):
    counts = random.integers(1, 30, examples)
    text = random.gamma(2, 1, examples)
    seed_effect, arm_effect = random.normal(0, 0.03, (seeds, 1)), random.normal(-gain, 0.02, (seeds, 1))
    of_documents = random.normal(0, spread, documents.max() + 1)[documents]  # what the arm does to a document
    base = counts * (text + seed_effect + random.normal(0, 0.1, (seeds, examples)))
    arm = counts * (text + seed_effect + arm_effect + of_documents + random.normal(0, 0.1, (seeds, examples)))
    a, b = arm.sum(1) / counts.sum(), base.sum(1) / counts.sum()
    test = stats.ttest_rel(a, b)
    d = a - b
    error = d.std(ddof=1) / np.sqrt(seeds)
    of_examples, freedom = crossed(arm, base, counts, documents)
    half = reach(error, seeds, of_examples, freedom, 0.05 / 3)
    share = reach(100 * error, seeds, 100 * of_examples, freedom, 0.05, items=examples)
    p = optimize.brentq(lambda level: reach(error, seeds, of_examples, freedom, level) - abs(d.mean()), 1e-12, 1)
    needed = next(n for n in range(2, 10000) if power(margin, d.std(ddof=1), n) >= 0.8)
    return {
        "margin": margin, "arm": arm.tolist(), "baseline": base.tolist(), "counts": counts.tolist(),
        "documents": documents.tolist(), "freedom": freedom, "reach_of_share": share,
        "mean": d.mean(), "sd": d.std(ddof=1), "p": test.pvalue, "t_interval": list(test.confidence_interval(0.95)),
        "p_equivalence": max(stats.ttest_1samp(d, -margin, alternative="greater").pvalue,
                             stats.ttest_1samp(d, margin, alternative="less").pvalue),
        "example_error": of_examples, "interval_of_three": [d.mean() - half, d.mean() + half], "p_crossed": p,
        "seeds_needed": needed,
    }


def main():
    random = np.random.default_rng(1)
    p = random.uniform(0, 0.2, 7)
    order = np.argsort(p)
    corrected = np.empty(7)
    corrected[order] = np.maximum.accumulate(np.minimum(1, p[order] * (7 - np.arange(7))))
    uniform = random.uniform(0, 1, 200)
    test = stats.kstest(uniform, "uniform")
    print(json.dumps({
        "comparisons": [comparison(random, 5, 40, 0.05, 0.02, np.arange(40)),
                        comparison(random, 3, 25, 0.0, 0.05, np.arange(25)),
                        comparison(random, 12, 60, 0.01, 0.01, np.sort(random.integers(0, 12, 60)), 0.05),
                        comparison(random, 4, 90, 0.02, 0.01, np.repeat([0, 1, 2, 3], [60, 20, 7, 3]), 0.1)],
        "holm": {"p": p.tolist(), "corrected": corrected.tolist()},
        "power": [detectable(*case) for case in [(2, 0.95, 0.8), (2, 0.99, 0.36), (2, 0.99, 0.8), (3, 0.99, 0.9),
                                                 (5, 0.95, 0.8)]],
        "crossed_power": [{"seeds": n, "examples": e, "error": x, "level": level, "difference": d,
                           "power": crossed_power(n, x, e, level, d)}
                          for n, e, x, level, d in [(2, 50, 0.5, 0.05, 4), (3, 1024, 0.4, 0.05 / 9, 2.5),
                                                    (5, 200, 0.1, 0.05, 1.5), (10, 30, 1, 0.01, 3)]],
        "uniform": {"values": uniform.tolist(), "statistic": test.statistic, "p": test.pvalue},
    }, indent=0))


if __name__ == "__main__":
    main()
