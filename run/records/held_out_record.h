#pragma once
// held_out.json of a run: its last held-out losses sequence by sequence, which statistics over runs resample.
//
//   {"step", "measured", "losses": {NAME: {"sum": [E], "count": [E], "bytes": [E], "document": [E]}},
//    "sources": [{"source", "documents"}], "xxh3", "seal"}
//
// `measured` describes objectives, rows, masks and tokens: losses of equal descriptions can be compared example by
// example. `bytes`, of the source text of the predicted tokens, is there for generative objectives, unless the tokens
// were prepared without them. `document`: the index of each example's text in the held-out split; runs of earlier
// versions lack it. `sources`: whose the documents are, in the order of these; of a text of one source it is left out.
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "data/store/shard.h"

namespace cloze {

/// The losses of one objective, example by example; NaN for what is not finite.
struct HeldOutExamples {
  std::vector<double> sum{}, count{};
  std::vector<uint64_t> bytes{}, document{};
};
template <class V>
void describe(V& v, HeldOutExamples& e) {
  v.numbers("sum", e.sum);
  v.numbers("count", e.count);
  v.unless("bytes", e.bytes, {});
  v.unless("document", e.document, {});
}

/// The file. One hash is over the losses, the other, which earlier versions did not write, over all else.
struct HeldOutRecord {
  int64_t step = 0;
  std::string measured{};
  std::map<std::string, HeldOutExamples> losses{};
  std::vector<SourceSpan> sources{};
  std::string xxh3{}, seal{};
};
template <class V>
void describe(V& v, HeldOutRecord& r) {
  v.or_else("step", r.step, 0);
  v.or_else("measured", r.measured, "");
  v("losses", r.losses);
  v.unless("sources", r.sources, {});
  v("xxh3", r.xxh3);
  v.or_else("seal", r.seal, "");
}

inline std::string seal_of(const HeldOutRecord& r) {
  const auto sources = r.sources.empty() ? "" : json_text(nlohmann::json(r.sources));
  return hash_hex(concat(r.step, " ", r.xxh3, " ", r.measured, sources));
}

}  // namespace cloze
