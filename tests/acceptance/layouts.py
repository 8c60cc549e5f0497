#!/usr/bin/env python3
"""Takes folders in the layouts of the hub in and out again: the tokenizer and config.json of every family.

    tests/acceptance/layouts.py build/cloze [--only camembert] [--folder /tmp/layouts]

Each layout is a small model with random weights and the files that such folders have there: tokenizer.json or not,
tokenizer_config.json with a class, without one, or no such file, the class of the tokenizer in config.json. `cloze
import` and `cloze export --to huggingface` take it through a run. Then
- AutoTokenizer gives the same ids and segments for the export as for the folder that came in, for 300 lines, for pairs
  of them, and for lines with the mask and with tokens that a user added,
- `cloze tokenize` gives the ids of both,
- tokenizer_config.json names the tokenizer's class; config.json has the class, the model type and every key that came
  in; generation_config.json is as it came in,
- the class that came in computes the same outputs from both.

Layouts of tokenizers that Cloze does not have must be refused with their name. A fault is a line; exits with 1 then.
Without the environment beside transformers (`./test --peers`) the test is skipped.
"""
import argparse
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
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402
from tokenizers import processors, trainers  # noqa: E402

FIXTURES = Path(__file__).resolve().parent.parent / "data/tokenizers/families"
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


def ids_of_cloze(program, folder, lines):
    rows = run(program, "tokenize", folder, "--json", lines="".join(line + "\n" for line in lines)).splitlines()
    return [json.loads(row)["ids"] for row in rows]


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
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.disable_progress_bar()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="layouts-"))
    wrong = tried = 0
    for layouts, check in ((LAYOUTS, faults_of), (REFUSED, faults_of_refusal)):
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
    print(f"{tried - wrong} of {tried} layouts come out as they came in")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
