"""Writes tests/interchange/pickles with torch 2.13: one state_dict in all formats of torch.save.

    python tests/interchange/make_pickles.py
"""

import argparse
import pathlib
from collections import OrderedDict

import torch

out = pathlib.Path(__file__).parent / "pickles"
out.mkdir(exist_ok=True)


def numbers(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return torch.arange(count, dtype=torch.float32).view(sizes) / 4


table = numbers(3, 4)
weights = OrderedDict(
    table=table,
    tied=table,
    turned=numbers(2, 3).t(),
    part=numbers(5)[2:4],
    half=numbers(3).half(),
    bfloat=numbers(3).bfloat16(),
    double=numbers(2).double(),
    ids=torch.arange(4).expand((1, -1)),
    flags=torch.tensor([True, False]),
    scalar=torch.tensor(2.5),
    empty=torch.empty(0, 4),
)
parameters = OrderedDict(table=torch.nn.Parameter(table))
weights._metadata = parameters._metadata = OrderedDict([("", {"version": 1})])
script = {"epoch": 3, "best": 0.25, "seed": 2**70, "args": argparse.Namespace(lr=1e-3), "lr": [1, 2], "state_dict": weights}
for name, content, options in [
    ("protocol-2", weights, {}),
    ("protocol-4", weights, {"pickle_protocol": 4}),
    ("protocol-5", weights, {"pickle_protocol": 5}),
    ("parameters", parameters, {}),
    ("nested", script, {}),
    ("nested-4", script, {"pickle_protocol": 4}),
    ("nested-tensors", {"model": weights, "step": torch.tensor(5)}, {}),
    ("expanded", {"wide": torch.tensor([2.5]).expand(7)}, {}),
    ("protocol-1", {"table": table}, {"pickle_protocol": 1}),
    ("before-1.6", {"table": table}, {"_use_new_zipfile_serialization": False}),
    ("model", torch.nn.Linear(2, 2), {}),
    ("sparse", {"table": table.to_sparse()}, {}),
    ("list", [table], {}),
]:
    torch.save(content, out / f"{name}.bin", **options)
