#!/usr/bin/env python3
"""Golden cases from transformers: config.json, model.safetensors, inputs.safetensors, expected.safetensors in a folder for each.

usage: make_cases.py OUT_FOLDER        needs torch, transformers and safetensors; `cloze verify parity OUT_FOLDER/NAME` compares
"""
import sys
import torch, transformers as hf
from safetensors.torch import save_file

bert = dict(num_hidden_layers=3, max_position_embeddings=40)
CASES = {
    "gelu-new-odd": (hf.BertForPreTraining, bert | dict(hidden_size=30, num_attention_heads=3, intermediate_size=37, hidden_act="gelu_new", type_vocab_size=3, pad_token_id=5)),
    "relu-mlm": (hf.BertForMaskedLM, bert | dict(hidden_size=28, num_attention_heads=4, intermediate_size=41, hidden_act="relu", pad_token_id=7)),
    "silu-untied": (hf.BertForPreTraining, bert | dict(hidden_size=24, num_attention_heads=2, intermediate_size=33, hidden_act="silu", tie_word_embeddings=False)),
    "mish-one-segment": (hf.BertForMaskedLM, bert | dict(hidden_size=21, num_attention_heads=3, intermediate_size=20, hidden_act="mish", type_vocab_size=1, layer_norm_eps=1e-5)),
    "encoder": (hf.BertModel, bert | dict(hidden_size=24, num_attention_heads=2, intermediate_size=33)),
    "big-bird-full": (hf.BigBirdForMaskedLM, bert | dict(hidden_size=24, num_attention_heads=2, intermediate_size=33, attention_type="original_full")),
    "roberta-pad-5": (hf.RobertaForMaskedLM, bert | dict(hidden_size=27, num_attention_heads=3, intermediate_size=31, hidden_act="relu", pad_token_id=5, type_vocab_size=2)),
    "roberta-untied": (hf.RobertaForMaskedLM, bert | dict(hidden_size=20, num_attention_heads=2, intermediate_size=31, tie_word_embeddings=False, pad_token_id=1)),
    "albert-groups": (hf.AlbertForPreTraining, dict(num_hidden_layers=5, max_position_embeddings=40, embedding_size=11, hidden_size=20, num_attention_heads=2, intermediate_size=33, num_hidden_groups=2, inner_group_num=2, hidden_act="gelu")),
    "albert-mlm": (hf.AlbertForMaskedLM, dict(num_hidden_layers=3, max_position_embeddings=40, embedding_size=20, hidden_size=20, num_attention_heads=4, intermediate_size=33, num_hidden_groups=3)),
    "electra-same-width": (hf.ElectraForPreTraining, bert | dict(embedding_size=24, hidden_size=24, num_attention_heads=2, intermediate_size=33, hidden_act="relu")),
    "electra-generator-untied": (hf.ElectraForMaskedLM, bert | dict(embedding_size=14, hidden_size=24, num_attention_heads=2, intermediate_size=33, hidden_act="relu", tie_word_embeddings=False)),
    "longformer-uneven": (hf.LongformerForMaskedLM, bert | dict(hidden_size=24, num_attention_heads=2, intermediate_size=33, attention_window=[8, 4, 16], hidden_act="relu", type_vocab_size=1, pad_token_id=4)),
    "longformer-local": (hf.LongformerForMaskedLM, bert | dict(hidden_size=24, num_attention_heads=3, intermediate_size=33, attention_window=8, type_vocab_size=2, tie_word_embeddings=False)),
    "distilbert-sinusoidal": (hf.DistilBertForMaskedLM, dict(dim=26, n_layers=3, n_heads=2, hidden_dim=39, activation="relu", sinusoidal_pos_embds=True, max_position_embeddings=40)),
}


def make(folder, cls, options):
    torch.manual_seed(3)
    config = cls.config_class(vocab_size=97, attn_implementation="eager", **options)
    net = cls(config).eval()
    with torch.no_grad():
        for name, p in net.named_parameters():
            if p.requires_grad: p.copy_((1 if "norm" in name.lower() and name.endswith("weight") else 0) + 0.2 * torch.randn_like(p))
    B, T = 3, 15
    ids = torch.randint(0, 97, (B, T))
    mask = torch.ones(B, T, dtype=torch.long); mask[1, 9:] = 0; mask[2, 4:] = 0
    ids[(mask == 1) & (ids == config.pad_token_id)] = 11
    ids[mask == 0] = config.pad_token_id
    inputs = dict(input_ids=ids, attention_mask=mask)
    if hasattr(config, "type_vocab_size"): inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, (B, T))
    if cls is hf.LongformerForMaskedLM and "uneven" in folder:
        inputs["global_attention_mask"] = torch.zeros_like(ids); inputs["global_attention_mask"][0, [0, 7, 8]] = 1; inputs["global_attention_mask"][1, 3] = 1; inputs["global_attention_mask"][2, 0] = 1
    pretraining = cls.__name__.endswith("ForPreTraining")
    if cls is hf.ElectraForPreTraining: inputs["labels"] = torch.randint(0, 2, (B, T))
    elif not cls.__name__.endswith("Model"):
        chosen = (torch.rand(B, T) < 0.3) & (mask == 1); chosen[:, 1] = True
        inputs["labels"] = torch.where(chosen, torch.randint(0, 97, (B, T)), -100)
        if pretraining: inputs["sentence_order_label" if cls is hf.AlbertForPreTraining else "next_sentence_label"] = torch.tensor([0, 1, 1])
    out = net(**inputs, output_hidden_states=True, output_attentions=True)
    expected = {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states)} | {"attentions.0": out.attentions[0]}
    for name in ("loss", "prediction_logits", "seq_relationship_logits", "sop_logits", "logits", "last_hidden_state", "pooler_output"):
        if getattr(out, name, None) is not None: expected[name] = getattr(out, name)
    if getattr(out, "loss", None) is not None:
        out.loss.backward()
        expected |= {f"grad.{n}": p.grad for n, p in net.named_parameters() if p.grad is not None}
    net.save_pretrained(folder)
    save_file({k: v.detach().contiguous().clone() for k, v in inputs.items()}, f"{folder}/inputs.safetensors")
    save_file({k: v.detach().contiguous().clone() for k, v in expected.items()}, f"{folder}/expected.safetensors")


for name, (cls, options) in CASES.items(): make(f"{sys.argv[1]}/{name}", cls, options)
