"""The shapes that fused.py and busy.py time: config and options of `cloze benchmark`."""
from pathlib import Path

root = Path(__file__).resolve().parents[2]
one = "--set train.accumulation=1"
rows = lambda n, length: f"{one} --set train.batch_size={n} --set data.max_seq_length={length}"
cases = {
    "bert-mini": f"bert/mini.yaml {rows(32, 128)}", "bert-mini-512": f"bert/mini.yaml {rows(8, 512)}", "bert-base": f"bert/base.yaml {rows(8, 128)}",
    "albert-base": f"albert/base.yaml {rows(8, 128)}", "electra-small": f"electra/small.yaml {rows(32, 128)}", "xlnet-mini": f"xlnet/mini.yaml {one}",
    "t5-mini": f"t5/mini.yaml {one}", "bart-mini": f"bart/mini.yaml {one}", "longformer-4096": f"longformer/long.yaml {one}",
    "performer-4096": f"performer/long.yaml {one}", "modernbert-quickstart": f"modernbert/quickstart.yaml {one}", "gpt2-small": f"gpt2/small.yaml {rows(4, 256)}",
}
