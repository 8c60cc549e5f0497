#!/usr/bin/env python3
"""Golden cases of heads of tasks from transformers, in the form of make_cases.py.

usage: make_task_cases.py OUT_FOLDER [NAME ...]     `cloze verify parity OUT_FOLDER/NAME` compares
"""
import sys
import torch, transformers as hf
from make_cases import expected_of, redraw, save

VOCABULARY, SEPARATOR = 31, 3
bert = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=9, max_position_embeddings=24)
SIZES = {
    "Bert": bert | dict(pad_token_id=1),
    "Albert": bert | dict(embedding_size=6, pad_token_id=1),
    "Roberta": bert | dict(pad_token_id=1, type_vocab_size=1),
    "Electra": bert | dict(embedding_size=6, pad_token_id=1),
    "Longformer": bert | dict(attention_window=4, pad_token_id=1, sep_token_id=SEPARATOR, type_vocab_size=1),
    "BigBird": bert | dict(attention_type="original_full", pad_token_id=1, sep_token_id=SEPARATOR, hidden_act="gelu_new"),
    "DistilBert": dict(dim=8, n_layers=2, n_heads=2, hidden_dim=9, max_position_embeddings=24, pad_token_id=1),
    "ModernBert": dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=9, max_position_embeddings=24, pad_token_id=1, local_attention=6),
    "GPT2": dict(n_embd=8, n_layer=2, n_head=2, n_positions=24, pad_token_id=1),
    "XLNet": dict(d_model=8, n_layer=2, n_head=2, d_inner=9, pad_token_id=5),
    "T5": dict(d_model=8, d_kv=3, d_ff=9, num_layers=1, num_decoder_layers=2, num_heads=2, pad_token_id=1, decoder_start_token_id=1, eos_token_id=2),
    "MT5": dict(d_model=8, d_kv=3, d_ff=9, num_layers=1, num_decoder_layers=1, num_heads=2, pad_token_id=1, decoder_start_token_id=1, eos_token_id=2, tie_word_embeddings=True),
    "Bart": dict(d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=9, decoder_ffn_dim=7, max_position_embeddings=24, forced_eos_token_id=None),
    "MBart": dict(d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=9, decoder_ffn_dim=7, max_position_embeddings=24, forced_eos_token_id=None),
}
KINDS = {"seq": "ForSequenceClassification", "tags": "ForTokenClassification", "spans": "ForQuestionAnswering", "choice": "ForMultipleChoice"}
SPECIAL = {"modernbert-seq-mean": dict(classifier_pooling="mean"), "modernbert-choice-mean": dict(classifier_pooling="mean"), "bert-seq-values": dict(num_labels=1, problem_type="regression"),
           "bert-seq-several": dict(num_labels=4, problem_type="multi_label_classification"), "t5-seq-several": dict(num_labels=3), "gpt2-seq-inside": {}, "gpt2-seq-left": {}, "bart-seq-ends": {},
           "xlnet-seq-values": dict(num_labels=1), "t5-seq-gated": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), "bert-spans-full": {}}


def cases():
    for family in SIZES:
        for kind, suffix in KINDS.items():
            name = getattr(hf, f"{family}{suffix}Simple" if family == "XLNet" and kind == "spans" else family + suffix, None)
            if name: yield f"{family.lower()}-{kind}", name
    for name in SPECIAL: yield name, next(cls for known, cls in cases_of_families() if name.startswith(known))


def cases_of_families():
    return [(f"{family.lower()}-{kind}", getattr(hf, family + suffix)) for family in SIZES for kind, suffix in KINDS.items() if hasattr(hf, family + suffix)]


def texts(name, config, shape):
    """Ids and mask: rows of several lengths, each with [CLS] first, three separators and one end token last."""
    rows, T = 1, 13
    for size in shape: rows *= size
    ids = torch.randint(8, VOCABULARY, (rows, T)); ids[:, 0] = 0
    lengths = torch.full((rows,), T) if "full" in name else torch.tensor([[T, 9, 11][i % 3] for i in range(rows)])
    mask = (torch.arange(T) < lengths[:, None]).long()
    for r, n in enumerate(lengths.tolist()): ids[r, [3, 4, n - 1]] = SEPARATOR
    if getattr(config, "is_encoder_decoder", False) or config.model_type in ("t5", "mt5"):
        ids[ids == SEPARATOR] = 9
        for r, n in enumerate(lengths.tolist()): ids[r, n - 1] = 2
        if "ends" in name: ids[:, 4] = 2
    ids[mask == 0] = config.pad_token_id
    if "inside" in name: ids[:, 5] = config.pad_token_id
    if config.model_type == "xlnet" or "left" in name:
        for r, n in enumerate(lengths.tolist()): ids[r], mask[r] = ids[r].roll(T - n), mask[r].roll(T - n)
    return ids.view(*shape, T), mask.view(*shape, T)


def make(folder, name, cls):
    torch.manual_seed(11)
    kind = name.split("-")[1]
    family = next(family for family in SIZES if family.lower() == name.split("-")[0])
    options = SIZES[family] | ({} if kind in ("spans", "choice") else dict(num_labels=3)) | SPECIAL.get(name, {})
    config = cls.config_class(vocab_size=VOCABULARY, attn_implementation="eager", **options)
    net = cls(config).eval()
    config = net.config
    redraw(net, 0.3)
    B = 3
    ids, mask = texts(name, config, (B, 2) if kind == "choice" else (B,))
    inputs = dict(input_ids=ids, attention_mask=mask)
    if config.model_type in ("bert", "albert", "electra", "xlnet"): inputs["token_type_ids"] = torch.randint(0, 2, ids.shape)
    labels = config.num_labels
    if kind == "spans": inputs |= dict(start_positions=torch.tensor([6, 0, 13]), end_positions=torch.tensor([8, 0, 10]))
    elif kind == "choice": inputs["labels"] = torch.tensor([1, 0, 1])
    elif kind == "tags": inputs["labels"] = torch.where((torch.rand(ids.shape) < 0.6) & (mask == 1), torch.randint(0, labels, ids.shape), -100)
    elif "several" in name: inputs["labels"] = torch.randint(0, 2, (B, labels)).float()
    else: inputs["labels"] = torch.tensor([1.5, -0.5, 3.0]) if labels == 1 else torch.tensor([2, 0, 1])
    expected = {key: value for key, value in expected_of(net, inputs).items() if "attentions" not in key}
    net.save_pretrained(folder)
    save(f"{folder}/inputs.safetensors", inputs)
    save(f"{folder}/expected.safetensors", expected)


if __name__ == "__main__":
    for name, cls in cases():
        if not sys.argv[2:] or name in sys.argv[2:]: make(f"{sys.argv[1]}/{name}", name, cls)
