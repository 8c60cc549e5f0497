#!/usr/bin/env python3
"""Prints huggingface_defaults.json: the defaults of the config classes of transformers.

usage: make_huggingface_defaults.py > huggingface_defaults.json     needs transformers
"""
import json
import transformers

TYPES = ("bert roberta xlm-roberta camembert albert electra distilbert longformer big_bird modernbert gpt2 t5 mt5 bart mbart pegasus xlnet").split()
# Keys of all classes, and keys for fine-tuning.
COMMON = set(transformers.PreTrainedConfig().to_dict()) - {"is_encoder_decoder", "tie_word_embeddings"} | {"classifier_dropout", "classifier_dropout_prob"}

defaults = {}
for name in TYPES:
    fields = transformers.AutoConfig.for_model(name).to_dict()
    defaults[name] = {key: value for key, value in sorted(fields.items()) if key not in COMMON}
    defaults[name] |= {key: fields[key] for key in ("pad_token_id", "bos_token_id", "eos_token_id", "is_decoder") if key in fields}
print(json.dumps(defaults, indent=1))
