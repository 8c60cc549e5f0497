"""What the benches time: shapes, as config and options of `cloze benchmark`, and the instruction sets that a process is held to."""
import os, subprocess
from pathlib import Path

root = Path(__file__).resolve().parents[2]
one = "--set train.accumulation=1"
rows = lambda n, length: f"{one} --set train.batch_size={n} --set data.max_seq_length={length}"
reads_512 = "--set model.max_position_embeddings=512"
cases = {
    "bert-mini": f"bert/mini.yaml {rows(32, 128)}", "bert-mini-512": f"bert/mini.yaml {rows(8, 512)}", "bert-base": f"bert/base.yaml {rows(8, 128)}",
    "bert-base-512": f"bert/base.yaml {rows(2, 512)}", "albert-base": f"albert/base.yaml {rows(8, 128)}", "albert-base-512": f"albert/base.yaml {rows(2, 512)}",
    "electra-small": f"electra/small.yaml {rows(32, 128)}", "electra-small-512": f"electra/small.yaml {rows(8, 512)}",
    "xlnet-mini": f"xlnet/mini.yaml {one}", "xlnet-mini-512": f"xlnet/mini.yaml {rows(4, 512)}", "t5-mini": f"t5/mini.yaml {one}", "t5-mini-512": f"t5/mini.yaml {rows(8, 512)}",
    "bart-mini": f"bart/mini.yaml {one}", "bart-mini-512": f"bart/mini.yaml {rows(8, 512)} {reads_512}",
    "longformer-4096": f"longformer/long.yaml {one}", "performer-4096": f"performer/long.yaml {one}",
    "modernbert-quickstart": f"modernbert/quickstart.yaml {one}", "modernbert-quickstart-512": f"modernbert/quickstart.yaml {rows(2, 512)} {reads_512}",
    "gpt2-small": f"gpt2/small.yaml {rows(4, 256)}", "gpt2-small-512": f"gpt2/small.yaml {rows(2, 512)}",
}
limits = {  # what libraries call the instruction sets
    "portable": {}, "avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "avx512": {"MKL_ENABLE_INSTRUCTIONS": "AVX512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}, "avx512_bf16": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, "amx": {},
}


def isas_of(cloze):
    """The instruction sets of this processor but for `portable`; the program refuses others."""
    def has(isa):
        probe = subprocess.run([cloze, "describe", f"{root}/configs/bert/tiny.yaml"], env={**os.environ, "CLOZE_ISA": isa}, capture_output=True, text=True)
        return "no instruction set" not in probe.stderr
    return [isa for isa in limits if isa != "portable" and has(isa)]


def held_to(isa, best=None):
    """The words before a command that hold it to an instruction set, and its libraries too, unless the set is the `best` of the processor."""
    values = {"CLOZE_ISA": isa, **(limits[isa] if isa != best else {})}
    return "env " + " ".join(f"{key}={value}" for key, value in values.items())
