#!/usr/bin/env python3
"""Writes tokenizers.json: small tokenizers of every kind with the ids, byte offsets and words of Hugging Face's tokenizers.

Needs tokenizers, transformers and sentencepiece; the file that it writes is read by tests/data/tokenizers/pipeline_test.cpp.
Special tokens are spelled otherwise in the reference, since text that spells one is text in Cloze.
"""
import base64
import io
import json
import pathlib
import tempfile

import sentencepiece
import transformers
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders as D
from tokenizers import models as M
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P
from tokenizers import processors as X
from tokenizers import trainers as T

LINES = [
    "the cat sat on the mat, and the dog didn't care",
    "The CAFE\u0301 na\u00efve \u00c5ngstr\u00f6m \u0130stanbul stra\u00dfe \u039f\u0394\u039f\u03a3",
    "  two  spaces, three   spaces and one at the end ",
    "\u4e2d\u6587 text \u65e5\u672c\u8a9e\u3068 \ud55c\uad6d\uc5b4 \uff21\uff22\uff23 \u2460 \ufb01ne \u00bd",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645 \u0915\u094d\u0937\u093f \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001F468\u200d\U0001F469\u200d\U0001F467 \U0001F1E9\U0001F1EA \U0001F44D\U0001F3FD ok",
    "a\tb\nc\r\nd\x00e\x07f\x7fg\x85h",
    "\ufeffmark \u200bzero\u200c\u200dwidth\u00a0no\u3000wide\u2028line",
    "1,234.50 and 9, 2024-01-02 v1.2.3 $5<6>=7^`|~ \u2018q\u2019 \u2014",
    "word" * 30 + " x",
    "e\u0301\u0323 \u0323\u0301e \u1e9b\u0323 \u0301",
    "<s> [MASK] <unk> </s> newtok NewTok newtokx \u2581a \u0120b ##c d</w>",
    "", " ", "\n", "\x00", "\u2581", "\u0301", "it's I'LL we've ''s'", "\u0627\u064b\u0651 \uac00\u1100\u1161\u11a8",
]
TEXTS = LINES + ["the cat and the dog and the mat", "two cats sat on two mats and the dogs care for cats", "one word or two words, 1 2 3 4 5"] * 3
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "<mask>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = ["<0x%02X>" % byte for byte in range(256)]


def charsmap():
    """A table of a few rules, compiled by SentencePiece."""
    rules = {"\u00c5": "A", "\uff21": "A", "\uff22": "B", "\ufb01": "fi", "\u00bd": "1\u20442", "\t": " ", "\n": " ", "\u3000": " ", "\u200b": "", "e\u0301": "\u00e9", "\u2460": "1"}
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rules.tsv"
        table.write_text("".join(" ".join("%X" % ord(c) for c in old) + "\t" + " ".join("%X" % ord(c) for c in new) + "\n" for old, new in rules.items()))
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(t for t in TEXTS if t.strip() and "\x00" not in t), model_writer=model, vocab_size=300,
                                                 hard_vocab_limit=False, normalization_rule_tsv=str(table), minloglevel=2)
    made = proto.ModelProto()
    made.ParseFromString(model.getvalue())
    return base64.b64encode(made.normalizer_spec.precompiled_charsmap).decode()


def trained(model, trainer, pre=None, normalizer=None, decoder=None, change=None):
    tokenizer = Tokenizer(model)
    if normalizer: tokenizer.normalizer = normalizer
    if pre: tokenizer.pre_tokenizer = pre
    if decoder: tokenizer.decoder = decoder
    tokenizer.train_from_iterator([t for t in TEXTS if t], trainer)
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = [t for t in made["added_tokens"] if not t["content"].startswith("<0x")]
    if change: change(made)
    return made


def bpe(size=160, special=SPECIAL, **options): return T.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **options)


def kinds():
    wp = lambda: T.WordPieceTrainer(vocab_size=170, special_tokens=BERT, show_progress=False)
    unknown = dict(unk_token="[UNK]")
    for name, rules in {"bert": (True, True, None, True), "bert cased": (True, True, None, False), "bert accents": (True, False, False, True), "bert stripped": (True, True, True, False),
                        "bert unclean": (False, True, None, True)}.items():
        yield name, trained(M.WordPiece(**unknown), wp(), P.BertPreTokenizer(), N.BertNormalizer(*rules), D.WordPiece())
    def add(made): made["added_tokens"] += [dict(id=len(made["model"]["vocab"]) + i, content=c, single_word=s, lstrip=l, rstrip=r, normalized=n, special=False)
                                            for i, (c, s, l, r, n) in enumerate([("NewTok", 0, 0, 0, 1), ("newtok", 1, 1, 1, 0), ("cat sat", 0, 0, 1, 1)])]
    def boolean(made):
        add(made)
        for token in made["added_tokens"]: token.update({k: bool(token[k]) for k in ("single_word", "lstrip", "rstrip", "normalized")})
    yield "added tokens", trained(M.WordPiece(**unknown), wp(), P.BertPreTokenizer(), N.BertNormalizer(), D.WordPiece(), boolean)
    yield "wordpiece of other steps", trained(M.WordPiece(max_input_chars_per_word=20, **unknown), wp(), P.Sequence([P.WhitespaceSplit(), P.Punctuation(), P.Digits(True)]),
                                              N.Sequence([N.NFKD(), N.Lowercase(), N.StripAccents(), N.Strip()]), D.WordPiece(cleanup=False))
    yield "wordlevel", trained(M.WordLevel(unk_token="<unk>"), T.WordLevelTrainer(vocab_size=80, special_tokens=SPECIAL, show_progress=False), P.Whitespace(), N.NFKC())
    yield "delimiter", trained(M.WordLevel(unk_token="<unk>"), T.WordLevelTrainer(vocab_size=60, special_tokens=SPECIAL, show_progress=False), P.CharDelimiterSplit("e"))
    yield "whitespace bpe", trained(M.BPE(unk_token="<unk>"), bpe(limit_alphabet=60), P.Whitespace())
    yield "suffix bpe", trained(M.BPE(unk_token="<unk>", fuse_unk=True, end_of_word_suffix="</w>"), bpe(limit_alphabet=60, end_of_word_suffix="</w>"), P.BertPreTokenizer(),
                                N.BertNormalizer(), D.BPEDecoder())
    yield "prefix bpe", trained(M.BPE(unk_token="<unk>", continuing_subword_prefix="@@"), bpe(limit_alphabet=40, continuing_subword_prefix="@@"), P.WhitespaceSplit())
    yield "characters", trained(M.BPE(), bpe(), P.Split(Regex(""), "isolated"))
    chain = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    for scheme in ("always", "first", "never"):
        def whole(made): made["pre_tokenizer"]["split"] = scheme == "always"
        yield "metaspace bpe " + scheme, trained(M.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), bpe(420, SPECIAL + BYTES, limit_alphabet=50),
                                                 P.Metaspace(prepend_scheme=scheme), None, chain, whole)
    def llama(made):
        made["pre_tokenizer"] = None
        made["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    yield "prepended bpe", trained(M.BPE(unk_token="<unk>", fuse_unk=True), bpe(limit_alphabet=60), P.Metaspace(), None, chain, llama)
    level = dict(initial_alphabet=P.ByteLevel.alphabet())
    def after(name, value): return lambda made: made.update({name: json.loads(value)})
    roberta = '{"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": true, "add_prefix_space": %s}'
    yield "byte bpe", trained(M.BPE(), bpe(340, **level), P.ByteLevel(add_prefix_space=False), None, D.ByteLevel(), after("post_processor", roberta % "false"))
    yield "byte bpe with a space", trained(M.BPE(), bpe(340, **level), P.ByteLevel(add_prefix_space=True), None, D.ByteLevel(), after("post_processor", roberta % "true"))
    yield "byte bpe of some bytes", trained(M.BPE(unk_token="<unk>"), bpe(140, limit_alphabet=60), P.ByteLevel(add_prefix_space=False), None, D.ByteLevel())
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    yield "split bpe", trained(M.BPE(ignore_merges=True), bpe(320, **level), P.Sequence([P.Split(Regex(pattern), "isolated"), P.ByteLevel(False, use_regex=False)]), N.NFC(), D.ByteLevel())
    yield "byte normaliser", trained(M.BPE(), bpe(320, **level), P.Split(Regex(r"\s+|\w+|[^\w\s]+"), "merged_with_previous"), N.ByteLevel(), D.ByteLevel())
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield "split " + behavior, trained(M.BPE(unk_token="<unk>"), bpe(90, limit_alphabet=50), P.Sequence([P.Split(Regex(r"[\s,.]"), behavior), P.Split("e", behavior, True), P.Digits(False)]))
    unigram = lambda special=SPECIAL: T.UnigramTrainer(vocab_size=700, special_tokens=special, unk_token="<unk>", show_progress=False)
    def precompiled(made):
        steps = [{"type": "Precompiled", "precompiled_charsmap": charsmap()}, {"type": "Strip", "strip_left": False, "strip_right": True}]
        made["normalizer"] = {"type": "Sequence", "normalizers": steps + [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]}
    def small(made):   # without rare pieces, so that characters are unknown
        made["model"]["vocab"] = [p for i, p in enumerate(made["model"]["vocab"]) if i < 5 or len(p[0]) != 1 or p[0] < "\x7f" or p[0] == "\u2581" or p[0].startswith("<0x")]
    def both(*changes): return lambda made: [change(made) for change in changes]
    yield "unigram", trained(M.Unigram(), unigram(), P.Metaspace(), None, D.Metaspace(), both(small, precompiled))
    def fallback(made): made["model"]["byte_fallback"] = True
    yield "unigram of bytes", trained(M.Unigram(), unigram(SPECIAL + BYTES), P.Metaspace(prepend_scheme="first"), N.Sequence([N.Nmt(), N.NFKC()]), D.Metaspace(), both(small, fallback))
    def fixed(made): made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [made["pre_tokenizer"], {"type": "FixedLength", "length": 4}, {"type": "Punctuation", "behavior": "MergedWithPrevious"}]}
    yield "fixed unigram", trained(M.Unigram(), unigram(), P.Metaspace(), N.NFD(), D.Metaspace(), both(small, fixed))


def hidden(made):
    """The same tokenizer with special tokens that no text spells."""
    made = json.loads(json.dumps(made))
    other = {}
    for i, token in enumerate(made["added_tokens"]):
        if token["special"]: other[token["content"]] = token["content"] = chr(0xF0000 + i)
    model = made["model"]
    if isinstance(model["vocab"], dict): model["vocab"] = {other.get(k, k): v for k, v in model["vocab"].items()}
    else: model["vocab"] = [[other.get(k, k), v] for k, v in model["vocab"]]
    if model.get("unk_token"): model["unk_token"] = other.get(model["unk_token"], model["unk_token"])
    prefix = model.get("continuing_subword_prefix") or ""
    if "merges" in model: model["merges"] = [m for m in model["merges"] if not {m[0], m[1], m[0] + m[1][len(prefix):]} & set(other)]
    post = made.get("post_processor")
    for end in ("sep", "cls") if post else (): post[end][0] = other[post[end][0]]
    tokenizer = Tokenizer.from_str(json.dumps(made))
    tokenizer.encode_special_tokens = True
    return tokenizer


def expected(tokenizer, line):
    found = tokenizer.encode(line, add_special_tokens=False)
    at = [0]
    for character in line: at.append(at[-1] + len(character.encode()))
    return found.ids, [at[offset] for pair in found.offsets for offset in pair]


def numbered(words):
    """Words from 0 without gaps."""
    return [sum(a != b for a, b in zip(words[:i], words[1:i + 1])) for i in range(len(words))]


def splits(step):
    """A pre-tokenizer makes words of a text; without one transformers' word_ids are all 0."""
    if not step: return False
    if step["type"] == "Sequence": return any(map(splits, step["pretokenizers"]))
    return step.get("split", True) if step["type"] == "Metaspace" else step.get("use_regex", True)


def words_of(tokenizer, made):
    if not splits(made["pre_tokenizer"]): return {}
    return {"words": [numbered(tokenizer.encode(line, add_special_tokens=False).word_ids) for line in LINES]}


def folders():
    """Vocabularies with a tokenizer_config.json next to them, and the ids of transformers."""
    words = trained(M.WordPiece(unk_token="[UNK]"), T.WordPieceTrainer(vocab_size=170, special_tokens=BERT, show_progress=False), P.BertPreTokenizer(), N.BertNormalizer(lowercase=False))
    vocabulary = sorted(words["model"]["vocab"], key=words["model"]["vocab"].get)
    for options in ({}, {"do_lower_case": False}, {"strip_accents": False}, {"do_lower_case": False, "strip_accents": True}, {"tokenize_chinese_chars": False},
                    {"do_basic_tokenize": False}, {"max_input_chars_per_word": 5}, {"strip_accents": None, "do_lower_case": True}):
        yield "BertTokenizer", options, {"vocab.txt": "\n".join(vocabulary) + "\n"}
    level = trained(M.BPE(), bpe(340, ["<|endoftext|>"], initial_alphabet=P.ByteLevel.alphabet()), P.ByteLevel(add_prefix_space=False))
    merges = "#version: 0.2\n" + "\n".join(" ".join(m) for m in level["model"]["merges"]) + "\n"
    for options in ({}, {"add_prefix_space": True}):
        yield "GPT2Tokenizer", options, {"vocab.json": json.dumps(level["model"]["vocab"]), "merges.txt": merges}


def main():
    lines = [line for line in LINES if "<s>" not in line]   # transformers finds special tokens in a text
    cases = []
    for name, made in kinds():
        reference = hidden(made)
        found = [expected(reference, line) for line in LINES]
        cases.append({"name": name, "tokenizer": made, "ids": [f[0] for f in found], "places": [f[1] for f in found],
                      **words_of(reference, made)})
    folder_cases = []
    for cls, options, files in folders():
        with tempfile.TemporaryDirectory() as folder:
            config = json.dumps({"tokenizer_class": cls, **options})
            for name, content in {**files, "tokenizer_config.json": config}.items(): (pathlib.Path(folder) / name).write_text(content, encoding="utf-8")
            tokenizer = getattr(transformers, cls).from_pretrained(folder)
            folder_cases.append({"name": cls + " " + json.dumps(options), "files": {**files, "tokenizer_config.json": config},
                           "ids": [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines],
                           "words": [numbered(tokenizer(line, add_special_tokens=False).word_ids()) for line in lines]})
    out = pathlib.Path(__file__).with_name("tokenizers.json")
    out.write_text(json.dumps({"lines": LINES, "cases": cases, "plain_lines": lines, "folders": folder_cases}, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(out, out.stat().st_size, "bytes,", len(cases), "kinds,", len(folder_cases), "folders")


if __name__ == "__main__":
    main()
