#!/usr/bin/env python3
"""Golden cases from transformers: a folder for each, with config.json, model.safetensors, inputs.safetensors, expected.safetensors.

usage: make_cases.py OUT_FOLDER [NAME ...]     needs torch, transformers and safetensors; `cloze verify parity OUT_FOLDER/NAME` compares
"""
import collections, json, os, sys
import torch, transformers as hf
from safetensors.torch import save_file

bert = dict(num_hidden_layers=3, max_position_embeddings=40)
xlnet = dict(n_layer=3, pad_token_id=5)
modernbert = dict(max_position_embeddings=80, pad_token_id=5)
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
    "t5-uneven": (hf.T5ForConditionalGeneration, dict(d_model=24, d_kv=7, d_ff=31, num_layers=1, num_decoder_layers=3, num_heads=3, relative_attention_num_buckets=12, relative_attention_max_distance=20, pad_token_id=0, decoder_start_token_id=0)),
    "t5-silu-untied": (hf.T5ForConditionalGeneration, dict(d_model=24, d_kv=5, d_ff=31, num_layers=2, num_heads=2, feed_forward_proj="gated-silu", tie_word_embeddings=False, pad_token_id=3, decoder_start_token_id=3)),
    "bart-scaled-uneven": (hf.BartForConditionalGeneration, dict(d_model=24, encoder_layers=1, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=31, decoder_ffn_dim=17, activation_function="relu", scale_embedding=True, max_position_embeddings=40, forced_eos_token_id=None)),
    "mbart": (hf.MBartForConditionalGeneration, dict(d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=3, encoder_ffn_dim=31, decoder_ffn_dim=17, scale_embedding=True, max_position_embeddings=40, forced_eos_token_id=None)),
    "mbart-forced": (hf.MBartForConditionalGeneration, dict(d_model=20, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=23, decoder_ffn_dim=17, max_position_embeddings=30, decoder_start_token_id=15, forced_bos_token_id=20, pad_token_id=3, eos_token_id=8)),
    "bart-masked": (hf.BartForConditionalGeneration, dict(d_model=20, encoder_layers=2, decoder_layers=1, encoder_attention_heads=5, decoder_attention_heads=2, encoder_ffn_dim=19, decoder_ffn_dim=23, activation_function="gelu_new", scale_embedding=True, max_position_embeddings=30)),
    "mt5": (hf.MT5ForConditionalGeneration, dict(d_model=16, d_kv=6, d_ff=25, num_layers=1, num_decoder_layers=2, num_heads=3, pad_token_id=0, decoder_start_token_id=0)),
    "pegasus": (hf.PegasusForConditionalGeneration, dict(d_model=24, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=3, encoder_ffn_dim=31, decoder_ffn_dim=17, scale_embedding=True, max_position_embeddings=40, forced_eos_token_id=None)),
    "gpt2-relu": (hf.GPT2LMHeadModel, dict(n_embd=20, n_layer=3, n_head=5, n_inner=None, n_positions=40, activation_function="relu")),
    "gpt2-untied": (hf.GPT2LMHeadModel, dict(n_embd=20, n_layer=1, n_head=2, n_inner=33, n_positions=40, tie_word_embeddings=False)),
    "distilbert-sinusoidal": (hf.DistilBertForMaskedLM, dict(dim=26, n_layers=3, n_heads=2, hidden_dim=39, activation="relu", sinusoidal_pos_embds=True, max_position_embeddings=40)),
    "xlnet-clamp-untied": (hf.XLNetLMHeadModel, xlnet | dict(d_model=30, n_head=3, d_inner=37, ff_activation="gelu_new", clamp_len=5, mem_len=7, reuse_len=9, tie_word_embeddings=False)),
    "xlnet-uni": (hf.XLNetLMHeadModel, xlnet | dict(d_model=24, n_head=2, d_inner=33, ff_activation="relu", attn_type="uni", same_length=True, mem_len=6)),
    "bert-causal": (hf.BertLMHeadModel, dict(num_hidden_layers=2, max_position_embeddings=30, hidden_size=20, num_attention_heads=2, intermediate_size=23, is_decoder=True, eos_token_id=9)),
    "roberta-causal": (hf.RobertaForCausalLM, dict(num_hidden_layers=2, max_position_embeddings=30, hidden_size=20, num_attention_heads=4, intermediate_size=23, is_decoder=True, tie_word_embeddings=False)),
    "bart-causal": (hf.BartForCausalLM, dict(d_model=20, encoder_layers=3, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=31, decoder_ffn_dim=17, scale_embedding=True, max_position_embeddings=30)),
    "pegasus-causal": (hf.PegasusForCausalLM, dict(d_model=20, decoder_layers=2, decoder_attention_heads=2, decoder_ffn_dim=17, max_position_embeddings=30)),
    "bart-tables": (hf.BartForConditionalGeneration, dict(d_model=20, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=17, decoder_ffn_dim=17, max_position_embeddings=30, tie_word_embeddings=False)),
    "t5-encoder": (hf.T5EncoderModel, dict(d_model=16, d_kv=6, d_ff=25, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu")),
    "relative-key": (hf.BertForMaskedLM, dict(num_hidden_layers=2, max_position_embeddings=20, hidden_size=20, num_attention_heads=2, intermediate_size=23, position_embedding_type="relative_key")),
    "relative-key-query": (hf.BertForMaskedLM, dict(num_hidden_layers=2, max_position_embeddings=20, hidden_size=20, num_attention_heads=2, intermediate_size=23, position_embedding_type="relative_key_query")),
    "modernbert": (hf.ModernBertForMaskedLM, modernbert | dict(num_hidden_layers=4, hidden_size=16, num_attention_heads=2, intermediate_size=13, local_attention=6)),
    "modernbert-biases": (hf.ModernBertForMaskedLM, modernbert | dict(num_hidden_layers=3, hidden_size=12, num_attention_heads=3, intermediate_size=17, local_attention=4, global_attn_every_n_layers=2, attention_bias=True, mlp_bias=True, norm_bias=True, classifier_bias=True, tie_word_embeddings=False, hidden_activation="silu", norm_eps=1e-3)),
    "modernbert-layers": (hf.ModernBertForMaskedLM, modernbert | dict(num_hidden_layers=5, hidden_size=12, num_attention_heads=2, intermediate_size=11, local_attention=5, decoder_bias=False, layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention", "sliding_attention"], rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=500.0), sliding_attention=dict(rope_type="default", rope_theta=40.0)))),
    "modernbert-far": (hf.ModernBertForMaskedLM, modernbert | dict(num_hidden_layers=3, hidden_size=8, num_attention_heads=1, intermediate_size=12, local_attention=16)),
    "xlnet-backward": (hf.XLNetLMHeadModel, xlnet | dict(d_model=28, n_head=4, d_inner=41, bi_data=True, clamp_len=9, mem_len=None)),
}
OUTPUTS = ("prediction_logits", "seq_relationship_logits", "sop_logits", "logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output")


def relative_attention(module, query, key, value, attention_mask, scaling, **_):
    """Attention with an embedding a[i - j] for each distance: softmax((q k' + q a' [+ k a']) / sqrt(C)) v.
    Source: Shaw et al. 2018, equation 5; Huang et al. 2020, method 4. transformers 5 has removed both."""
    place = torch.arange(query.shape[2])
    table = module.distance_embedding.weight
    vectors = table[place[:, None] - place[None, :] + table.shape[0] // 2]   # [T, S, C]
    scores = torch.einsum("bhic,bhjc->bhij", query, key) + torch.einsum("bhic,ijc->bhij", query, vectors)
    if module.config.position_embedding_type == "relative_key_query":
        scores = scores + torch.einsum("bhjc,ijc->bhij", key, vectors)
    probabilities = torch.softmax(scores * scaling + attention_mask, -1)
    return torch.einsum("bhij,bhjc->bihc", probabilities, value), probabilities


def with_distances(net):
    """Adds the relative position embeddings of `position_embedding_type` to a BERT; transformers 5 ignores it."""
    for layer in net.bert.encoder.layer:
        attention = layer.attention.self
        attention.distance_embedding = torch.nn.Embedding(2 * net.config.max_position_embeddings - 1, attention.attention_head_size)
    hf.models.bert.modeling_bert.eager_attention_forward = relative_attention
    table = net.bert.embeddings.position_embeddings.weight.requires_grad_(False)
    table.zero_()


def save_pickled(net, folder, shards):
    """The weights in torch.save's format, in one file or several shards."""
    os.remove(f"{folder}/model.safetensors")
    state = {k: v.float() for k, v in net.state_dict().items()}
    if shards == 1: return torch.save(collections.OrderedDict(state), f"{folder}/pytorch_model.bin")
    files = {name: f"pytorch_model-{i % shards + 1:05}-of-{shards:05}.bin" for i, name in enumerate(state)}
    for file in set(files.values()): torch.save({name: state[name] for name in state if files[name] == file}, f"{folder}/{file}")
    with open(f"{folder}/pytorch_model.bin.index.json", "w") as out: json.dump(dict(metadata={}, weight_map=files), out, indent=1)


def redraw(net, scale=0.2):
    """Every parameter drawn anew, so that none is 0 or 1 as a fresh model's biases and norms are."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            if p.requires_grad: p.copy_((1 if "norm" in name.lower() and name.endswith("weight") else 0) + scale * torch.randn_like(p))


def forward(net, inputs, **options):
    """What the model computes of the tensors of a case; those of `mems.0`, `mems.1`, ... are one list there."""
    memory = [v for k, v in inputs.items() if k.startswith("mems.")]
    return net(**{k: v for k, v in inputs.items() if not k.startswith("mems.")}, **(dict(mems=memory) if memory else {}), **options)


def expected_of(net, inputs):
    """Hidden states, attention of the first layer, outputs, loss and gradients by the names of expected.safetensors."""
    out = forward(net, inputs, output_hidden_states=True, output_attentions=True)
    if getattr(net.config, "is_encoder_decoder", False):
        expected = {f"{side}_hidden_states.{i}": h for side in ("encoder", "decoder") for i, h in enumerate(getattr(out, f"{side}_hidden_states"))}
        expected |= {f"{side}_attentions.0": getattr(out, f"{side}_attentions")[0] for side in ("encoder", "decoder", "cross")} | {"encoder_last_hidden_state": out.encoder_last_hidden_state}
    else:
        expected = {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states)} | {f"mems.{i}": m for i, m in enumerate(getattr(out, "mems", None) or [])}
        expected |= {f"attentions.0.{i}": a for i, a in enumerate(out.attentions[0])} if isinstance(out.attentions[0], tuple) else {"attentions.0": out.attentions[0]}
    for name in ("loss", *OUTPUTS):
        if getattr(out, name, None) is not None: expected[name] = getattr(out, name)
    if getattr(out, "loss", None) is not None:
        out.loss.backward()
        expected |= {f"grad.{n}": p.grad for n, p in net.named_parameters() if p.grad is not None}
    return expected


def write_generation(folder, net, ids, mask, told, searches):
    """Writes generation.json; the generated ids by the names of expected.safetensors."""
    with open(f"{folder}/generation.json", "w") as file: json.dump(told | {name: search for name, search in searches.items() if search}, file, indent=1)
    return {f"generated.{name}": net.generate(ids, attention_mask=mask, use_cache=False, **told, **search) for name, search in searches.items()}


def save(path, tensors):
    save_file({k: (v.float() if v.is_floating_point() else v).detach().contiguous().clone() for k, v in tensors.items()}, path)


def make(folder, cls, options):
    torch.manual_seed(3)
    config = cls.config_class(vocab_size=97, attn_implementation="eager", **options)
    net = cls(config).eval()
    config = net.config
    relative = hasattr(config, "position_embedding_type")
    if relative: with_distances(net)
    redraw(net)
    B, T = 4 if getattr(config, "bi_data", False) else 1 if getattr(config, "attn_type", "bi") == "uni" else 3, 60 if "-far" in folder else 15   # transformers accepts `uni` with a mask for one row only
    ids = torch.randint(0, 97, (B, T))
    mask = torch.ones(B, T, dtype=torch.long); mask[1:2, 9:] = 0; mask[2:3, 4:] = 0
    if cls is hf.XLNetLMHeadModel: mask[1 % B, :6], mask[1 % B, 6:] = 0, 1   # padding on the left
    pad = config.pad_token_id if config.pad_token_id is not None else 0
    ids[(mask == 1) & (ids == pad)] = 11
    ids[mask == 0] = pad
    inputs = dict(input_ids=ids, attention_mask=mask)
    if hasattr(config, "type_vocab_size"): inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, (B, T))
    if cls is hf.LongformerForMaskedLM and "uneven" in folder:
        inputs["global_attention_mask"] = torch.zeros_like(ids); inputs["global_attention_mask"][0, [0, 7, 8]] = 1; inputs["global_attention_mask"][1, 3] = 1; inputs["global_attention_mask"][2, 0] = 1
    if cls is hf.XLNetLMHeadModel:
        inputs["token_type_ids"] = torch.randint(0, 3, (B, T))
        if "backward" not in folder: inputs |= {f"mems.{i}": torch.randn(4, B, config.d_model) for i in range(config.n_layer)}
        if "uni" not in folder:   # targets in a random order; some rows have fewer
            targets = torch.stack([torch.randperm(T)[:5] for _ in range(B)]); order = torch.full((B, T), -1); order.scatter_(1, targets, torch.arange(5).repeat(B, 1))
            inputs["perm_mask"] = ((order[:, :, None] <= order[:, None, :]) & (order[:, None, :] >= 0)).float()
            inputs["target_mapping"] = torch.nn.functional.one_hot(targets, T).float(); inputs["target_mapping"][1, 3:] = 0
    pretraining = cls.__name__.endswith("ForPreTraining")
    if cls is hf.ElectraForPreTraining: inputs["labels"] = torch.randint(0, 2, (B, T))
    elif not cls.__name__.endswith("Model") or "LMHead" in cls.__name__:
        chosen = (torch.rand(B, T) < 0.3) & (mask == 1); chosen[:, 1] = True
        inputs["labels"] = torch.where(chosen, torch.randint(0, 97, (B, T)), -100)
        if "target_mapping" in inputs: inputs["labels"] = torch.where((inputs["target_mapping"].sum(-1) > 0) & (mask.gather(1, targets) > 0), ids.gather(1, targets), -100)
        if pretraining: inputs["sentence_order_label" if cls is hf.AlbertForPreTraining else "next_sentence_label"] = torch.tensor([0, 1, 1])
    two = getattr(config, "is_encoder_decoder", False)
    if two:
        inputs["labels"] = torch.randint(4, 97, (B, 8)); inputs["labels"][1, 5:] = -100
    if "masked" in folder:   # with a decoder attention mask
        inputs["decoder_input_ids"] = torch.randint(4, 97, (B, 8)); inputs["decoder_attention_mask"] = torch.ones(B, 8, dtype=torch.long)
        inputs["decoder_attention_mask"][1, 5:] = 0; inputs["decoder_attention_mask"][2, 2:4] = 0
    if relative: net = net.double()
    expected = expected_of(net, inputs)
    net.float().save_pretrained(folder)
    if relative: save_pickled(net, folder, 2 if "query" in folder else 1)
    # RoBERTa's `generate` counts positions from 0, its `forward` from pad_token_id + 1: its generated text does not follow from its logits.
    if two or cls is hf.GPT2LMHeadModel or (getattr(config, "is_decoder", False) and cls is not hf.RobertaForCausalLM):
        searches = {"greedy": {}, "beam4": dict(num_beams=4, early_stopping=True), "long": dict(num_beams=3, min_new_tokens=5, length_penalty=2.0, repetition_penalty=1.3), "ngram": dict(no_repeat_ngram_size=2, min_length=6)}
        expected |= write_generation(folder, net, ids[:1], mask[:1], dict(max_new_tokens=9, do_sample=False), searches)
    save(f"{folder}/inputs.safetensors", inputs)
    save(f"{folder}/expected.safetensors", expected)


if __name__ == "__main__":
    for name, (cls, options) in CASES.items():
        if not sys.argv[2:] or name in sys.argv[2:]: make(f"{sys.argv[1]}/{name}", cls, options)
