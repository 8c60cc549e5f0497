#!/usr/bin/env python3
"""Holds the models of Cloze to those of transformers: random configs, weights and inputs of every family that
`cloze import` reads.

    tests/acceptance/parity.py build/cloze --cases 100 --seed 1 [--family bert] [--folder /tmp/parity]
    tests/acceptance/parity.py build/cloze --seed 1 --case 17 [--folder /tmp/parity]      one case again, which stays

A case is a golden case (tests/parity/random_cases.py): transformers computes hidden states, outputs, the loss, the
gradient of every parameter and generated texts. Then
- `cloze verify parity` compares all of them,
- `cloze import`, `cloze export --to huggingface` and transformers must give the same outputs and texts again,
- `cloze import`, `cloze export --to torchscript` and torch must give them too.

A case is a function of the seed and its number, so that a fault is found again with --case. A fault is a line, and the
folder of its case stays: config, weights, inputs, expected values, and what was imported and exported. A table of
families stands at the end. Exits with 1 where something differs. Needs the environment beside transformers
(`./test --peers`).

Gradients that are zero up to rounding (`verify parity` says which) agree below 1e-2: they are sums that cancel, so that
what is left is rounding, which differs.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import peers

peers.enter(__file__)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "parity"))
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from make_cases import OUTPUTS, forward  # noqa: E402
from random_cases import FAMILIES, Case  # noqa: E402

OUTPUT_TOLERANCE, ROUNDING = 2e-5, 1e-2
BY_TOKEN = ("logits", "prediction_logits", "start_logits", "end_logits", "last_hidden_state")


def run(program, *arguments):
    """Standard output; raises RuntimeError with what the program says where it fails or warns."""
    done = subprocess.run([program, "--quiet", *map(str, arguments)], capture_output=True, text=True, check=False)
    differs = arguments[0] == "verify" and done.returncode == 1  # which the answer says in detail
    if (done.returncode and not differs) or "warning: " in done.stderr:
        raise RuntimeError(done.stderr or f"exit code {done.returncode}")
    return done.stdout


def outputs_of(net, inputs):
    with torch.no_grad(): out = forward(net, inputs)
    return {name: out[name] for name in OUTPUTS if out.get(name) is not None}


def outputs_that_differ(got, wanted, inputs):
    """Their names with the largest difference, at padding aside."""
    mask = inputs.get("decoder_attention_mask" if "decoder_input_ids" in inputs else "attention_mask")
    if "input_mask" in inputs: mask = 1 - inputs["input_mask"]
    found = []
    for name, value in wanted.items():
        if name not in got or got[name].shape != value.shape:
            found.append(f"{name} is absent or has another shape")
            continue
        error = (got[name].double() - value.double()).abs()
        by_token = name in BY_TOKEN and "target_mapping" not in inputs
        if mask is not None and by_token and mask.shape == error.shape[:mask.dim()]: error *= mask.reshape(mask.shape + (1,) * (error.dim() - 2))
        if not error.max() <= OUTPUT_TOLERANCE * max(1, value.abs().max()): found.append(f"{name} {error.max():.1e}")
    return found


# Each comparison gives what differs.

def verify(program, case):
    rows = json.loads(run(program, "verify", "parity", case.folder, "--json"))["tensors"]
    wrong = [row for row in rows if not row["passed"]]
    wrong = [row for row in wrong if not (row["note"] == "zero up to rounding" and row["error"] < ROUNDING)]
    return [f"{row['name']} {row['error']:.1e} of {row['tolerance']:.0e} {row['note']}" for row in wrong]


def return_to_transformers(program, case):
    run(program, "import", case.folder, "--out", case.folder / "run")
    run(program, "export", case.folder / "run", "--to", "huggingface", "--out", case.folder / "back")
    name = json.loads((case.folder / "back/config.json").read_text())["architectures"][0]
    net = getattr(hf, name).from_pretrained(case.folder / "back", attn_implementation="eager").eval()
    inputs = case.forward_inputs()
    texts = [name for name, search in case.searches.items()
             if not torch.equal(net.generate(**case.prompt, use_cache=False, **search), case.texts[name])]
    return outputs_that_differ(outputs_of(net, inputs), outputs_of(case.net, inputs), inputs) + texts


def script(program, case):
    """Of what return_to_transformers imported. Inputs that the file does not take (mems) are left out on both sides."""
    run(program, "export", case.folder / "run", "--to", "torchscript", "--out", case.folder / "model.pt")
    module = torch.jit.load(case.folder / "model.pt")
    inputs = case.forward_inputs()
    if "input_mask" in inputs: inputs["attention_mask"] = 1 - inputs["input_mask"].long()
    names = [argument.name for argument in module.forward.schema.arguments]
    inputs = {name: one for name, one in inputs.items() if name in names}
    with torch.inference_mode():
        found = outputs_that_differ(module(**inputs), outputs_of(case.net, inputs), inputs)
        for name, search in case.searches.items() if hasattr(module, "generate") else ():
            if search.get("early_stopping") == "never": continue  # no choice there
            known = {key: value for key, value in search.items() if key not in ("do_sample", "pad_token_id")}
            if not torch.equal(module.generate(**case.prompt, **known), case.texts[name]): found.append(name)
    return found


COMPARISONS = {"verify parity": verify, "huggingface": return_to_transformers, "torchscript": script}


def faults_of(program, *case_of):
    """A line for each comparison that fails."""
    try:
        case = Case(*case_of)
    except Exception:  # the other cases go on
        return ["the script failed: " + " ".join(traceback.format_exc().split())[-300:]]
    faults = []
    for what, compare in COMPARISONS.items():
        try:
            found = compare(program, case)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        shown = "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
        if found: faults.append(" ".join(f"{case.name}, {what}: {shown}".split()))
    return faults


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", choices=FAMILIES, help="cases of this family only")
    parser.add_argument("--case", type=int, help="this case only")
    parser.add_argument("--folder", type=Path, help="of the cases (default: a new temporary one)")
    return parser.parse_args(arguments)


def main(options):
    torch.set_num_threads(1)
    hf.utils.logging.disable_progress_bar()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="parity-"))
    families = list(FAMILIES)
    first, step = (families.index(options.family), len(families)) if options.family else (0, 1)
    numbers = range(first, first + step * options.cases, step) if options.case is None else [options.case]
    tried, agree = dict.fromkeys(families, 0), dict.fromkeys(families, 0)
    for number in numbers:
        family = families[number % len(families)]
        place = folder / f"{family}-{options.seed}-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        faults = faults_of(options.cloze.resolve(), place, options.seed, number, family)
        for fault in faults: print(f"case {number}: {fault} ({place})", flush=True)
        if not faults and options.case is None: shutil.rmtree(place)
        tried[family] += 1
        agree[family] += not faults
    print("| family | tried | agree |\n|---|---:|---:|")
    for family in families:
        if tried[family]: print(f"| {family} | {tried[family]} | {agree[family]} |")
    print(f"\nseed {options.seed}")
    return 1 if tried != agree else 0


if __name__ == "__main__":
    sys.exit(main(options_of(sys.argv[1:])))
