"""Writes regressions.json: what statsmodels and SciPy say of made-up regressions, reading times and learning curves.

    python3 make_regressions.py > regressions.json     needs numpy, pandas, scipy and statsmodels
"""
import json

import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.optimize import curve_fit
from scipy.stats import pearsonr

rng = np.random.default_rng(7)


def rounded(values, digits=4):
    return [round(float(v), digits) for v in values]


def least_squares():
    for rows, columns, scale in [(6, 1, 1), (40, 4, 1), (25, 3, 1e3)]:
        x = [rounded(rng.normal(3, 1, rows) * scale**k) for k in range(columns)]
        y = rounded(sum(rng.normal() * np.array(c) for c in x) + rng.normal(0, 2, rows))
        fit = sm.OLS(y, sm.add_constant(np.array(x).T)).fit()
        yield {"columns": x, "target": y, "intercept": fit.params[0], "coefficients": fit.params[1:].tolist(), "r2": fit.rsquared}


def reading(rows=60):
    """A table of words with missing values, and what a model says of them."""
    table = pd.DataFrame({
        "Subtlex_log10": rounded(rng.uniform(1, 6, rows), 2), "length": rng.integers(1, 12, rows).astype(float),
        "context_length": (np.arange(rows) % 9).astype(float), "prev_length": rng.integers(1, 12, rows).astype(float),
        "pred": rounded(rng.exponential(4, rows)), "prev_pred": rounded(rng.exponential(4, rows))})
    first = table.context_length == 0
    table.loc[first, ["prev_length", "prev_pred"]] = np.nan
    eye = ["RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound"]
    for k, name in enumerate(eye + ["self_paced_reading_time"]):
        table[name] = rounded(200 + 9 * table.length - 5 * table.Subtlex_log10 + (3 + k) * table.pred + rng.normal(0, 30, rows), 1)
        table.loc[rng.random(rows) < 0.1, name] = np.nan
    table.loc[3, "Subtlex_log10"] = np.nan

    def fit(measure, predictors, model):
        names = [measure, *predictors, *(["pred"] if model else [])]
        products = f"({' + '.join(predictors)})**2"
        return smf.ols(f"{measure} ~ {products}{' + pred' if model else ''}", table[names].dropna()).fit()

    gains = []
    for measure in eye + ["self_paced_reading_time"]:
        predictors = ["Subtlex_log10", "length", "context_length"]
        if measure not in eye: predictors += ["prev_length", "prev_pred"]
        before, after = fit(measure, predictors, False), fit(measure, predictors, True)
        gains.append({"measure": measure, "baseline_r2": before.rsquared, "r2": after.rsquared, "count": int(after.nobs)})
    columns = {name: [None if np.isnan(v) else v for v in table[name]] for name in table}
    return {"columns": columns, "gains": gains}


def sigmoid(x, a, b, c, d):
    return a / (1 + np.exp(-b * (x - c))) + d


def passes(popt, y):
    a, b, c, d = popt
    return None if b <= 0 or a <= 0 or not d < y < a + d else c - np.log(a / (y - d) - 1) / b


def learning_curves():
    words = np.array([1e6, 2e6, 3e6, 5e6, 8e6, 1e7, 2e7, 4e7, 7e7, 1e8])
    for middle, steep, noise, contexts in [(6.6, 4, 0.05, 1), (7.2, 3, 0.3, 3), (7, 5, 0.6, 2), (7, -3, 0.1, 1), (5, 6, 0.1, 1)]:
        x = np.repeat(words, contexts)
        y = rounded(13 - 9 / (1 + np.exp(-steep * (np.log10(x) - middle))) + rng.normal(0, noise, len(x)))
        logs, rising = np.log10(x + 1), -np.array(y)
        curve = {"words": x.tolist(), "surprisals": y, "parameters": None, "ages": []}
        try:
            start = [np.ptp(rising), 1.0, logs.mean(), rising.min()]
            curve["parameters"] = curve_fit(sigmoid, logs, rising, p0=start, maxfev=1000)[0].tolist()
        except RuntimeError:
            pass
        for chance in [np.log(30000), np.log2(300000)]:
            age = passes(curve["parameters"], -(chance + min(y)) / 2) if curve["parameters"] else None
            inside = age is not None and words[0] <= 10**age - 1 <= words[-1]
            curve["ages"].append({"chance": chance, "age": age if inside else None})
        yield curve


def child_curves():
    months = np.arange(16, 31, dtype=float)
    for middle, steep, top, missing in [(20, 0.5, 0.95, 0), (24.5, 0.35, 1, 3), (29, 0.9, 0.9, 0), (40, 0.2, 1, 0), (14, 0.4, 1, 0),
                                        (22, 3, 1, 0)]:
        shares = np.array(rounded(np.clip(top / (1 + np.exp(-steep * (months - middle))) + rng.normal(0, 0.02, 15), 0, 1), 3))
        there = np.ones(15, bool)
        there[rng.choice(15, missing, replace=False)] = False
        x, y = months[there], shares[there]
        popt = curve_fit(sigmoid, x, y, p0=[1, 0.1, x.mean(), 0], bounds=([0, 0, x[0], -0.5], [2, 1, x[-1], 0.5]), maxfev=1000)[0]
        age = passes(popt, 0.5)
        yield {"months": months.tolist(), "shares": [s if t else None for s, t in zip(shares.tolist(), there)],
               "age": age if age is not None and x[0] <= age <= x[-1] else None}


a, b = rng.normal(7, 0.5, 9), rng.normal(23, 3, 9)
print(json.dumps({"least_squares": list(least_squares()), "reading": reading(), "learning": list(learning_curves()),
                  "children": list(child_curves()),
                  "correlation": {"a": a.tolist(), "b": b.tolist(), "pearson": pearsonr(a, b)[0]}}))
