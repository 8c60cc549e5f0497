#!/usr/bin/env python3
"""Takes every golden case, of each family with and without heads of tasks, out of Cloze, and computes with what left.

    tests/acceptance/exports.py build/cloze [--only longformer] [--folder /tmp/exports]

The cases of tests/parity and tests/task_parity have what transformers computed when they were made. Each goes through
`cloze import`; then
- the class of the folder that `cloze export --to huggingface` writes, loaded by transformers, gives these outputs,
- the file of `cloze export --to torchscript`, loaded by torch.jit.load, gives them too, from the same inputs,
and both generate the same texts where the case has some. A fault is a line; exits with 1 then. Without the environment
beside transformers (`./test --peers`) the test is skipped.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import peers

peers.enter(__file__)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.simplefilter("ignore")  # TorchScript is deprecated
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from parity import OUTPUTS, forward, outputs_of, outputs_that_differ, run  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers.models.longformer.modeling_longformer import _compute_global_attention_mask  # noqa: E402

TESTS = Path(__file__).resolve().parents[1]
LEFT_OUT = ("relative-key", "relative-key-query",  # transformers 5 has given up these positions
            "xlnet-backward")  # its bi_data is of training alone, and transformers reads half a batch backwards always


class Golden:
    """A golden case: what its class takes besides targets, and what transformers computed of it."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        given, expected = load_file(folder / "inputs.safetensors"), load_file(folder / "expected.safetensors")
        self.inputs = {name: one for name, one in given.items()
                       if "label" not in name and name not in ("start_positions", "end_positions")}
        self.labels = given.get("labels")
        self.outputs = {name: expected[name] for name in OUTPUTS if name in expected}
        self.texts = {name: one for name, one in expected.items() if name.startswith("generated.")}
        searches = json.loads((folder / "generation.json").read_text()) if self.texts else {}
        told = {key: value for key, value in searches.items() if key != "source" and not isinstance(value, dict)}
        self.searches = {name: told | searches.get(name.removeprefix("generated."), {}) for name in self.texts}
        self.prompt = {name: self.inputs[name][:1] for name in ("input_ids", "attention_mask") if name in self.inputs}

    def decoded(self, net):
        """The inputs with those of the decoder, which its class makes of the labels."""
        needs = net.config.is_encoder_decoder and any(name in self.outputs for name in ("logits", "last_hidden_state"))
        texts = "ForConditionalGeneration" in type(net).__name__
        if not (needs and texts) or "decoder_input_ids" in self.inputs: return self.inputs
        return self.inputs | {"decoder_input_ids": net.prepare_decoder_input_ids_from_labels(self.labels)}


def texts_that_differ(case, generate):
    return [name for name, search in case.searches.items() if not torch.equal(generate(search), case.texts[name])]


def folder_faults(program, case, place):
    """Of the folder as transformers reads it; and its network with what it reads."""
    run(program, "export", place / "run", "--to", "huggingface", "--out", place / "hf")
    name = json.loads((place / "hf/config.json").read_text())["architectures"][0]
    net = getattr(hf, name).from_pretrained(place / "hf", attn_implementation="eager").eval()
    inputs = case.decoded(net)
    texts = texts_that_differ(case, lambda search: net.generate(**case.prompt, use_cache=False, **search))
    return outputs_that_differ(outputs_of(net, inputs), case.outputs, inputs) + texts, net, inputs


def script_inputs(names, case, inputs):
    """Those that a file takes: rows, one for each candidate; of a Longformer that reads pairs, one of them is marked."""
    name, ids = case.config["architectures"][0], inputs["input_ids"]
    if "input_mask" in inputs: inputs = inputs | {"attention_mask": 1 - inputs["input_mask"].long()}
    if name.startswith("Longformer") and name.endswith(("QuestionAnswering", "MultipleChoice")):
        is_first = name.endswith("QuestionAnswering")
        marked = _compute_global_attention_mask(ids.flatten(0, -2), case.config["sep_token_id"], is_first)
        inputs = inputs | {"global_attention_mask": marked}
    if ids.dim() == 3: inputs = {name: one.reshape(-1, ids.shape[-1]) for name, one in inputs.items()}
    return {name: one for name, one in inputs.items() if name in names}


def script_faults(program, case, place, net, inputs):
    run(program, "export", place / "run", "--to", "torchscript", "--out", place / "model.pt")
    module = torch.jit.load(place / "model.pt")
    given = script_inputs([one.name for one in module.forward.schema.arguments], case, inputs)
    kept = {name: one for name, one in inputs.items() if name in given or name == "input_mask"}
    wanted = case.outputs if kept.keys() == inputs.keys() else outputs_of(net, kept)  # the file takes no mems
    with torch.inference_mode():
        found = {name: one.reshape(wanted[name].shape) if name in wanted else one for name, one in module(**given).items()}
    # BigBird's class takes a million from the question, which the file leaves to its reader.
    found = {name: torch.where(wanted[name] < -1e5, wanted[name], one) if name in wanted else one
             for name, one in found.items()}
    if not hasattr(module, "generate"): return outputs_that_differ(found, wanted, kept)
    told = ("do_sample", "pad_token_id")  # which the file knows
    texts = texts_that_differ(case, lambda search: module.generate(
        **case.prompt, **{key: value for key, value in search.items() if key not in told}))
    return outputs_that_differ(found, wanted, kept) + texts


def faults_of(program, folder, place):
    case = Golden(folder)
    run(program, "import", folder, "--out", place / "run")
    faults, net, inputs = folder_faults(program, case, place)
    scripted = script_faults(program, case, place, net, inputs)
    return [f"huggingface: {fault}" for fault in faults] + [f"torchscript: {fault}" for fault in scripted]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--folder", type=Path, help="of what is exported (default: a new temporary one)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.disable_progress_bar()
    cases = [path.parent for kind in ("parity", "task_parity") for path in sorted((TESTS / kind).glob("*/config.json"))]
    cases = [case for case in cases if options.only in case.name and case.name not in LEFT_OUT]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="exports-") as scratch:
        for folder in cases:
            place = (options.folder or Path(scratch)).resolve() / folder.name
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            try:
                faults = faults_of(options.cloze.resolve(), folder, place)
            except Exception as error:  # the other cases go on
                faults = [" ".join(f"{type(error).__name__}: {error}".split())]
            wrong += bool(faults)
            for fault in faults: print(f"{folder.name}: {fault}", flush=True)
    print(f"{len(cases) - wrong} of {len(cases)} golden cases compute outside of Cloze what they did before")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
