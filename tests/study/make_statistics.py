"""Writes statistics.json: what SciPy and a bootstrap written from the paper say of a few made-up studies.

    python3 make_statistics.py > statistics.json     needs numpy and scipy

The bootstrap draws by the project's counter-based generator (Philox4x32-10, core/random.h), written here once more.
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


def multibootstrap(arm, base, counts, resamples, seed):
    seeds, examples = arm.shape
    means = []
    for b in range(resamples):
        below = draws_below(seed, b)
        chosen = [below(seeds) for _ in range(seeds)]
        rows = [below(examples) for _ in range(examples)]
        one = [arm[s, rows].sum() / counts[rows].sum() - base[s, rows].sum() / counts[rows].sum() for s in chosen]
        means.append(np.mean(one))
    return np.array(means)


def expanded(draws, n):
    tail = stats.norm.cdf(-stats.t.ppf(0.975, n - 1) * np.sqrt(n / (n - 1)))
    return np.quantile(draws, [tail, 1 - tail])


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


def comparison(random, seeds, examples, gain, margin):
    counts = random.integers(1, 30, examples)
    text = random.gamma(2, 1, examples)
    seed_effect, arm_effect = random.normal(0, 0.03, (seeds, 1)), random.normal(-gain, 0.02, (seeds, 1))
    base = counts * (text + seed_effect + random.normal(0, 0.1, (seeds, examples)))
    arm = counts * (text + seed_effect + arm_effect + random.normal(0, 0.1, (seeds, examples)))
    a, b = arm.sum(1) / counts.sum(), base.sum(1) / counts.sum()
    test = stats.ttest_rel(a, b)
    d = a - b
    error = d.std(ddof=1) / np.sqrt(seeds)
    draws = multibootstrap(arm, base, counts, 200, 7)
    needed = next(n for n in range(2, 10000) if power(margin, d.std(ddof=1), n) >= 0.8)
    return {
        "margin": margin, "arm": arm.tolist(), "baseline": base.tolist(), "counts": counts.tolist(),
        "mean": d.mean(), "sd": d.std(ddof=1), "p": test.pvalue, "t_interval": list(test.confidence_interval(0.95)),
        "p_equivalence": max(stats.ttest_1samp(d, -margin, alternative="greater").pvalue,
                             stats.ttest_1samp(d, margin, alternative="less").pvalue),
        "bootstrap_mean": draws.mean(), "bootstrap_interval": expanded(draws, seeds).tolist(),
        "power_at_detectable": 0.8, "seeds_needed": needed, "error": error,
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
        "comparisons": [comparison(random, 5, 40, 0.05, 0.02), comparison(random, 3, 25, 0.0, 0.05),
                        comparison(random, 12, 60, 0.01, 0.01)],
        "holm": {"p": p.tolist(), "corrected": corrected.tolist()},
        "power": [detectable(*case) for case in [(2, 0.95, 0.8), (2, 0.99, 0.36), (2, 0.99, 0.8), (3, 0.99, 0.9),
                                                 (5, 0.95, 0.8)]],
        "uniform": {"values": uniform.tolist(), "statistic": test.statistic, "p": test.pvalue},
    }, indent=0))


if __name__ == "__main__":
    main()
