"""Writes fit.json: scaling laws that SciPy fits to made-up points.

    python3 make_fit.py > fit.json     needs numpy and scipy

The objective is that of Hoffmann et al. 2022, appendix D.2, minimised by BFGS from several starts until it stands still.
"""
import json

import numpy as np
from scipy.optimize import minimize

from make_statistics import draws_below

LAW = {"E": 1.7, "A": 400.0, "B": 1500.0, "alpha": 0.34, "beta": 0.36}


def loss_of(law, size, tokens):
    return law["E"] + law["A"] * size ** -law["alpha"] + law["B"] * tokens ** -law["beta"]


def huber(v, x, y, log_loss, weight, delta):
    terms = np.stack([v[0] - v[3] * x, v[1] - v[4] * y, np.full_like(x, v[2])])
    predicted = np.logaddexp.reduce(terms)
    share = np.exp(terms - predicted)
    residual = predicted - log_loss
    far = np.abs(residual)
    sums = np.where(far <= delta, residual ** 2 / (2 * delta), far - delta / 2)
    slope = weight * np.clip(residual / delta, -1, 1)
    gradient = [(slope * share[0]).sum(), (slope * share[1]).sum(), (slope * share[2]).sum(),
                -(slope * share[0] * x).sum(), -(slope * share[1] * y).sum()]
    return (weight * sums).sum(), np.array(gradient)


def fit(size, tokens, loss, delta, weight=None):
    weight = np.ones(len(size)) if weight is None else weight
    at_size, at_tokens = np.log(size).mean(), np.log(tokens).mean()
    x, y, log_loss = np.log(size) - at_size, np.log(tokens) - at_tokens, np.log(loss)
    best = None
    for alpha in (0.2, 0.5):
        for beta in (0.2, 0.5):
            for e in (-0.5, 0.5):
                v = np.array([np.log(loss.mean() / 3)] * 2 + [e, alpha, beta])
                for step in np.geomspace(max(delta, 1e-3), delta, 8):
                    for _ in range(3):
                        v = minimize(huber, v, args=(x, y, log_loss, weight, step), jac=True, method="BFGS",
                                     options={"gtol": 1e-13, "maxiter": 5000}).x
                value = huber(v, x, y, log_loss, weight, delta)[0]
                if best is None or value < best[0]:
                    best = value, v
    value, v = best
    return {"objective": value * delta, "E": np.exp(v[2]), "A": np.exp(v[0] + v[3] * at_size),
            "B": np.exp(v[1] + v[4] * at_tokens), "alpha": v[3], "beta": v[4]}


def resampled(size, tokens, loss, delta, seed, draw):
    below = draws_below(seed, draw)
    weight = np.bincount([below(len(size)) for _ in size], minlength=len(size)).astype(float)
    return fit(size, tokens, loss, delta, weight)


def case(random, sizes, ratios, noise, delta):
    size = np.repeat(sizes, len(ratios))
    tokens = size * np.tile(ratios, len(sizes))
    loss = loss_of(LAW, size, tokens) * np.exp(random.normal(0, noise, len(size)))
    return {"size": size.tolist(), "tokens": tokens.tolist(), "loss": loss.tolist(), "delta": delta,
            "fit": fit(size, tokens, loss, delta), "resampled": [resampled(size, tokens, loss, delta, 5, b) for b in range(3)]}


def main():
    random = np.random.default_rng(1)
    sizes = np.geomspace(3e7, 1e10, 9)
    print(json.dumps({
        "law": LAW,
        "cases": [case(random, sizes, np.array([5.0, 10, 20, 40, 80]), 0.004, 1e-3),
                  case(random, sizes, np.array([2.0, 20, 200]), 0.01, 1e-3),
                  case(random, sizes, np.array([5.0, 20, 80]), 0.002, 1e-6)],
    }, indent=0))


if __name__ == "__main__":
    main()
