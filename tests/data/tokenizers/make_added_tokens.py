#!/usr/bin/env python3
"""Writes added_tokens.json: added tokens of small tokenizers, and the ids of texts that contain them.

`folders` are vocabularies with added tokens next to them, whose ids transformers gives; `wholes` are files
tokenizer.json with added tokens, whose ids Hugging Face's tokenizers gives. Read by tests/data/tokenizers/added_tokens_test.cpp.
Needs transformers 5 and tokenizers. Run in the repository: python3 tests/data/tokenizers/make_added_tokens.py
"""
import json
import pathlib
import shutil
import tempfile

import transformers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parent
LINES = [
    "the cat sat on the mat", "the NewTok cat", "thenewtokcat NEWTOK", "newtok  cat", "a<x>b <x> c", "a <X> b",
    "NewTok", "<x><x>", " <x> ", "cat <w>, a<w>b <w>", "caf\u00e9 caf\u00c9 the", "\u4e2d\u6587 the \u4e2d", "", "cat  sat", "\u4e2d<z>\u4e2d <z> \u4e2d", "a <z>  b",
]
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat a b c ##a ##b ##c ##t new ##tok caf ##e \u4e2d \u6587 < > x , w".split()


def token(content, **options):
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=True, special=False)
    return {"content": content, **flags, **options}


def byte_level():
    """A vocabulary of the 256 bytes and a few merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("c", "a"), ("ca", "t"), ("\u0120", "cat")]
    pieces = ["<|endoftext|>", *alphabet, *(a + b for a, b in merges)]
    return {"vocab.json": json.dumps({piece: id for id, piece in enumerate(pieces)}),
            "merges.txt": "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)}, len(pieces)


def folders():
    words = {"vocab.txt": "\n".join(WORDS) + "\n"}
    level, pieces = byte_level()
    plain = lambda first: json.dumps({"NewTok": first, "<x>": first + 1})
    told = lambda first: {"added_tokens_decoder": {
        str(first): token("NewTok"), str(first + 1): token("<x>", normalized=False, lstrip=True, rstrip=True),
        str(first + 2): token("<w>", single_word=True), str(first + 3): token("caf\u00e9"),
        str(first + 4): token("<s>", special=True, normalized=False), str(first + 5): token("<z>", lstrip=True, rstrip=True)}}
    n = len(WORDS)
    yield "BertTokenizer", {}, {**words, "added_tokens.json": plain(n)}
    yield "BertTokenizer", {"do_lower_case": False}, {**words, "added_tokens.json": plain(n)}
    yield "BertTokenizer", told(n), words
    yield "BertTokenizer", {"do_lower_case": False, **told(n)}, words
    yield "GPT2Tokenizer", {}, {**level, "added_tokens.json": plain(pieces)}
    yield "GPT2Tokenizer", {"add_prefix_space": True}, {**level, "added_tokens.json": plain(pieces)}
    yield "GPT2Tokenizer", told(pieces), level
    yield "T5Tokenizer", {"extra_ids": 0}, {"spiece.model": "t5", "added_tokens.json": "first"}
    yield "T5Tokenizer", {}, {"spiece.model": "t5", "added_tokens.json": "first"}


def wholes():
    """The model never outputs added tokens, whatever a word contains."""
    pieces = "[UNK] a b c d x y ##a ##b ##x ##y aa".split()
    word_pieces = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    word_pieces.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    word_pieces.add_tokens([AddedToken("##xy", single_word=True), AddedToken("ab", single_word=True)])
    yield "wordpiece", word_pieces, ["axy", "ab", "aab ab", "ab a", "aabb", "##xy a##xy"]
    level = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    level.pre_tokenizer = pre_tokenizers.Split(Regex("[ _-]"), "isolated")
    level.add_tokens([AddedToken("ab", single_word=True)])
    yield "wordlevel", level, ["ab", "a_ab", "ab a", "a-ab-b", "abab", "b_ab_a"]
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("\u2581", -1.0)], 0, False))
    unigram.add_tokens([AddedToken("z", single_word=True), AddedToken("zz", single_word=True)])
    yield "unigram", unigram, ["az", "aza", "z", "a z", "azza zz"]
    spaces = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2, "x": 3, " ": 4}, unk_token="[UNK]"))
    spaces.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s"), "isolated")
    for normalized in (False, True):
        tokenizer = Tokenizer.from_str(spaces.to_str())
        tokenizer.add_tokens([AddedToken("<a>", rstrip=True, normalized=normalized), AddedToken("\n", normalized=normalized),
                              AddedToken("  ", normalized=normalized), AddedToken(" x", normalized=normalized),
                              AddedToken("<b>", lstrip=True, normalized=normalized),
                              AddedToken("\t", lstrip=True, rstrip=True, normalized=normalized)])
        yield "spaces", tokenizer, ["<a>\n\nb", "<a> \n b", "<a>  x b", "<a>   <b>", "<a> x", "<a>\n<b>", "<a>", "a\t\t\tb",
                                    "a \t b", "\t \t b a", "<a> <a>  <b> <b>a", "a  \n  x <b>  b"]


def main():
    made = []
    for cls, config, files in folders():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = dict(files)
            if "spiece.model" in files:
                shutil.copy(HERE / "families" / (files["spiece.model"] + ".model"), folder / "spiece.model")
                first = len(getattr(transformers, cls).from_pretrained(folder, **config))
                files["added_tokens.json"] = json.dumps({"NewTok": first, "<x>": first + 1})
            files["tokenizer_config.json"] = json.dumps({"tokenizer_class": cls, **config})
            for name, content in files.items():
                if name != "spiece.model": (folder / name).write_text(content, encoding="utf-8")
            tokenizer = getattr(transformers, cls).from_pretrained(folder)
            lines = [line for line in LINES if cls != "T5Tokenizer" or line.isascii()]
            made.append({"class": cls, "files": files, "lines": lines,
                         "ids": [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines]})
    read = []
    for name, tokenizer, lines in wholes():
        found = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
        read.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "lines": lines,
                     "ids": [f.ids for f in found], "positions": [[at for pair in f.offsets for at in pair] for f in found]})
    out = HERE / "added_tokens.json"
    out.write_text(json.dumps({"folders": made, "wholes": read}, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(out, out.stat().st_size, "bytes,", len(made), "folders,", len(read), "files")


if __name__ == "__main__":
    main()
