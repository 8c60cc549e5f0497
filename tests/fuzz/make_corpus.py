#!/usr/bin/env python3
"""Makes the seeds in tests/fuzz/corpus, a folder for each driver. Run in the repository: python3 tests/fuzz/make_corpus.py"""
import gzip
import json
import lzma
import pickle
import struct
from pathlib import Path

corpus = Path(__file__).parent / "corpus"


def seed(target, name, content):
    path = corpus / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def dump(value):
    return json.dumps(value, ensure_ascii=False)


VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "'", ",", "mat", "1", "##2", "\u4e2d"]


def added(at, text):
    return dict(id=at, content=text, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)


def pipeline(model, **parts):
    whole = dict(version="1.0", truncation=None, padding=None, added_tokens=[added(0, "[PAD]"), added(4, "[MASK]")], normalizer=None,
                 pre_tokenizer=None, post_processor=None, decoder=None)
    return dump({**whole, **parts, "model": model})


def configs():
    seed("config", "good-bert.yaml", "model:\n  kind: bert\n  hidden_size: 64\n  num_attention_heads: 4\nobjectives:\n  - kind: mlm\n    mlm_probability: 0.2\n"
         "  - {kind: nsp, weight: 0.5}\ndata: {tokens: tokens, max_seq_length: 64}\ntrain:\n  batch_size: 8\n  budget: {steps: 10}\n")
    seed("config", "good-gpt2.yaml", "model: {kind: gpt2, hidden_act: gelu_new}\nobjectives: [{kind: clm}]\noptimizer:\n  learning_rate: 2e-3\nschedule: {warmup: 0.1}\n")
    seed("config", "bad-indent.yaml", "model:\n  kind: bert\n hidden_size: 3\n")
    seed("config", "bad-alias.yaml", "model: &a {kind: *a}\n")
    seed("override", "good-value", "train.seed=7")
    seed("override", "good-list", "objectives=[{kind: mlm, mlm_probability: 0.3}]")
    seed("override", "bad-key", "train.sede=7")
    seed("study", "good.yaml", "study: rates\nbase: base.yaml\nset: {train.batch_size: 4}\nbaseline: low\narms:\n  low: {objectives.0.mlm_probability: 0.15}\n"
         "  high: {from: low, objectives.0.mlm_probability: 0.4}\nseeds: [1, 2]\nbudget: {steps: 10}\nmetric: {objective: mlm, better_by: 0.01}\n")
    seed("study", "good-sweep.yaml", "study: sizes\nbase: base.yaml\nsweep:\n  model.hidden_size: [32, 64]\nseeds: 2\nbudget: {tokens: 20k}\n")
    seed("study", "bad.yaml", "study: [rates\n")


def tokenizers():
    words = {word: i for i, word in enumerate(VOCAB)}
    seed("tokenizer_json", "good-wordpiece", pipeline(
        dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100, vocab=words),
        normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
        pre_tokenizer=dict(type="BertPreTokenizer"), decoder=dict(type="WordPiece", prefix="##", cleanup=True)))
    seed("tokenizer_json", "good-unigram", pipeline(
        dict(type="Unigram", unk_id=1, byte_fallback=False, vocab=[[word, -float(i)] for i, word in enumerate(VOCAB)] + [["\u2581the", -2.5], ["\u2581", -3.0]]),
        normalizer=dict(type="Sequence", normalizers=[dict(type="NFKC"), dict(type="Replace", pattern=dict(Regex=" {2,}"), content=" ")]),
        pre_tokenizer=dict(type="Metaspace", replacement="\u2581", prepend_scheme="always", split=True),
        decoder=dict(type="Metaspace", replacement="\u2581", prepend_scheme="always", split=True)))
    seed("tokenizer_json", "good-bpe", pipeline(
        dict(type="BPE", dropout=None, unk_token="[UNK]", continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False, byte_fallback=False,
             ignore_merges=False, vocab={**words, "t": 14, "h": 15, "e": 16, "th": 17}, merges=[["t", "h"], ["th", "e"]]),
        pre_tokenizer=dict(type="Split", pattern=dict(Regex="\\s+|\\w+"), behavior="Isolated", invert=False)))
    seed("tokenizer_json", "bad-type", pipeline(dict(type="WordPiece", vocab=[1, 2])))
    seed("tokenizer_facts", "good-empty", "{}")
    seed("tokenizer_facts", "seed-config", dump(dict(
        tokenizer_class="BertTokenizer", do_lower_case=True, strip_accents=None, tokenize_chinese_chars=True, model_max_length=512, mask_token="[MASK]",
        pad_token=dict(content="[PAD]", lstrip=False), added_tokens_decoder={"4": added(4, "[MASK]")}, model_type="bert")))
    seed("tokenizer_facts", "seed-added", dump({"<new>": 10, "<other>": 11}))
    seed("vocab_txt", "good-bert", "\n".join(VOCAB) + "\n")
    seed("vocab_txt", "bad-twice", "[UNK]\nthe\nthe\n")
    letters = {letter: i for i, letter in enumerate("the cat's")}
    table = {chr(c) if 33 <= c < 127 else chr(256 + c): i for i, c in enumerate(range(128))}
    seed("byte_bpe", "seed-small", dump({**table, "th": 128, "the": 129}) + "\n\n#version: 0.2\nt h\nth e\n")
    seed("byte_bpe", "bad-merges", dump(letters) + "\n\nt h h\n")


def texts():
    seed("text", "seed-lines", "One line here.\nAnother, \u4e2d\u6587.\n\nA new document\tand a tab.\r\n")
    seed("text", "seed-jsonl", '{"text": "One. Two.", "source": "a", "target": "b"}\n{"text": ["x"], "source": "c", "target": ""}\n')
    seed("text", "seed-json-list", '[ {"text": "One, [two].", "id": 1},\n {"text": "Said \\\\\\"so\\\\\\" }"} ]\n')
    seed("text", "seed-wiki", '<doc id="1" url="" title="A">\nA\n\nThe first text.\n</doc>\n<doc id="2">\nB\n</doc>\n')
    seed("text", "seed-pairs", "source\ttarget\na cat\teine Katze\na dog\tein Hund\n")
    seed("gz", "good", gzip.compress(b"One line here.\n" * 20, mtime=0))
    seed("gz", "bad-cut", gzip.compress(b"One line here.\n" * 20, mtime=0)[:-9])
    seed("xz", "good", lzma.compress(b"One line here.\n" * 20))
    seed("xz", "bad-cut", lzma.compress(b"One line here.\n" * 20)[:-13])


def stores():
    ids, sentences, documents = [5, 6, 5, 6, 6, 5], [0, 2, 4, 6], [0, 1, 3]
    header = b"CLZTOK01" + struct.pack("<IIQQQQ", 2, 0, len(documents) - 1, len(sentences) - 1, len(ids), 0)
    body = struct.pack("<6H", *ids).ljust(16, b"\0") + struct.pack("<4I", *sentences) + struct.pack("<3I", *documents)
    seed("shard", "good", header + body)
    seed("shard", "bad-offsets", header + body[:16] + struct.pack("<4I", 0, 5, 4, 6) + body[32:])
    shard = dict(file="train-00000.tokens", bytes=92, documents=2, sentences=3, tokens=6, xxh3=12345678901234567890, source_bytes=dict(file="a", xxh3=1))
    seed("manifest", "good", dump(dict(format="cloze-tokens", version=1, tokenizer=dict(kind="wordpiece", size=7, fingerprint="0123456789abcdef"),
                                       counts=[0, 1, 2], made_from={"inputs": []}, report={"words": 9}, splits=dict(train=[shard], valid=[]), fingerprint="")))
    seed("manifest", "bad-splits", dump(dict(format="cloze-tokens", version=1, tokenizer=dict(kind="wordpiece", size=7, fingerprint=""), splits=[1])))


def runs():
    rows = [dict(step=step, tokens=step * 64, predicted_tokens=step * 9, flops=1e9 * step, epochs=0.1, mlm=dict(loss=7.0 - step / 10, count=9),
                 time=dict(seconds=0.5 * step, budget_share=step / 10)) for step in range(1, 5)]
    rows[-1].update(held_out_loss=6.5, held_out=dict(mlm_loss=6.5, mlm_baseline_loss=7.0))
    metrics = "".join(dump(row) + "\n" for row in rows)
    for target in ("curve", "plot"):
        seed(target, "good", metrics)
        seed(target, "good-cut", metrics[:-40])
    seed("table", "good.csv", 'size,tokens,loss,note\n1e6,2e7,4.1,"a, b"\n2e6,2e7,3.9,\n')
    seed("table", "bad-cell.csv", "size,tokens,loss\n1e6,many,4.1\n")
    seed("held_out", "good", dump(dict(measured="mlm, tokens 0123", step=4, losses=dict(mlm=dict(sum=[1.5, None], count=[2, 3], bytes=[9, 9])), xxh3="")))
    seed("held_out", "bad-lengths", dump(dict(losses=dict(mlm=dict(sum=[1.5], count=[2, 3])), xxh3="")))
    seed("record", "good", dump(dict(fingerprint="0123", version="0.1.0", done=True, message="", kept="")))
    seed("record", "bad-list", "[1]")
    state = dict(step=4, sequences=32, tokens=256, predicted_tokens=36, flops=1e9, seconds=2.0, best_loss=6.5, best_step=4, yardstick="",
                 evaluations_without_gain=0, evaluated_at=4, metrics_bytes=600, row_rules=2, optimizer="adamw", averages_from=0)
    seed("state", "seed", dump(state))
    seed("state", "bad-type", dump({**state, "step": "four"}))
    seed("checkpoint", "seed", dump(dict(format="cloze-checkpoint", version=1, files={"state.json": dict(bytes=3, xxh3="0123456789abcdef")})))
    seed("checkpoint", "bad-list", dump(dict(files=[1])))


def weights():
    def safetensors(header, data):
        text = dump(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    entry = dict(dtype="F32", shape=[2, 2], data_offsets=[0, 16])
    seed("safetensors", "good", safetensors({"__metadata__": {"format": "pt"}, "a": entry, "b": dict(dtype="I64", shape=[1], data_offsets=[16, 24])}, bytes(24)))
    seed("safetensors", "bad-hole", safetensors({"a": dict(entry, data_offsets=[4, 20])}, bytes(20)))
    storage = b"ctorch\nFloatStorage\n"
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage" + storage + b"X\x01\0\0\0" + b"0X\x03\0\0\0cpuK\x10tQK\0K\x04K\x02\x86K\x02K\x01\x86\x89"
              b"ccollections\nOrderedDict\n)RtR")
    seed("pickle", "good", b"\x80\x02}q\x00(X\x01\0\0\0a" + tensor + b"u.")
    seed("pickle", "bad-plain", pickle.dumps({"a": [1, 2.5, None, "x", b"y", 1 << 70]}, protocol=4))
    seed("huggingface_config", "good-gpt2", dump(dict(model_type="gpt2", n_embd=32, n_layer=2, n_head=2, n_positions=64, vocab_size=99)))
    seed("huggingface_config", "bad-type", dump(dict(model_type="bert", hidden_size="wide")))


def suites():
    pair = dump(dict(UID="agreement", pairID="0", field="syntax", linguistics_term="number", sentence_good="The owl sleeps.",
                     sentence_bad="The owl sleep."))
    seed("suite_lines", "good-pairs", pair + "\n" + pair.replace('"0"', '"1"') + "\n")
    seed("suite_lines", "good-completions", dump(dict(context="The sky is", completions=["blue", "green"], answer=0)) + "\n")
    seed("suite_lines", "good-facts", dump(dict(predicate_id="R", sub_label="owl", obj_label="bird")) + "\n")
    seed("suite_lines", "good-judged", dump(dict(sentences="a wugity\ta wugness", ratio=0.75)) + "\n")
    seed("suite_lines", "bad-cut", pair + "\n" + pair[:50])
    seed("suite_lines", "bad-twice", pair + "\n" + pair + "\n")
    columns = "item,word,prev_item,prev_word,prev_length,length,context_length,Subtlex_log10,RTfirstfix,RTfirstpass,RTgopast,RTrightbound,"
    reading = columns + "self_paced_reading_time\nthe,owl,,,,3,1,2.5,200,210,NA,230,300\nthe owl,sleeps,the,owl,3,6,2,3.5,220,230,240,250,310\n"
    seed("suite_table", "good-reading", reading)
    seed("suite_table", "bad-reading-cut", reading[:-60])
    seed("suite_table", "good-ages", "word,16,17,18,19\nowl,0.1,0.3,0.6,0.9\n\"cup, big\",NA,0.2,0.2,0.3\n")
    seed("suite_table", "good-words", dump(dict(owl=[dict(context="the old")], cup=[dict(context="a"), dict(context="my")])))
    seed("suite_table", "good-similarity", "cup\tmug\t9.5\ncup\ttree\t1\nred\tblue\t4\nsun\tmoon\t5\n")
    seed("suite_table", "good-analogies", ": capitals\nparis france rome italy\n")
    seed("python_json", "good", '{"a": [1, 2.5, -0.0, 1e-07, NaN, -Infinity, "\\u00e9\\ud83e\\udd89\\n"], "b": {"c": [], "d": {}, "e": null}, "f": true}')
    seed("python_json", "bad-half-pair", '["\\ud83e"]')
    seed("python_json", "bad-cut", '{"a": [1, {"b": "x')


def tasks():
    seed("task_file", "good-pairs.yaml", "task: a\nkind: classification\ndata: {train: a.tsv, test: b.tsv, text: \"{x}: {y}\", second: z, label: -1}\n"
         "labels: {\"0\": off, \"1\": on}\nmetric: [f1, accuracy]\ncut: head_tail\nhead_tail: 64\nclass_weights: [1, 2.5]\n")
    seed("task_file", "good-spans.yaml", "task: b\nkind: spans\ndata: {train: a.json, valid: test, test: b.json}\nstride: 64\nmax_answer: 8\n")
    seed("task_file", "bad-cut.yaml", "task: c\nkind: tagging\ndata: {train: a.conll, test: b.conll, scheme: bio}\ncut: first\n")
    seed("task_file", "bad-template.yaml", "task: d\nkind: regression\ndata: {test: b.tsv, text: \"{x\", label: y}\nscale: [5, 0]\n")
    seed("task_data", "good-tsv", "a fine day\tgood\nrain \"again\"\tbad\nsun\tgood\n")
    seed("task_data", "good-csv", "text,label\n\"one, or\ntwo\",a\n\"the \"\"third\"\"\",b\n")
    nested = lambda n: dict(c=n, a=dict(b=[dict(text=f"x{n}", label=True), dict(text=f"y{n}", label=False)]))
    seed("task_data", "good-nested", "".join(dump(nested(n)) + "\n" for n in range(12)))   # of which a tenth is a part
    seed("task_data", "good-trec", "NUM:dist How far ?\nHUM:ind Who ?\n")
    seed("task_data", "good-lists", dump(dict(text="p", labels=["u", "v"], label=1)) + "\n" + dump(dict(text="q", labels=["v", "w"], label=0)) + "\n")
    seed("task_data", "good-json-list", json.dumps([dict(text="p, [q]", labels=["u"]), dict(text='r "s" }', labels=["v", "u"])], indent=1))
    seed("task_data", "bad-json-list-after", '[{"text": "p", "labels": ["u"]}, {"text": "q", "labels": ["v"]}], {}')
    seed("task_data", "bad-json-list-cut", '[{"text": "p", "labels": ["u"]}, {"text": "q", "labels": ["v"]},')
    seed("task_data", "good-numbers", "text\tlabel\na\t0.5\nb\t-1e3\n")
    seed("task_data", "good-conll", "-DOCSTART- O\n\nAnn S-per\nsings O\n\nNew B-loc\nYork E-loc\n")
    word = "\t{0}\t{0}\t{1}\t_\t_\t0\troot\t_\t_\n"
    seed("task_data", "good-conllu", "# text = a b\n1-2\tab" + "\t_" * 8 + "\n1" + word.format("a", "DET") + "2" + word.format("b", "NOUN") + "\n1" + word.format("c", "X"))
    seed("task_data", "good-words", dump(dict(words=["a", "b"], tags=["X", "Y"])) + "\n" + dump(dict(words=["c"], tags=["Y"])) + "\n")
    asked = [dict(id=str(i), question="Where?", is_impossible=False, answers=[dict(text="Rome", answer_start=8)]) for i in range(2)]
    seed("task_data", "good-squad", dump(dict(data=[dict(title="t%d" % i, paragraphs=[dict(context="\u00c9t\u00e9 in  Rome", qas=[asked[i]])])
                                                    for i in range(2)])))
    answer = dict(text="Who?", context="It is Ann.", answers=dict(text=["Ann"], answer_start=[6]))
    seed("task_data", "good-answers", dump(answer) + "\n" + dump({**answer, "text": "Who is it?", "answers": [dict(text="It", start=0)]}) + "\n")
    seed("task_data", "bad-place", dump(dict(data=[dict(paragraphs=[dict(context="a", qas=[{**asked[0], "answers": [dict(text="a", answer_start=2**40)]}])])])))
    seed("task_data", "bad-cells", "one\n")


for make in (configs, tokenizers, texts, stores, runs, weights, suites, tasks):
    make()
