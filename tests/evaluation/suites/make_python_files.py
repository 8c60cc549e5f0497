"""Writes python_files.json: how Python writes JSON and numbers, and how pandas reads CSV.

    python3 make_python_files.py > python_files.json     needs pandas
"""
import io
import json
import math
import random

import pandas as pd

random.seed(3)
VALUES = [
    {}, [], [[], {}], {"b": 1, "a": {"z": [1, 2], "y": None}}, [True, False, None], 10**30, -7, 0, "",
    "tab\tquote\"slash/back\\line\nbell\u0007del\u007f", "naïve Zürich 猫 🦉 \u2028 \ufeff", {"ключ": "значение"},
    [0.1, 1e-5, 1e16, 1e22, 123456789.125, -0.0, 3.0, 2.5e-307, 1e15, 0.0001], [math.nan, math.inf, -math.inf],
    {"predictions": [{"id": "a_0", "pred": " the owl", "prob": 0.30000001192092896}]},
]
# No subnormal numbers: the program takes them for zero, and no prediction has one.
NUMBERS = [random.uniform(-1, 1) * 10.0 ** random.randint(-307, 308) for _ in range(200)]
NUMBERS += [2.0**k for k in (-1022, -1, 0, 53, 63, 100, 1023)] + [1e16, 9999999999999998.0, 1e-4, 9.999e-5, 0.0]
SPACED = ' {\t"a" :[ 1 ,2.50,\n-0 ,-0.0 , 1E5, 1e-7,"\\u00e9\\ud83e\\udd89\\/\\b\\f"] , "n":null}\r\n'

TABLES = [
    "a,b\n1,x\n2.5,y\n",
    "\ufeffa,b\r\n\"1\",\"x, y\"\r\n\r\n-3e2,\"say \"\"so\"\"\"\r\n",
    "a,b\n,\"two\nlines\"\nNA,NaN\nnull,None\n#N/A,n/a\n7,z",
]


def table_of(text):
    table = pd.read_csv(io.StringIO(text.removeprefix("\ufeff")))
    strings = pd.read_csv(io.StringIO(text.removeprefix("\ufeff")), dtype=str, keep_default_na=False)
    numbers = [None if math.isnan(v) else v for v in table["a"].astype(float)]
    return {"text": text, "columns": list(table.columns), "rows": strings.values.tolist(), "a": numbers,
            "missing_b": [bool(v) for v in table["b"].isna()]}


print(json.dumps({
    "values": [{"line": json.dumps(v), "indented": json.dumps(v, indent=2)} for v in VALUES],
    "numbers": [repr(v) for v in NUMBERS],
    "spaced": {"text": SPACED, "line": json.dumps(json.loads(SPACED))},
    "tables": [table_of(t) for t in TABLES],
}))
