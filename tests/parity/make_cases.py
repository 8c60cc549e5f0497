#!/usr/bin/env python3
"""Golden cases from transformers: config.json, model.safetensors, inputs.safetensors, expected.safetensors in a folder for each.

usage: make_cases.py OUT_FOLDER        needs torch, transformers and safetensors; `cloze verify parity OUT_FOLDER/NAME` compares
"""
import sys
import torch, transformers as hf
from safetensors.torch import save_file

CASES = {
    "gelu-new-odd": (hf.BertForPreTraining, dict(hidden_size=30, num_attention_heads=3, intermediate_size=37, hidden_act="gelu_new", type_vocab_size=3, pad_token_id=5)),
    "relu-mlm": (hf.BertForMaskedLM, dict(hidden_size=28, num_attention_heads=4, intermediate_size=41, hidden_act="relu", pad_token_id=7)),
    "silu-untied": (hf.BertForPreTraining, dict(hidden_size=24, num_attention_heads=2, intermediate_size=33, hidden_act="silu", tie_word_embeddings=False)),
    "mish-one-segment": (hf.BertForMaskedLM, dict(hidden_size=21, num_attention_heads=3, intermediate_size=20, hidden_act="mish", type_vocab_size=1, layer_norm_eps=1e-5)),
    "encoder": (hf.BertModel, dict(hidden_size=24, num_attention_heads=2, intermediate_size=33)),
}


def make(folder, cls, options):
    torch.manual_seed(3)
    config = hf.BertConfig(vocab_size=97, num_hidden_layers=3, max_position_embeddings=40, attn_implementation="eager", **options)
    net = cls(config).eval()
    with torch.no_grad():
        for name, p in net.named_parameters(): p.copy_((1 if name.endswith("LayerNorm.weight") else 0) + 0.2 * torch.randn_like(p))
    B, T = 3, 15
    ids = torch.randint(0, 97, (B, T))
    mask = torch.ones(B, T, dtype=torch.long); mask[1, 9:] = 0; mask[2, 4:] = 0
    ids[mask == 0] = config.pad_token_id
    inputs = dict(input_ids=ids, attention_mask=mask, token_type_ids=torch.randint(0, config.type_vocab_size, (B, T)))
    if cls is not hf.BertModel:
        chosen = (torch.rand(B, T) < 0.3) & (mask == 1); chosen[:, 1] = True
        inputs["labels"] = torch.where(chosen, torch.randint(0, 97, (B, T)), -100)
    if cls is hf.BertForPreTraining: inputs["next_sentence_label"] = torch.tensor([0, 1, 1])
    out = net(**inputs, output_hidden_states=True, output_attentions=True)
    expected = {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states)} | {"attentions.0": out.attentions[0]}
    for name in ("loss", "prediction_logits", "seq_relationship_logits", "logits", "last_hidden_state", "pooler_output"):
        if getattr(out, name, None) is not None: expected[name] = getattr(out, name)
    if getattr(out, "loss", None) is not None:
        out.loss.backward()
        expected |= {f"grad.{n}": p.grad for n, p in net.named_parameters() if p.grad is not None}
    net.save_pretrained(folder)
    save_file({k: v.detach().contiguous().clone() for k, v in inputs.items()}, f"{folder}/inputs.safetensors")
    save_file({k: v.detach().contiguous().clone() for k, v in expected.items()}, f"{folder}/expected.safetensors")


for name, (cls, options) in CASES.items(): make(f"{sys.argv[1]}/{name}", cls, options)
