#!/usr/bin/env python3
"""Writes generated_ids.json: output of `generate` of transformers for models of tests/parity, the reference of exports.

usage: make_generated_ids.py     needs torch and transformers; writes next to itself
"""
import json, os
import torch, transformers as hf

here = os.path.dirname(os.path.abspath(__file__))
MODELS = {"gpt2": hf.GPT2LMHeadModel, "t5": hf.T5ForConditionalGeneration, "bart": hf.BartForConditionalGeneration,
          "mbart-forced": hf.MBartForConditionalGeneration}
SEARCHES = [
    {"num_beams": 1},
    {"num_beams": 4},
    {"num_beams": 1, "no_repeat_ngram_size": 1},
    {"num_beams": 1, "no_repeat_ngram_size": 2, "min_new_tokens": 7},
    {"num_beams": 3, "no_repeat_ngram_size": 3, "repetition_penalty": 0.7},
    {"num_beams": 1, "repetition_penalty": 1.5, "min_length": 9},
    {"num_beams": 4, "repetition_penalty": 1.3, "min_length": 11, "length_penalty": 2.0},
    {"num_beams": 3, "min_new_tokens": 10, "no_repeat_ngram_size": 1, "early_stopping": True},
]

found = {}
for name, kind in MODELS.items():
    model = kind.from_pretrained(f"{here}/../parity/{name}").eval()
    config = model.config
    pad = config.pad_token_id if config.pad_token_id is not None else 0
    rows = [list(range(11, 20)), [40, 41, 40, 42, 43], [70, 23, 70, 70, 23, 31, 70]]
    longest = max(map(len, rows))
    on_the_left = not config.is_encoder_decoder
    ids, mask = [], []
    for row in rows:
        padding = [pad] * (longest - len(row))
        ids.append(padding + row if on_the_left else row + padding)
        mask.append([0] * len(padding) + [1] * len(row) if on_the_left else [1] * len(row) + [0] * len(padding))
    forced = {name: getattr(config, name, None) for name in ("forced_bos_token_id", "forced_eos_token_id", "decoder_start_token_id")}
    texts = []
    for search in SEARCHES:
        settings = hf.GenerationConfig(max_new_tokens=12, do_sample=False, eos_token_id=config.eos_token_id, pad_token_id=pad,
                                       **{name: value for name, value in forced.items() if value is not None}, **search)
        with torch.no_grad():
            out = model.generate(torch.tensor(ids), attention_mask=torch.tensor(mask), generation_config=settings)
        texts.append(search | {"ids": out.tolist()})
    found[name] = {"input_ids": ids, "attention_mask": mask, "max_new_tokens": 12, "searches": texts}

with open(f"{here}/generated_ids.json", "w") as file:
    file.write(json.dumps(found).replace('{"num_beams"', '\n{"num_beams"') + "\n")
