"""Random golden cases from transformers, of every family that `cloze import` reads, for tests/acceptance/parity.py.

A case is a function of a seed and a number. Its config is one that Cloze takes, wide enough that norms leave gradients,
and its weights are small enough that rounding in fp32 stays below the tolerances. Not drawn is what differs on purpose:
targets of XLNet that may see no token (docs/exports.md), and bi_data.
"""
import random
from types import SimpleNamespace

import make_cases as cases
import torch
import transformers as hf

ACTIVATIONS = """gelu gelu_new relu silu swish mish gelu_pytorch_tanh gelu_fast quick_gelu tanh sigmoid relu6 relu2
leaky_relu gelu_10 gelu_python linear laplace gelu_python_tanh gelu_accurate""".split()


class Draw(random.Random):
    def of(self, *choices): return self.choice(choices)
    def chance(self, probability): return self.random() < probability


# -- Configs: what a family has beside its width, layers, heads, ... (`s`) ---------------------------------------------

def bert(draw, s):
    return dict(type_vocab_size=draw.of(1, 2, 2, 5), pad_token_id=draw.of(0, 1, 3, s.vocab - 1),
                bos_token_id=draw.of(None, 0, 7), eos_token_id=draw.of(None, 2, s.vocab - 2))


def roberta(draw, s):
    return bert(draw, s) | dict(pad_token_id=draw.of(0, 1, 1, 3, 6), bos_token_id=0, eos_token_id=2)


def albert(draw, s):
    return bert(draw, s) | dict(num_hidden_groups=draw.randint(1, s.layers), inner_group_num=draw.of(1, 1, 2, 3),
                                embedding_size=draw.of(5, 11, s.width, s.width + 3), bos_token_id=2, eos_token_id=3)


def electra(draw, s):
    return bert(draw, s) | dict(embedding_size=draw.of(s.width, 6, 11, s.width * 2))


def big_bird(draw, s):
    return bert(draw, s) | dict(attention_type="original_full", sep_token_id=3)


def longformer(draw, s):
    window = draw.of(4, 6, 8, 16, draw.choices([4, 8, 16], k=s.layers))  # transformers fails for 2, and for 4 and 6
    return roberta(draw, s) | dict(attention_window=window, sep_token_id=2)


def distilbert(draw, s):
    return dict(sinusoidal_pos_embds=draw.chance(0.4), pad_token_id=draw.of(0, 1, 4))


def modernbert(draw, s):
    keys = {name: draw.chance(0.3) for name in ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")}
    keys |= dict(decoder_bias=draw.chance(0.7), local_attention=draw.of(2, 3, 4, 5, 8, 16, 128), cls_token_id=1,
                 pad_token_id=draw.of(0, 3), bos_token_id=1, eos_token_id=2, sep_token_id=2)
    types = ["full_attention", "sliding_attention"]
    layers = draw.sample(types[:1] + draw.choices(types, k=s.layers - 1), s.layers)
    keys |= draw.of(dict(layer_types=layers), dict(global_attn_every_n_layers=draw.of(1, 2, 3)))
    thetas = {name: dict(rope_type="default", rope_theta=draw.of(40.0, 500.0, 160000.0)) for name in types}
    return keys | draw.of({}, dict(rope_parameters=thetas))


def gpt2(draw, s):
    return draw.of({}, dict(n_inner=None)) | dict(
        bos_token_id=draw.of(1, s.vocab - 1), eos_token_id=draw.of(None, 2, s.vocab - 1),
        pad_token_id=draw.of(None, 0, 3))


def t5(draw, s):
    pad = draw.of(0, 0, 3)
    return draw.of({}, dict(num_decoder_layers=draw.of(1, 2, 3))) | dict(
        d_kv=draw.of(3, 5, 8), relative_attention_num_buckets=draw.of(4, 6, 7, 12, 32),
        relative_attention_max_distance=draw.of(20, 128), feed_forward_proj=draw.of("", "gated-") + s.activation,
        pad_token_id=pad, decoder_start_token_id=draw.of(pad, 0, 2), eos_token_id=draw.of(1, s.vocab - 1))


def bart(draw, s):
    return dict(decoder_layers=draw.of(1, 2, 3), decoder_attention_heads=draw.of(1, 2, s.heads),
                decoder_ffn_dim=draw.of(9, 31), scale_embedding=draw.chance(0.5), pad_token_id=draw.of(0, 1, 3),
                bos_token_id=draw.of(0, 4), eos_token_id=draw.of(2, s.vocab - 1),
                decoder_start_token_id=draw.of(0, 2, 5), forced_bos_token_id=draw.of(None, None, 4),
                forced_eos_token_id=draw.of(None, 2, s.vocab - 1))


def mbart(draw, s):
    return bart(draw, s) | draw.of({}, dict(decoder_start_token_id=None))


def xlnet(draw, s):
    return dict(attn_type=draw.of("bi", "bi", "bi", "uni"), mem_len=draw.of(None, 0, 1, 3, 20),
                reuse_len=draw.of(None, 0, 2, 6), clamp_len=draw.of(-1, -1, 1, 4, 9), same_length=draw.chance(0.3),
                bos_token_id=1, eos_token_id=2, pad_token_id=draw.of(0, 5))


# The keys of width, layers, heads, feed-forward width, activation, positions and epsilon.
BERT = ("hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act max_position_embeddings "
        "layer_norm_eps")
MODERNBERT = BERT.replace("hidden_act", "hidden_activation").replace("layer_norm", "norm")
DISTILBERT = "dim n_layers n_heads hidden_dim activation max_position_embeddings -"
GPT2 = "n_embd n_layer n_head n_inner activation_function n_positions layer_norm_epsilon"
T5 = "d_model num_layers num_heads d_ff feed_forward_proj - layer_norm_epsilon"
BART = "d_model encoder_layers encoder_attention_heads encoder_ffn_dim activation_function max_position_embeddings -"
XLNET = "d_model n_layer n_head d_inner ff_activation - layer_norm_eps"
PRETRAINED, MASKED = "ForPreTraining ForMaskedLM Model", "ForMaskedLM ForMaskedLM Model"
CAUSAL, SEQ2SEQ = "LMHeadModel LMHeadModel LMHeadModel Model", "ForConditionalGeneration ForConditionalGeneration Model"
FAMILIES = {  # by model_type: the keys, the other keys, the prefix of the classes, the classes
    "bert": (BERT, bert, "Bert", PRETRAINED + " LMHeadModel"),
    "roberta": (BERT, roberta, "Roberta", MASKED + " ForCausalLM"),
    "xlm-roberta": (BERT, roberta, "XLMRoberta", MASKED + " ForCausalLM"),
    "camembert": (BERT, roberta, "Camembert", MASKED + " ForCausalLM"),
    "albert": (BERT, albert, "Albert", PRETRAINED),
    "electra": (BERT, electra, "Electra", PRETRAINED + " ForCausalLM"),
    "modernbert": (MODERNBERT, modernbert, "ModernBert", MASKED),
    "distilbert": (DISTILBERT, distilbert, "DistilBert", MASKED),
    "longformer": (BERT, longformer, "Longformer", MASKED),
    "big_bird": (BERT, big_bird, "BigBird", PRETRAINED + " ForCausalLM"),
    "gpt2": (GPT2, gpt2, "GPT2", CAUSAL),
    "t5": (T5, t5, "T5", SEQ2SEQ + " EncoderModel"),
    "mt5": (T5, t5, "MT5", SEQ2SEQ + " EncoderModel"),
    "bart": (BART, bart, "Bart", SEQ2SEQ + " ForCausalLM"),
    "mbart": (BART, mbart, "MBart", SEQ2SEQ + " ForCausalLM"),
    "pegasus": (BART, bart, "Pegasus", SEQ2SEQ + " ForCausalLM"),
    "xlnet": (XLNET, xlnet, "XLNet", CAUSAL),
}


class Case:
    """A golden case in a folder, its model in transformers, and what decides its inputs."""

    def __init__(self, folder, seed, number, family):
        self.folder, self.family, self.draw = folder, family, Draw(f"{seed}/{number}")
        torch.manual_seed(self.draw.getrandbits(32))
        self.long = self.draw.chance(0.15)
        self.net = self.draw_model()
        self.config, self.name = self.net.config, type(self.net).__name__
        self.two, self.xlnet = self.config.is_encoder_decoder, family == "xlnet"
        self.uni = getattr(self.config, "attn_type", "bi") == "uni"
        self.is_base = self.name.endswith("Model") and "LMHead" not in self.name
        self.causal = not self.two and (family == "gpt2" or bool(getattr(self.config, "is_decoder", False)))
        self.inputs = self.draw_inputs()
        self.expected = cases.expected_of(self.net, self.inputs)
        self.net.save_pretrained(folder)
        self.searches, self.texts = {}, {}
        self.generate()
        cases.save(folder / "inputs.safetensors", self.inputs)
        cases.save(folder / "expected.safetensors", self.expected | self.texts)

    def draw_model(self):
        draw, (keys, others_of, prefix, names) = self.draw, FAMILIES[self.family]
        cls = getattr(hf, prefix + draw.choice(names.split()))
        heads = draw.of(1, 2, 2, 3, 4, 5)
        s = SimpleNamespace(vocab=draw.of(31, 50, 97, 200), width=heads * draw.of(6, 8, 8, 10, 16), heads=heads,
                            layers=draw.of(1, 2, 2, 3, 4), activation=draw.choice(ACTIVATIONS))
        shared = [s.width, s.layers, s.heads, draw.of(5, 8, 17, 32, 37, 64), s.activation,
                  330 if self.long else draw.of(50, 64), draw.of(1e-12, 1e-6, 1e-5, 1e-3)]
        options = dict(zip(keys.split(), shared), vocab_size=s.vocab, tie_word_embeddings=draw.chance(0.7))
        options |= others_of(draw, s)
        options.pop("-", None)
        if keys == BERT and cls.__name__.endswith(("LMHeadModel", "ForCausalLM")): options["is_decoder"] = True
        if keys == BART and cls.__name__.endswith("ForCausalLM"):  # transformers counts these for the decoder's cache
            options["encoder_layers"] = options["decoder_layers"]
        net = cls(cls.config_class(attn_implementation="eager", **options)).eval()
        scale = draw.of(0.03, 0.1) if self.long else draw.of(0.05, 0.1, 0.2)  # larger ones make much of rounding
        cases.redraw(net, scale)
        for name, buffer in net.named_buffers():
            if name == "final_logits_bias": buffer.copy_(scale * torch.randn_like(buffer))
        return net

    def ids(self, *shape):
        """Random tokens, the padding id among them in some cases."""
        ids, count = torch.randint(0, self.config.vocab_size, shape), self.config.vocab_size
        return ids if self.pads_are_tokens else torch.where(ids == self.pad, (self.pad + 1) % count, ids)

    def draw_inputs(self):
        draw = self.draw
        rows = 1 if self.uni else draw.of(1, 2, 3, 4)  # transformers takes `uni` with a mask for one row only
        length = draw.of(64, 100, 130, 200) if self.long else draw.of(1, 2, 3, 5, 9, 12, 17, 25, 33)
        length = max(length, 3 if self.causal else 2 if self.xlnet else 1)
        self.pad, self.pads_are_tokens = self.config.pad_token_id or 0, not self.two and draw.chance(0.25)
        mask, ids = self.draw_mask(rows, length), self.ids(rows, length)
        inputs = {"input_ids": torch.where((mask == 0) & draw.chance(0.8), self.pad, ids)}
        if mask.min() == 0 or draw.chance(0.5): inputs["attention_mask"] = mask
        types = 3 if self.xlnet else getattr(self.config, "type_vocab_size", 0)
        if types and draw.chance(0.8): inputs["token_type_ids"] = torch.randint(0, types, (rows, length))
        if self.two: return inputs | self.draw_decoder_inputs(rows)
        if self.family == "longformer": inputs |= self.draw_global_mask(mask)
        if self.xlnet: inputs |= self.draw_streams(mask)
        if self.xlnet and "attention_mask" in inputs and draw.chance(0.3):
            inputs["input_mask"] = (1 - inputs.pop("attention_mask")).float()
        return inputs | self.draw_labels(mask, inputs.get("target_mapping"))

    def draw_mask(self, rows, length):
        """1 at tokens, 0 at padding; position 0 is a token where it is pooled."""
        mask, some = torch.ones(rows, length, dtype=torch.long), self.draw.chance(0.8)
        for row in mask if some else ():
            count = self.draw.randint(1, length)
            where = "right" if self.uni else self.draw.of("none", "right", "left", "holes")
            if where == "right": row[count:] = 0
            if where == "left": row[:length - count] = 0
            if where == "holes": row[self.draw.sample(range(length), length - count)] = 0
            if self.is_base or self.name.endswith("ForPreTraining"): row[0] = 1
        return mask

    def draw_global_mask(self, mask):
        kind, one = self.draw.of("absent", "first", "random", "all"), torch.zeros_like(mask)
        if kind == "first": one[:, 0] = 1
        if kind == "random": one = (torch.rand(mask.shape) < 0.2).long()
        if kind == "all": one[:] = 1
        one *= mask
        return {"global_attention_mask": one} if one.any() else {}  # transformers fails without any global token

    def draw_streams(self, mask):
        """Mems, perm_mask and targets of XLNet: each sees the first token at least, which is no target."""
        draw, (rows, length), inputs = self.draw, mask.shape, {}
        if draw.chance(0.5):
            count = draw.of(1, 2, 4, 9)
            inputs |= {f"mems.{i}": torch.randn(count, rows, self.config.d_model) for i in range(self.config.n_layer)}
        if draw.chance(0.4): return inputs
        first = mask.argmax(1)
        order = torch.stack([torch.randperm(length) for _ in range(rows)])
        if draw.chance(0.5): order[order >= length // 2] = -1  # seen by all
        order[range(rows), first] = -1
        inputs["perm_mask"] = ((order[:, None, :] >= order[:, :, None]) & (order[:, None, :] >= 0)).float()
        if draw.chance(0.2): return inputs
        count = draw.randint(1, min(5, length - 1))
        targets = [draw.sample([i for i in range(length) if i != one], count) for one in first.tolist()]
        return inputs | {"target_mapping": torch.nn.functional.one_hot(torch.tensor(targets), length).float()}

    def draw_labels(self, mask, targets):
        """Labels of some tokens, of one or of all; where the next token is predicted, of those behind a token."""
        counts = mask == 1 if targets is None else mask.gather(1, targets.argmax(-1)) == 1
        if self.causal and FAMILIES[self.family][0] != BART:  # whose labels are not shifted
            counts[:, 1:] &= mask[:, :-1] == 1
            counts[:, 0] = False
        places = counts.nonzero().tolist()
        if self.is_base or not places or self.draw.chance(0.1): return {}
        if self.name == "ElectraForPreTraining": return {"labels": torch.randint(0, 2, mask.shape)}
        labels = torch.full(counts.shape, -100)
        for row, i in self.draw.sample(places, self.draw.of(1, len(places), (len(places) + 1) // 2)):
            labels[row, i] = self.draw.randrange(self.config.vocab_size)
        if not self.name.endswith("ForPreTraining"): return {"labels": labels}
        pairs = "sentence_order_label" if self.family == "albert" else "next_sentence_label"
        return {"labels": labels, pairs: torch.randint(0, 2, mask.shape[:1])}

    def draw_decoder_inputs(self, rows):
        length, inputs = self.draw.of(1, 2, 4, 8, 40), {}
        labels = self.ids(rows, length)
        if length > 1 and self.draw.chance(0.5): labels[0, -1] = -100
        if self.is_base or self.draw.chance(0.4):
            inputs["decoder_input_ids"] = torch.randint(0, self.config.vocab_size, (rows, length))
            if self.draw.chance(0.5):
                shown = torch.tensor([self.draw.randint(1, length) for _ in range(rows)])
                inputs["decoder_attention_mask"] = (torch.arange(length) < shown[:, None]).long()
                labels[inputs["decoder_attention_mask"] == 0] = -100
        return inputs if self.is_base else inputs | {"labels": labels}

    def generate(self):
        """Texts by four searches. RoBERTa's `generate` counts positions otherwise than its `forward`."""
        if self.is_base or not (self.two or self.causal) or FAMILIES[self.family][1] == roberta: return
        draw, ids = self.draw, self.inputs["input_ids"][:1]
        mask = self.inputs.get("attention_mask", torch.ones_like(ids))[:1]
        length = int(mask[0].nonzero().max()) + 1
        self.prompt = dict(input_ids=ids[:, :length], attention_mask=mask[:, :length])
        moves = self.causal and FAMILIES[self.family][0] == BART  # padding before a token moves its position there
        if moves and self.prompt["attention_mask"].min() == 0: return
        told = dict(max_new_tokens=draw.of(4, 9), do_sample=False)
        if self.config.pad_token_id is None: told["pad_token_id"] = 0
        searches = {"greedy": {}} | {f"beams{i}": dict(
            num_beams=draw.of(2, 3, 4), early_stopping=draw.of(True, False, "never"),
            length_penalty=draw.of(1.0, 1.0, 0.0, 2.0, -1.0)) | draw.of(
                {}, dict(min_new_tokens=draw.of(1, 4)), dict(min_length=draw.of(2, 5)),
                dict(repetition_penalty=draw.of(1.3, 0.7)), dict(no_repeat_ngram_size=draw.of(2, 3))) for i in range(3)}
        self.texts = cases.write_generation(self.folder, self.net, *self.prompt.values(), told, searches)
        self.searches = {f"generated.{name}": told | search for name, search in searches.items()}

    def forward_inputs(self):
        """The inputs without targets."""
        inputs = {name: one for name, one in self.inputs.items() if "label" not in name}
        if self.two and "decoder_input_ids" not in inputs:
            inputs["decoder_input_ids"] = self.net.prepare_decoder_input_ids_from_labels(self.inputs["labels"])
        return inputs
