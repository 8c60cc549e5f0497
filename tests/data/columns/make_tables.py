#!/usr/bin/env python3
"""Makes the tables beside it, with pyarrow 26: columns of every type that is read, and some that are not.   make_tables.py"""
import os

import pyarrow as pa
import pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sections = pa.list_(pa.struct([("heading", pa.string()), ("text", pa.string())]))
article = pa.struct([("title", pa.string()), ("sections", sections)])
table = pa.table({
    "id": pa.array([0, 1, 2, 3]),
    "text": pa.array(["One.\n\nTwo.", None, "Drei \u00fc.", ""]),
    "large": pa.array(["L0", "L1", "L2", "L3"], pa.large_string()),
    "list": pa.array([["a", "b"], [], None, ["c", None]], pa.list_(pa.string())),
    "word": pa.array(["w", "w", None, "v"]).dictionary_encode(),
    "article": pa.array([
        {"title": "T0", "sections": [{"heading": "h", "text": "S0"}, {"heading": "h", "text": "S1"}]},
        {"title": "T1", "sections": []},
        None,
        {"title": None, "sections": [{"heading": "h", "text": "S3"}]}], article),
    "key.with.dots": pa.array(["d0", "d1", "d2", "d3"]),
    "bytes": pa.array([b"x"] * 4, pa.binary())})
pq.write_table(table, "all.parquet", row_group_size=3, compression="zstd")
# As the library `datasets` writes them: a stream, in batches.
with pa.OSFile("all.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
    out.write_table(table, max_chunksize=3)
with pa.OSFile("file.arrow", "wb") as file, pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
    out.write_table(table)
# A byte that is not UTF-8 in the second row.
offsets, data = pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0])), pa.py_buffer(b"ab\xffc")
bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
pq.write_table(pa.table({"text": bad}), "invalid_utf8.parquet", compression="none")
# The second of three offsets is far behind the bytes.
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, pa.schema([("text", pa.string())])) as out:
    out.write_batch(pa.record_batch([pa.array(["a", "bcd", "ef"])], names=["text"]))
offsets = b"".join(n.to_bytes(4, "little") for n in (0, 1, 4, 6))
content = sink.getvalue().to_pybytes()
assert content.count(offsets) == 1
with open("wild_offset.arrow", "wb") as file:
    file.write(content.replace(offsets, offsets[:8] + (1 << 30).to_bytes(4, "little") + offsets[12:]))
