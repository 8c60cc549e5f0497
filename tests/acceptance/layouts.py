#!/usr/bin/env python3
"""Takes folders in the layouts of the hub in and out again: the tokenizer and config.json of every family.

    tests/acceptance/layouts.py build/cloze [--only camembert] [--folder /tmp/layouts] [--rules]

Each layout is a small model with random weights and the files that such folders have there: tokenizer.json or not,
tokenizer_config.json with a class, without one, or no such file, the class of the tokenizer in config.json. `cloze
import` and `cloze export --to huggingface` take it through a run. Then
- AutoTokenizer gives the same ids and segments for the export as for the folder that came in, for 300 lines, for pairs
  of them, and for lines with the mask and with tokens that a user added,
- `cloze tokenize` gives the ids of both,
- tokenizer_config.json names the tokenizer's class; config.json has the class, the model type and every key that came
  in; generation_config.json is as it came in,
- the class that came in computes the same outputs from both.

Layouts of tokenizers that Cloze does not have must be refused with their name.

--rules takes each class of a tokenizer with what tokenizer_config.json may say over its tokenizer.json, with and
without each of these files and those of transformers 4, through odd lines: blanks, NFKC, accents, ideographs, control
characters, spelled special tokens. The ids of `cloze tokenize` of the folder, of the run and of the export, and those
of AutoTokenizer for the export, are AutoTokenizer's for the folder; of a SentencePiece file alone they are those of
the sentencepiece library with the code of the published model, and how many lines transformers departs from is told.
Words are those of word_ids, the special tokens of pairs those of the tokenizer.

A fault is a line; exits with 1 then. Without the environment beside transformers (`./test --peers`) the test is
skipped.
"""
import argparse
import collections
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

peers.enter(__file__)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import sentencepiece as spm  # noqa: E402
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402
from tokenizers import processors, trainers  # noqa: E402

FIXTURES = Path(__file__).resolve().parent.parent / "data/tokenizers/families"
sys.path.insert(0, str(FIXTURES.parent))
import make_families  # noqa: E402
WORDS = """the cat cats sat on mat and of in them two spaces text quoted café naïve 中文 1,200 2009, 9, 99, the mat. été
x NEW Paris king queen to The CAT""".split()


def lines_of(count, seed=1):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 14))) for _ in range(count)]


# -- Tokenizers --------------------------------------------------------------------------------------------------------

SPECIAL_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece(lowercase=True):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=140, special_tokens=SPECIAL_BERT, show_progress=False)
    made.train_from_iterator(lines_of(300, 7), trainer)
    return made


def write_wordpiece(folder):
    """vocab.txt."""
    vocabulary = wordpiece().get_vocab()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in sorted(vocabulary, key=vocabulary.get)))


def write_byte_bpe(folder, special=("<s>", "<pad>", "</s>", "<unk>", "<mask>")):
    """vocab.json and merges.txt."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(lines_of(300, 7), trainer)
    made.model.save(str(folder))


def sentencepiece(model, name):
    return lambda folder: shutil.copy(FIXTURES / f"{model}.model", folder / name)


def saved_as(name, write, **options):
    """The files that the class writes (tokenizer.json, tokenizer_config.json, ...), without those of `write`."""
    def save(folder):
        with tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch))
            getattr(hf, name).from_pretrained(scratch, **options).save_pretrained(folder)
    return save


def both(*steps):
    def write(folder):
        for step in steps: step(folder)
    return write


def config_without_class(folder):
    """tokenizer_config.json as in the folders of XLM-R: a length, no class."""
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 512}')


def no_config(folder):
    (folder / "tokenizer_config.json").unlink()


def with_added(folder):
    """Tokens that a user added, as transformers saves them."""
    made = hf.AutoTokenizer.from_pretrained(folder)
    made.add_special_tokens({"additional_special_tokens": ["<ent>"]}) if hf.__version__ < "5" else \
        made.add_special_tokens({"extra_special_tokens": ["<ent>"]})
    made.add_tokens(["<plain>"])
    made.save_pretrained(folder)


def with_listed(folder):
    """The same as transformers 4 saved it beside a vocabulary."""
    size = len((folder / "vocab.txt").read_text().splitlines())
    (folder / "added_tokens.json").write_text(json.dumps({"<ent>": size}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["<ent>"]}))


# -- Models ------------------------------------------------------------------------------------------------------------

SMALL = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
             max_position_embeddings=64)
BART = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=64)
T5 = dict(d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2)
GPT2 = dict(n_embd=16, n_layer=1, n_head=2, n_positions=64)
XLNET = dict(d_model=16, n_layer=1, n_head=2, d_inner=24, mem_len=None)
MODELS = {  # name of the class, keys
    "bert": ("BertForMaskedLM", SMALL), "klue": ("RobertaForMaskedLM", SMALL | dict(type_vocab_size=2)),
    "roberta": ("RobertaForMaskedLM", SMALL | dict(type_vocab_size=1)),
    "xlm-roberta": ("XLMRobertaForMaskedLM", SMALL | dict(type_vocab_size=1)),
    "camembert": ("CamembertForMaskedLM", SMALL | dict(type_vocab_size=1)),
    "albert": ("AlbertForMaskedLM", SMALL | dict(embedding_size=8)),
    "electra": ("ElectraForPreTraining", SMALL | dict(embedding_size=8)),
    "distilbert": ("DistilBertForMaskedLM", dict(dim=16, n_layers=1, n_heads=2, hidden_dim=24,
                                                 max_position_embeddings=64)),
    "longformer": ("LongformerForMaskedLM", SMALL | dict(attention_window=8)),
    "big_bird": ("BigBirdForMaskedLM", SMALL | dict(attention_type="original_full")),
    "modernbert": ("ModernBertForMaskedLM", SMALL | dict(local_attention=8, classifier_pooling="mean")),
    "gpt2": ("GPT2LMHeadModel", GPT2), "xlnet": ("XLNetLMHeadModel", XLNET),
    "t5": ("T5ForConditionalGeneration", T5), "mt5": ("MT5ForConditionalGeneration", T5),
    "bart": ("BartForConditionalGeneration", BART), "mbart": ("MBartForConditionalGeneration", BART),
    "pegasus": ("PegasusForConditionalGeneration", BART),
}

FAIRSEQ = sentencepiece("fairseq", "sentencepiece.bpe.model")
FAST = "TokenizersBackend" if hf.__version__ >= "5" else "PreTrainedTokenizerFast"


def fast_wordpiece(folder):
    """tokenizer.json of a class that has no vocabulary of its own, as ModernBERT's."""
    made = wordpiece()
    ids = [(piece, made.token_to_id(piece)) for piece in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]",
                                                        special_tokens=ids)
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL_BERT}
    hf.PreTrainedTokenizerFast(tokenizer_object=made, **names).save_pretrained(folder)


LAYOUTS = {  # model, files of the tokenizer, further keys of config.json
    "bert-vocab": ("bert", write_wordpiece, {}),
    "bert-saved": ("bert", saved_as("BertTokenizer", write_wordpiece), {}),
    "bert-cased": ("bert", saved_as("BertTokenizer", write_wordpiece, do_lower_case=False), {}),
    "bert-added": ("bert", both(saved_as("BertTokenizer", write_wordpiece), with_added), {}),
    "bert-vocab-added": ("bert", both(write_wordpiece, with_listed), {}),
    "bert-json": ("bert", both(saved_as("BertTokenizer", write_wordpiece), no_config), {}),
    "distilbert-saved": ("distilbert", saved_as("BertTokenizer", write_wordpiece), {}),
    "electra-vocab": ("electra", write_wordpiece, {}),
    "roberta-files": ("roberta", write_byte_bpe, {}),
    "roberta-saved": ("roberta", saved_as("RobertaTokenizer", write_byte_bpe), {}),
    "roberta-no-class": ("roberta", both(saved_as("RobertaTokenizer", write_byte_bpe), config_without_class), {}),
    "roberta-added": ("roberta", both(saved_as("RobertaTokenizer", write_byte_bpe), with_added), {}),
    "longformer-files": ("longformer", write_byte_bpe, {}),
    "bart-files": ("bart", write_byte_bpe, {}),
    "bart-saved": ("bart", saved_as("BartTokenizer", write_byte_bpe), {}),
    "xlm-roberta-no-class": ("xlm-roberta", both(saved_as("XLMRobertaTokenizer", FAIRSEQ), config_without_class,
                                                 FAIRSEQ), {}),
    "xlm-roberta-json": ("xlm-roberta", both(saved_as("XLMRobertaTokenizer", FAIRSEQ), no_config), {}),
    "xlm-roberta-piece": ("xlm-roberta", FAIRSEQ, {}),
    "camembert-no-class": ("camembert", both(saved_as("CamembertTokenizer", FAIRSEQ), config_without_class), {}),
    "camembert-piece": ("camembert", FAIRSEQ, {}),
    "minilm-piece": ("bert", FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer"}),
    "minilm-json": ("bert", both(saved_as("XLMRobertaTokenizer", FAIRSEQ), config_without_class),
                    {"tokenizer_class": "XLMRobertaTokenizer"}),
    "klue-saved": ("klue", saved_as("BertTokenizer", write_wordpiece), {"tokenizer_class": "BertTokenizer"}),
    "klue-vocab": ("klue", write_wordpiece, {"tokenizer_class": "BertTokenizer"}),
    "albert-piece": ("albert", sentencepiece("albert", "spiece.model"), {}),
    "albert-saved": ("albert", saved_as("AlbertTokenizer", sentencepiece("albert", "spiece.model")), {}),
    "big_bird-saved": ("big_bird", saved_as("BigBirdTokenizer", sentencepiece("bigbird", "spiece.model")), {}),
    "modernbert-saved": ("modernbert", fast_wordpiece, {}),
    "gpt2-files": ("gpt2", lambda folder: write_byte_bpe(folder, ["<|endoftext|>"]), {}),
    "gpt2-chinese": ("gpt2", both(saved_as("BertTokenizer", write_wordpiece)), {"tokenizer_class": "BertTokenizer"}),
    "gpt2-chinese-vocab": ("gpt2", write_wordpiece, {"tokenizer_class": "BertTokenizer"}),
    "xlnet-saved": ("xlnet", saved_as("XLNetTokenizer", sentencepiece("xlnet", "spiece.model")), {}),
    "t5-piece": ("t5", sentencepiece("t5", "spiece.model"), {}),
    "t5-saved": ("t5", saved_as("T5Tokenizer", sentencepiece("t5", "spiece.model")), {}),
    "mt5-saved": ("mt5", saved_as("T5Tokenizer", sentencepiece("t5", "spiece.model")), {}),
    "codet5-saved": ("t5", saved_as("RobertaTokenizer", write_byte_bpe), {}),
    "codet5-files": ("t5", write_byte_bpe, {"tokenizer_class": "RobertaTokenizer"}),
    "mbart-saved": ("mbart", saved_as("MBartTokenizer", FAIRSEQ, src_lang="en_XX"), {}),
    "pegasus-saved": ("pegasus", saved_as("PegasusTokenizer", sentencepiece("t5", "spiece.model")), {}),
}
REFUSED = {  # model, files of the tokenizer, class in config.json
    "japanese": ("bert", write_wordpiece, "BertJapaneseTokenizer"),
    "herbert": ("bert", write_byte_bpe, "HerbertTokenizerFast"),
    "phobert": ("roberta", write_wordpiece, "PhobertTokenizer"),
}


# -- Rules: what tokenizer_config.json says over tokenizer.json, and SentencePiece alone --------------------------------

ODD = ["", " ", "   ", "\t", "\u00a0", "\u3000", " the cat", "the cat ", "  the  cat  on ", "the\tcat", "the\u00a0cat",
       "the\u3000cat", "the\u2003cat", "the\u2028cat", "the\x85cat", "the\x1fcat", "\u200bthe\u200bcat", "the\u200dcat",
       "\ufeffthe cat", "the\ufffdcat", "the\x01cat", "the\x7fcat", "the\u00adcat", "caf\u00e9 na\u00efve \u00c9t\u00e9",
       "cafe\u0301 E\u0301te\u0301", "\u1e69 s\u0323\u0307 s\u0307\u0323 \u00e5", "\ufb01ne \ufb02at", "\u00bd \u2460 \u2122 \u212b",
       "\uff54\uff48\uff45 \uff23\uff21\uff34", "\u4e2d\u6587 \u65e5\u672c\u8a9e", "the\u4e2d\u6587cat", "\ud55c\uad6d\uc5b4 the",
       "\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "\u0939\u093f\u0928\u094d\u0926\u0940", "THE CAT New", "\u0130stanbul \u01c5 \u00df",
       "\u039f\u0394\u039f\u03a3 \u039f\u03a3", "``quoted'' text", "don't can't", "'' ``", "the-cat, (the) mat.", "the.cat?on!",
       "x" * 120, "\U0001F600 cat \U0001F468\u200d\U0001F469\u200d\U0001F467", "2009 the 9 9", "a" * 30 + " the", ". the", ", .",
       "\u2026 the \u2014 cat \u2018x\u2019"]
DIGITS = ["9, 99, 9,9,", "1,200 of 2,009,", "\u0663, the"]  # transformers 5 has given up the commas of ALBERT and XLNet
MARKS = ["\u2581the", "mat \u2581cat", "\u2581 \u2581"]  # a written mark of a space
SPELLED = ["<s> the </s>", "[CLS] the [SEP]", "the <mask> cat", "the [MASK] cat", "<pad><unk>", "[PAD][UNK]the"]
LEGACY = {"bert": {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
                   "mask_token": "[MASK]"},
          "roberta": {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>",
                      "unk_token": "<unk>", "pad_token": "<pad>",
                      "mask_token": {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False,
                                     "normalized": True}}}


def trained(model, folder):
    """A SentencePiece file of the spec of a fixture with NFKC, as the published models have it."""
    path = folder / f"{model}.model"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = make_families.SPEC[model] | dict(
            sentence_iterator=iter(lines_of(300, 7) + [" ".join("the cat 9 99 , x . t h e c a".split())] * 20),
            model_prefix=str(folder / model), vocab_size=120, hard_vocab_limit=False, num_threads=1, minloglevel=2)
        spm.SentencePieceTrainer.train(**options)
    return path


def slow_ids(family, path, rule):
    """The ids of a text by the code of the published model over the sentencepiece library."""
    model = spm.SentencePieceProcessor(str(path))
    if family in ("albert", "xlnet"):
        lower, keeps = rule.get("do_lower_case", family == "albert"), rule.get("keep_accents", False)
        return lambda text: make_families.xlnet_pieces(model, text, lower, keeps)
    shift, unknown = {"xlm-roberta": (1, 3), "mbart": (1, 3), "mbart50": (1, 3), "camembert": (4, 3),
                      "pegasus": (103, None)}.get(family, (0, None))
    return lambda text: [unknown if unknown and not i else i + shift for i in model.encode(text)]


def wordpiece_rules():
    return [{}] + [{"do_lower_case": value} for value in (True, False)] + [
        {"do_lower_case": False, "strip_accents": True}, {"strip_accents": False}, {"tokenize_chinese_chars": False},
        {"do_lower_case": False, "tokenize_chinese_chars": False, "strip_accents": None}]


SPACES = [{}, {"add_prefix_space": True}, {"add_prefix_space": False}]
CLASSES = {  # name: class of the tokenizer, model, file of SentencePiece, what tokenizer_config.json may say
    "bert": ("BertTokenizer", "bert", None, wordpiece_rules()),
    "distilbert": ("DistilBertTokenizer", "distilbert", None, wordpiece_rules()[:5]),
    "electra": ("ElectraTokenizer", "electra", None, wordpiece_rules()[:5]),
    "roberta": ("RobertaTokenizer", "roberta", "bytes", SPACES + [{"trim_offsets": False}]),
    "longformer": ("LongformerTokenizer", "longformer", "bytes", SPACES),
    "bart": ("BartTokenizer", "bart", "bytes", SPACES),
    "gpt2": ("GPT2Tokenizer", "gpt2", "bytes", SPACES),
    "albert": ("AlbertTokenizer", "albert", "albert", [{}, {"do_lower_case": False}, {"keep_accents": True},
                                                       {"add_prefix_space": False}]),
    "xlnet": ("XLNetTokenizer", "xlnet", "xlnet", [{}, {"do_lower_case": True}]),
    "big_bird": ("BigBirdTokenizer", "big_bird", "bigbird", [{}, {"add_prefix_space": False}]),
    "t5": ("T5Tokenizer", "t5", "t5", [{}, {"extra_ids": 100}]),
    "mt5": ("T5Tokenizer", "mt5", "t5", [{}]),
    "pegasus": ("PegasusTokenizer", "pegasus", "t5", [{}]),
    "xlm-roberta": ("XLMRobertaTokenizer", "xlm-roberta", "fairseq", [{}, {"add_prefix_space": False}]),
    "camembert": ("CamembertTokenizer", "camembert", "fairseq", [{}, {"add_prefix_space": False}]),
    "mbart": ("MBartTokenizer", "mbart", "fairseq", [{}, {"src_lang": "fr_XX"}]),
    "mbart50": ("MBart50Tokenizer", "mbart", "fairseq", [{}, {"src_lang": "fr_XX"}]),
}


def vocabulary_of(name, folder, scratch, identity):
    """Writes the files of a vocabulary; returns the path of a SentencePiece file."""
    kind = CLASSES[name][2]
    if kind is None: return write_wordpiece_cased(folder)
    if kind == "bytes": return write_byte_bpe(folder, ["<|endoftext|>"] if name == "gpt2" else
                                              ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    source = FIXTURES / f"{kind}.model" if identity else trained(kind, scratch)
    target = "sentencepiece.bpe.model" if kind == "fairseq" else "spiece.model"
    return shutil.copy(source, folder / target)


def write_wordpiece_cased(folder):
    """vocab.txt of pieces with and without case, accents and ideographs, so that each rule has other ids."""
    pieces = list(wordpiece(lowercase=False).get_vocab()) + list(wordpiece().get_vocab()) + ["\u4e2d\u6587", "##\u6587"]
    pieces = SPECIAL_BERT + sorted(set(pieces) - set(SPECIAL_BERT))
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))


def edit(path, **values):
    """Sets keys of a file of JSON; None takes one out."""
    content = json.loads(path.read_text()) if path.exists() else {}
    content = {key: value for key, value in (content | values).items() if value is not None or key not in values}
    path.write_text(json.dumps(content))


def rule_layouts():
    """name, class, saved rules, rules of tokenizer_config.json, which files are there, identity."""
    for name, (_, _, kind, rules) in CLASSES.items():
        for identity in (True, False) if kind not in (None, "bytes") else (True,):
            label = name + ("" if identity else "-nfkc")
            for k, rule in enumerate(rules):
                for files in ("saved", "class", "keys", "legacy", "vocabulary", "vocabulary-class"):
                    if kind not in (None, "bytes") and files.startswith("vocabulary") and "add_prefix_space" in rule:
                        continue  # SentencePiece itself has no such rule
                    if name == "mbart50" and files in ("keys", "vocabulary"): continue  # the model type says mBART
                    yield f"{label}-{files}-{k}", name, {}, rule, files, identity
            for k, rule in enumerate(rules[1:]):  # the file has the rule, tokenizer_config.json has another or none
                yield f"{label}-default-{k}", name, rule, {}, "class", identity
                if name != "mbart50": yield f"{label}-json-{k}", name, rule, {}, "json", identity
                yield f"{label}-generic-{k}", name, rule, {}, "generic", identity


def write_rules(folder, scratch, layout):
    """The files of a layout beside the model; the SentencePiece file of one that has nothing else."""
    _, name, saved, rule, files, identity = layout
    made, config = CLASSES[name][0], folder / "tokenizer_config.json"
    if files.startswith("vocabulary"):
        path = vocabulary_of(name, folder, scratch, identity)
        if files == "vocabulary-class": edit(config, tokenizer_class=made, **rule)
        elif rule: edit(config, **rule)
        return path
    saved_as(made, lambda where: vocabulary_of(name, where, scratch, identity), **saved)(folder)
    if files == "saved": edit(config, **rule)
    else: config.unlink()
    if files == "class": edit(config, tokenizer_class=made, **rule)
    if files == "keys": edit(config, model_max_length=64, **rule)
    if files == "generic": edit(config, tokenizer_class="PreTrainedTokenizerFast", **rule)
    if files == "legacy":  # as transformers 4 left it
        edit(config, tokenizer_class=made + "Fast", **rule)
        kind = CLASSES[name][2]
        names = LEGACY["bert"] if kind is None else LEGACY["roberta"] if kind == "bytes" and name != "gpt2" else {}
        if names: edit(folder / "special_tokens_map.json", **names)
        size = len(Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab())
        if kind in (None, "bytes"): edit(folder / "added_tokens.json", **{"<ent>": size})
    return None


def plain_ids(tokenizer, lines):
    """Special tokens that a text spells are text, as for Cloze."""
    return tokenizer(lines, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def words_of(tokenizer, lines):
    made = tokenizer(lines, add_special_tokens=False, split_special_tokens=True)
    return [made.word_ids(i) for i in range(len(lines))]


def faults_of_rules(program, folder, layout, scratch, counts):
    label, name, _, rule, files, identity = layout
    model = CLASSES[name][1]
    make(folder / "came", model, lambda came: None, {})
    path = write_rules(folder / "came", scratch, layout)
    run(program, "import", folder / "came", "--out", folder / "run")
    run(program, "export", folder / "run", "--to", "huggingface", "--out", folder / "out")
    # A vocab.txt alone: transformers folds case whatever it holds, Cloze where none of its pieces has case.
    cased = {"do_lower_case": False} if files == "vocabulary" and CLASSES[name][2] is None and not rule else {}
    before = hf.AutoTokenizer.from_pretrained(folder / "came", **cased)
    after = hf.AutoTokenizer.from_pretrained(folder / "out")
    lines = ODD + lines_of(40) + DIGITS + MARKS
    faults = []

    def same(what, found, wanted, texts):
        differ = differing_rows if found and isinstance(found[0], dict) else differing
        wrong = [text for text, a, b in zip(texts, found, wanted, strict=True) if differ([a], [b])]
        counts["lines"] += len(texts)
        if wrong: faults.append(f"{what}: {len(wrong)} of {len(texts)} differ, as {wrong[:4]!a}")
    wanted = plain_ids(before, lines)
    if path:
        slow = slow_ids(name, path, rule)
        by_library = [slow(line) for line in lines]
        departing = [line for line, a, b in zip(lines, wanted, by_library, strict=True) if a != b]
        if not rule:
            counts[f"transformers 5 departs from SentencePiece: {name}{'' if identity else ' (NFKC)'}"] = \
                f"{len(departing)} of {len(lines)} lines, as {departing[:3]!a}"
        wanted = by_library
    rows = rows_of_cloze(program, folder / "came", lines)
    same("cloze, folder", [row["ids"] for row in rows], wanted, lines)
    same("cloze, run", ids_of_cloze(program, folder / "run", lines), wanted, lines)
    same("cloze, export", ids_of_cloze(program, folder / "out", lines), wanted, lines)
    same("AutoTokenizer, export", plain_ids(after, lines), wanted, lines)
    if not path: same("words", [row["words"] for row in rows], words_of(before, lines), lines)
    if not path:
        # transformers 5 reads bare vocab.json and merges.txt with a mask that leaves the space before it to a token.
        is_bare = files.startswith("vocabulary") and CLASSES[name][2] == "bytes"
        texts = lines + [text for text in SPELLED if not (is_bare and "<mask>" in text)]
        same("framed", encoded(after, texts), encoded(before, texts), texts)
        same("pairs", encoded(after, texts[:50], texts[7:57]), encoded(before, texts[:50], texts[7:57]), texts[:50])
    elif files == "vocabulary-class":
        same("framed", encoded(after, ["the cat"], ["on"]), encoded(before, ["the cat"], ["on"]), ["the cat"])
    for token in ("bos", "eos", "cls", "sep", "pad", "unk", "mask"):
        came, left = (getattr(one, f"{token}_token", None) for one in (before, after))
        if came is not None and came != left: faults.append(f"{token}_token is {left}, was {came}")
    return faults


# -- Checks -------------------------------------------------------------------------------------------------------------

def make(folder, model, write, keys):
    """The folder of a layout; returns its config.json as it came in."""
    folder.mkdir(parents=True)
    name, sizes = MODELS[model]
    write(folder)
    vocabulary = 512
    config = getattr(hf, name).config_class(**{"vocab_size": vocabulary} | sizes)
    for id_ in ("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "pad_token_id",
                "decoder_start_token_id"):
        if (getattr(config, id_, None) or 0) >= vocabulary: setattr(config, id_, None)
    if config.pad_token_id is None and model == "modernbert": config.pad_token_id = 0
    torch.manual_seed(5)
    net = getattr(hf, name)(config)
    for parameter in net.parameters(): torch.nn.init.normal_(parameter, std=0.3)
    net.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text()) | keys
    path.write_text(json.dumps(config, indent=2))
    return config


def run(program, *arguments, lines=None):
    done = subprocess.run([program, "--quiet", *map(str, arguments)], capture_output=True, text=True, check=False,
                          input=lines)
    if done.returncode: raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def encoded(tokenizer, lines, seconds=None):
    made = tokenizer(lines, seconds)
    return [dict(ids=made["input_ids"][i], types=made.get("token_type_ids", made["input_ids"])[i] if
                 "token_type_ids" in made else None) for i in range(len(lines))]


def rows_of_cloze(program, folder, lines):
    rows = run(program, "tokenize", folder, "--json", lines="".join(line + "\n" for line in lines)).split("\n")
    return [json.loads(row) for row in rows if row]


def ids_of_cloze(program, folder, lines):
    return [row["ids"] for row in rows_of_cloze(program, folder, lines)]


def differing(found, wanted):
    return sum(a != b for a, b in zip(found, wanted, strict=True))


def differing_rows(found, wanted):
    """Segments are compared where both tokenizers give them: GPT-2 has none, whatever its tokenizer says."""
    return sum(a["ids"] != b["ids"] or None not in (a["types"], b["types"]) and a["types"] != b["types"]
               for a, b in zip(found, wanted, strict=True))


def faults_of(program, folder, layout):
    model, write, keys = layout
    came = make(folder / "came", model, write, keys)
    run(program, "import", folder / "came", "--out", folder / "run")
    run(program, "export", folder / "run", "--to", "huggingface", "--out", folder / "out")
    faults = []

    def same(what, found, wanted):
        count = (differing_rows if isinstance(wanted[0], dict) else differing)(found, wanted)
        if count: faults.append(f"{what}: {count} of {len(wanted)} differ")
    before, after = (hf.AutoTokenizer.from_pretrained(folder / name) for name in ("came", "out"))
    lines = lines_of(300)
    if model == "albert" and not (folder / "came/tokenizer.json").exists():
        lines = [line.replace(",", "") for line in lines]  # transformers 5 has given up commas after digits
    same("lines", encoded(after, lines), encoded(before, lines))
    same("pairs", encoded(after, lines[:100], lines[100:200]), encoded(before, lines[:100], lines[100:200]))
    same("cloze tokenize", ids_of_cloze(program, folder / "run", lines),
         after(lines, add_special_tokens=False)["input_ids"])
    for name in ("mask_token", "pad_token", "unk_token", "cls_token", "sep_token"):
        if getattr(before, name, None) not in (None, getattr(after, name, None)):
            faults.append(f"{name} is {getattr(after, name, None)}, was {getattr(before, name, None)}")
    # transformers 5 reads bare vocab.json and merges.txt with a mask that leaves the space before it to a token.
    tokens = ["<ent>", "<plain>"] + ([] if (folder / "came/merges.txt").exists() else [before.mask_token])
    for token in [token for token in tokens if token and token in before.get_vocab()]:
        texts = [f"the king {token} to", f"{token} cat", f"the{token} mat", f"a {token} ."]
        same(f"lines with {token}", encoded(after, texts), encoded(before, texts))
        if token != before.mask_token:
            same(f"cloze tokenize with {token}", ids_of_cloze(program, folder / "run", texts),
                 after(texts, add_special_tokens=False)["input_ids"])
    if before.mask_token and not (folder / "came/tokenizer.json").exists():  # as `cloze fill` reads a blank
        right = " to" if (folder / "out/merges.txt").exists() else "to"
        left, right = ids_of_cloze(program, folder / "run", ["the king", right])
        mask = after.convert_tokens_to_ids(before.mask_token)
        same("a blank", [after(f"the king {before.mask_token} to", add_special_tokens=False)["input_ids"]],
             [left + [mask] + right])
    if "tokenizer_class" not in json.loads((folder / "out/tokenizer_config.json").read_text()):
        faults.append("tokenizer_config.json names no class")
    config = json.loads((folder / "out/config.json").read_text())
    lost = {key: value for key, value in came.items() if key not in config or config[key] != value}
    more = {key: value for key, value in config.items() if key.endswith("_id") and key not in came}
    if lost: faults.append(f"config.json changed {lost}, has {({key: config.get(key) for key in lost})}")
    if more: faults.append(f"config.json has more ids: {more}")
    generation = [folder / name / "generation_config.json" for name in ("came", "out")]
    if generation[0].exists() and not (generation[1].exists() and
                                       json.loads(generation[0].read_text()) == json.loads(generation[1].read_text())):
        faults.append("generation_config.json is lost or changed")
    nets = [getattr(hf, came["architectures"][0]).from_pretrained(folder / name, attn_implementation="eager").eval()
            for name in ("came", "out")]
    ids = torch.arange(5, 29).reshape(2, 12)
    more = dict(decoder_input_ids=ids) if nets[0].config.is_encoder_decoder else {}
    with torch.no_grad(): outputs = [net(input_ids=ids, **more)[0] for net in nets]
    error = (outputs[0] - outputs[1]).abs().max()
    if not error < 1e-5: faults.append(f"outputs differ by {error:.1e}")
    return faults


def faults_of_refusal(program, folder, layout):
    model, write, name = layout
    make(folder / "came", model, write, {"tokenizer_class": name})
    try:
        run(program, "import", folder / "came", "--out", folder / "run")
    except RuntimeError as error:
        return [] if name in str(error) else [f"is refused without the name {name}: {error}"]
    return ["is imported"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--only", default="", help="layouts whose name has this")
    parser.add_argument("--folder", type=Path, help="of the layouts (default: a new temporary one)")
    parser.add_argument("--rules", action="store_true", help="each class with each rule of tokenizer_config.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.disable_progress_bar()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="layouts-"))
    wrong = tried = 0
    counts = collections.Counter()
    every = [(LAYOUTS, faults_of), (REFUSED, faults_of_refusal)]
    if options.rules:
        by_rules = functools.partial(faults_of_rules, scratch=folder / "trained", counts=counts)
        every = [({layout[0]: layout for layout in rule_layouts()}, by_rules)]
    for layouts, check in every:
        for name, layout in layouts.items():
            if options.only not in name: continue
            shutil.rmtree(folder / name, ignore_errors=True)
            try:
                faults = check(options.cloze.resolve(), folder / name, layout)
            except Exception as error:
                faults = [f"{type(error).__name__}: {error}"]
            tried += 1
            wrong += bool(faults)
            for fault in faults: print(f"{name}: {fault}", flush=True)
            if not faults: shutil.rmtree(folder / name)
    for what, count in sorted(counts.items()): print(f"{what}: {count}")
    print(f"{tried - wrong} of {tried} layouts come out as they came in")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
