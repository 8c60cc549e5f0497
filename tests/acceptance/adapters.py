#!/usr/bin/env python3
"""Takes adapters to peft and back, head included, and compares logits.

    tests/acceptance/adapters.py build/cloze [--family bert] [--folder /tmp/adapters]

A run of one step of each family is fine-tuned with LoRA on the made-up task of finetune_beside.py. Then
- peft loads the exported adapter beside the exported base, and has the logits of the merged export,
- what peft saves of it comes in again as a run, whose export has these logits, too,
- so does an adapter that peft made itself, with rsLoRA.

A fault is a line; exits with 1 then. Without the environment beside transformers (`./test --peers`) the test is
skipped.
"""
import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import peers

peers.enter(__file__)
if importlib.util.find_spec("peft") is None:
    print("skipped: adapters: peft cannot be imported; `./test --peers` installs it")
    sys.exit(peers.SKIPPED)
import peft  # noqa: E402
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from finetune_beside import pretrain, run, set_all, write_task  # noqa: E402

STEPS, LIMIT = 12, 1e-5
SETTINGS = [f"train.budget.steps={STEPS}", "train.batch_size=16", "optimizer.learning_rate=5e-3", "schedule.warmup=0",
            f"evaluation.every={STEPS}", f"checkpoint.every={STEPS}", "adaptation.kind=lora", "adaptation.rank=4"]
# The modules that peft adapts by itself, and those of the head.
OWN = {"bert": (["query", "value"], ["classifier", "pooler"]), "roberta": (["query", "value"], ["classifier"]),
       "electra": (["query", "value"], ["classifier"]), "albert": (["query", "value"], ["classifier", "pooler"]),
       "distilbert": (["q_lin", "v_lin"], ["pre_classifier", "classifier"]), "gpt2": (["c_attn"], ["score"]),
       "bart": (["q_proj", "v_proj"], ["classification_head"]), "t5": (["q", "v"], ["classification_head"]),
       "modernbert": (["Wqkv", "Wi"], ["head", "classifier"])}


def export(program, source, to, out):
    run(program, "export", source, "--to", to, "--out", out)
    return str(out)


def base_model(folder, labels):
    return hf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=labels)


def logits_of(net, texts):
    net.eval().double()  # what rounding adds is not of the formats
    with torch.no_grad(): return torch.cat([net(**text).logits for text in texts]).double()


def difference(one, other):
    return ((one - other).abs().max() / max(1, other.abs().max())).item()


def differences(program, folder, family):
    """How far the logits of each way are apart."""
    source, (task, _) = pretrain(program, folder, family), write_task(folder, "classification")
    place = folder / f"{family}-lora"
    run(program, "finetune", source, task, "--like", "huggingface", "--run", place, *set_all(SETTINGS))
    base, whole = export(program, source, "huggingface", f"{place}-base"), export(program, place, "huggingface", f"{place}-hf")
    adapter = export(program, place, "peft", f"{place}-peft")
    read = hf.AutoTokenizer.from_pretrained(whole)
    items = [json.loads(line) for line in (folder / "classification-test.jsonl").read_text().splitlines()[:12]]
    texts = [read(one["a"], one["b"], return_tensors="pt") for one in items]
    merged = hf.AutoModelForSequenceClassification.from_pretrained(whole)
    labels, wanted = merged.config.num_labels, logits_of(merged, texts)
    beside = peft.PeftModel.from_pretrained(base_model(base, labels), adapter)
    yield "in peft", difference(logits_of(beside, texts), wanted)
    beside.save_pretrained(f"{place}-back")
    run(program, "import", f"{place}-back", "--base", source, "--out", f"{place}-again")
    again = export(program, f"{place}-again", "huggingface", f"{place}-again-hf")
    yield "back from peft", difference(logits_of(hf.AutoModelForSequenceClassification.from_pretrained(again), texts),
                                       wanted)
    torch.manual_seed(1)
    targets, head = OWN[family]
    own = peft.get_peft_model(base_model(base, labels), peft.LoraConfig(
        r=3, lora_alpha=12, use_rslora=True, init_lora_weights=False, target_modules=targets, modules_to_save=head,
        task_type="SEQ_CLS", fan_in_fan_out=family == "gpt2"))
    own.save_pretrained(f"{place}-own")
    run(program, "import", f"{place}-own", "--base", source, "--out", f"{place}-own-run")
    out = export(program, f"{place}-own-run", "huggingface", f"{place}-own-hf")
    found = logits_of(hf.AutoModelForSequenceClassification.from_pretrained(out), texts)
    yield "of peft's own", difference(found, logits_of(own, texts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--family", choices=sorted(OWN))
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    hf.logging.set_verbosity_error()
    faults = 0
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        folder.mkdir(exist_ok=True)
        for family in [arguments.family] if arguments.family else OWN:
            for way, apart in differences(arguments.program.resolve(), folder, family):
                print(f"{family:12} {way:16} {apart:.1e}", "" if apart <= LIMIT else "FAIL")
                faults += apart > LIMIT
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
