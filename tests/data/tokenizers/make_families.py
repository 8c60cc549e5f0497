#!/usr/bin/env python3
"""Makes tests/data/tokenizers/families: small SentencePiece models, and the ids of difficult lines in each family of models.

The ids are those of the sentencepiece package under the formulas of transformers 4 (models/*/tokenization_*.py, the
classes over that package). transformers 5.23 gives the same for these models but for white space other than a space,
a written U+2581 and, for XLNet and ALBERT, commas after digits, which it has given up.
Needs: sentencepiece. Run in the repository: python3 tests/data/tokenizers/make_families.py
"""
import json
import os
import random
import tempfile
import unicodedata

import sentencepiece

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")

SPEC = {
    "fairseq": {},
    "t5": dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "xlnet": dict(control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>,<eop>"),
    "albert": dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]"),
    "bigbird": dict(pad_id=0, eos_id=1, bos_id=2, unk_id=3, control_symbols="[MASK],[CLS],[SEP]"),
    "deberta": dict(pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
                    unk_piece="[UNK]"),
    "barthez": dict(bos_id=0, pad_id=1, eos_id=2, unk_id=3, control_symbols="<mask>"),
    "suffix": dict(treat_whitespace_as_suffix=True),
    "bare": dict(add_dummy_prefix=False, remove_extra_whitespaces=False, user_defined_symbols="<sym>,NEW"),
    "bytes": dict(byte_fallback=True, model_type="bpe", user_defined_symbols="<sym>"),
}

LINES = [
    "the cat sat on the mat", "In 2009, the cats, 1,200 of them, sat.", "  two  spaces  ", "caf\u00e9 na\u00efve \u00c9t\u00e9",
    "e\u0301 and \u1e69 and \u00e5", "``quoted'' text", "THE CAT", "\u4e2d\u6587 \u65e5\u672c\u8a9e", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\U0001F600 cat \U0001F468\u200d\U0001F469\u200d\U0001F467", "x" * 60 + " mat", "<sym>the<sym> NEW cat", "a\tb\u00a0c\u3000d\x1fe", "9, 99, 9,9,", "",
    "\u0939\u093f\u0928\u094d\u0926\u0940 the", "cat.", "\u039f\u0394\u039f\u03a3 \u0130x", "\u0663, the", "mat \u2581cat",
]

MBART = "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN".split()
MBART50 = MBART + "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI".split()


def train():
    stream = random.Random(3)
    words = "the cat cats sat on mat and of in them two spaces text quoted caf\u00e9 na\u00efve \u4e2d\u6587 1,200 2009, 9, 99, the mat. \u00e9t\u00e9 \u0663, ``x'' <sym> NEW".split()
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as out:
        out.write("\n".join(" ".join(stream.choice(words) for _ in range(9)) for _ in range(300)))
    for name, spec in SPEC.items():
        options = dict(input=out.name, model_prefix=os.path.join(FOLDER, name), vocab_size=110, hard_vocab_limit=False,
                       model_type="unigram", normalization_rule_name="identity", minloglevel=2, num_threads=1)
        if spec.get("byte_fallback"):
            options["vocab_size"] = 400
        sentencepiece.SentencePieceTrainer.train(**{**options, **spec})
        os.remove(os.path.join(FOLDER, name + ".vocab"))


def xlnet_pieces(model, text, lower, keeps_accents=False):
    """zihangdai/xlnet, prepro_utils.py."""
    text = " ".join(text.strip().split())
    text = text.replace("``", '"').replace("''", '"')
    if not keeps_accents:
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    text = text.lower() if lower else text
    out = []
    for piece in model.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = model.encode(piece[:-1].replace("\u2581", ""), out_type=str)
            if piece[0] != "\u2581" and parts[0][0] == "\u2581":
                parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:]] + parts[1:]
            out += parts + [piece[-1]]
        else:
            out.append(piece)
    return [model.piece_to_id(p) for p in out]


def families():
    """name -> model file, tokenizer_config.json, ids of a text, ids of one text and of two with special tokens."""
    models = {name: sentencepiece.SentencePieceProcessor(os.path.join(FOLDER, name + ".model")) for name in SPEC}
    raw = lambda name: lambda text: models[name].encode(text)
    n = len(models["fairseq"])
    fairseq = lambda text: [i + 1 if i else 3 for i in models["fairseq"].encode(text)]
    camembert = lambda text: [i + 4 if i else 3 for i in models["fairseq"].encode(text)]
    en = n + 1 + MBART.index("en_XX")
    around = lambda before, between, after: (lambda a: before + a + after, lambda a, b: before + a + between + b + after)
    bert = lambda m: around([m.piece_to_id("[CLS]")], [m.piece_to_id("[SEP]")], [m.piece_to_id("[SEP]")])
    x = models["xlnet"]
    sep, cls = x.piece_to_id("<sep>"), x.piece_to_id("<cls>")
    return {
        "xlm_roberta": ("fairseq", "sentencepiece.bpe.model", {"tokenizer_class": "XLMRobertaTokenizer"}, fairseq, around([0], [2, 2], [2]), n + 2, {"<mask>": n + 1}),
        "mbart": ("fairseq", "sentencepiece.bpe.model", {"tokenizer_class": "MBartTokenizer"}, fairseq, around([], [], [2, en]), n + 27, {"<mask>": n + 26, "zh_CN": n + 25}),
        "mbart50": ("fairseq", "sentencepiece.bpe.model", {"tokenizer_class": "MBart50TokenizerFast"}, fairseq, around([en], [], [2]), n + 54, {"<mask>": n + 53, "sl_SI": n + 52}),
        "camembert": ("fairseq", "sentencepiece.bpe.model", {"tokenizer_class": "CamembertTokenizer"}, camembert, around([5], [6, 6], [6]), n + 5, {"<mask>": n + 4, "<pad>": 1}),
        "pegasus": ("t5", "spiece.model", {"tokenizer_class": "PegasusTokenizer"}, lambda text: [i + 103 for i in models["t5"].encode(text)], around([], [], [1]), len(models["t5"]) + 103, {"<mask_1>": 2, "<mask_2>": 3, "<unk_102>": 104}),
        "t5": ("t5", "spiece.model", {"tokenizer_class": "T5Tokenizer", "extra_ids": 100}, raw("t5"), around([], [1], [1]), len(models["t5"]) + 100, {"<extra_id_0>": len(models["t5"]) + 99}),
        "xlnet": ("xlnet", "spiece.model", {"tokenizer_class": "XLNetTokenizer"}, lambda text: xlnet_pieces(x, text, False), around([], [sep], [sep, cls]), len(x), {"<mask>": 6, "<pad>": 5}),
        "albert": ("albert", "spiece.model", {"tokenizer_class": "AlbertTokenizer"}, lambda text: xlnet_pieces(models["albert"], text, True), bert(models["albert"]), len(models["albert"]), {"[MASK]": 4}),
        "big_bird": ("bigbird", "spiece.model", {"tokenizer_class": "BigBirdTokenizer"}, raw("bigbird"), bert(models["bigbird"]), len(models["bigbird"]), {"[MASK]": 4}),
        "deberta_v2": ("deberta", "spm.model", {"tokenizer_class": "DebertaV2Tokenizer"}, raw("deberta"), bert(models["deberta"]), len(models["deberta"]) + 1, {"[MASK]": len(models["deberta"])}),
        "barthez": ("barthez", "sentencepiece.bpe.model", {"tokenizer_class": "BarthezTokenizer"}, raw("barthez"), around([0], [2, 2], [2]), len(models["barthez"]), {"<mask>": 4}),
    }


def expected():
    made = {}
    for name, (model, file, config, ids, (single, pair), size, special) in families().items():
        rows = [ids(line) for line in LINES]
        made[name] = {"model": model, "file": file, "config": config, "size": size, "special": special, "ids": rows,
                      "single": single(rows[0]), "pair": pair(rows[0], rows[1])}
    return {"lines": LINES, "families": made}


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    train()
    with open(os.path.join(FOLDER, "expected.json"), "w", encoding="utf-8") as out:
        json.dump(expected(), out, ensure_ascii=True)
        out.write("\n")
