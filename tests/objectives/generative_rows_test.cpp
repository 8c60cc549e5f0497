#include <map>
#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "models/families/families.h"
#include "objectives/collator.h"
#include "objectives/generative_rows.h"
#include "objectives/kinds.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

DataConfig data(const TokenStore&, int64_t length, RowPacking packing = RowPacking::document) {
  DataConfig config;
  config.max_seq_length = length;
  config.packing = packing;
  config.short_seq_prob = 0;
  return config;
}

/// A model with the special ids of the store's tokenizer.
template <class Config>
Config model_of(const TokenStore& store, int64_t start) {
  Config model;
  const auto& special = store.tokenizer().special();
  model.pad_token_id = special.pad;
  model.eos_token_id = special.sep;
  if constexpr (std::derived_from<Config, EncoderDecoderConfig>) model.decoder_start_token_id = start;
  return model;
}

std::vector<int64_t> row_of(const Tensor& table, int64_t row, int64_t length) {
  const auto* at = table.data_ptr<int64_t>() + row * table.size(1);
  return {at, at + length};
}

/// The labels of each row of a batch.
std::vector<std::vector<int64_t>> labels_by_row(const Batch& batch, int64_t width, int64_t rows) {
  std::vector<std::vector<int64_t>> found(static_cast<size_t>(rows));
  for (int64_t i = 0; i < batch.positions.numel(); ++i)
    found[static_cast<size_t>(batch.positions.data_ptr<int64_t>()[i] / width)].push_back(
        batch.labels.data_ptr<int64_t>()[i]);
  return found;
}

/// The store of a tokenizer with sentinels after its vocabulary.
TokenStore store_with_sentinels(const TempDir& dir, int64_t sentinels) {
  tiny_store(dir);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.out = dir / "marked";
  options.format = TextFormat::lines;
  options.tokenizer = dir / "vocab.txt";
  options.sentinels = sentinels;
  options.threads = 1;
  prepare(options);
  return {options.out, "train"};
}

}  // namespace

TEST_CASE("the labels of a decoder-only model are the next tokens, end tokens included", "[objectives][generative]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto model = model_of<Gpt2Config>(store, 0);
  for (const auto packing : {RowPacking::document, RowPacking::full}) {
    const Collator collator(store, {ClmConfig{}}, data(store, 24, packing), Rng(1), "train", model);
    int64_t ends = 0;
    for (uint64_t first = 0; first < collator.size(); first += 4) {
      const auto batch = collator.batch(first, 4);
      const int64_t width = batch.input_ids.size(1);
      CHECK(width <= 24);
      CHECK_FALSE(batch.decoder_input_ids.defined());
      const auto labels = labels_by_row(batch, width, 4);
      for (int64_t row = 0; row < 4; ++row) {
        const auto& wanted = labels[static_cast<size_t>(row)];
        const auto read = row_of(batch.input_ids, row, static_cast<int64_t>(wanted.size()));
        REQUIRE_FALSE(wanted.empty());
        for (size_t t = 0; t + 1 < wanted.size(); ++t) CHECK(wanted[t] == read[t + 1]);
        ends += wanted.back() == store.tokenizer().special().sep;
      }
    }
    CHECK(ends > 0);
  }
}

TEST_CASE("span corruption replaces spans by sentinels, and source and target together give the text",
          "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 20);
  const auto& sentinels = store.tokenizer().sentinels();
  REQUIRE(sentinels.size() == 20);
  CHECK(sentinels[0] == sentinels[19] + 19);  // the first has the highest id
  CHECK(store.tokenizer().piece(sentinels[3]) == "<extra_id_3>");
  const auto model = model_of<T5Config>(store, 0);
  const auto settings = data(store, 32);
  const Collator collator(store, {SpanCorruptionConfig{}}, settings, Rng(1), "train", model);
  std::set<std::vector<int64_t>> documents;
  for (uint64_t d = 0; d < store.num_documents(); ++d) {
    std::vector<int64_t> ids(store.document_token(d + 1) - store.document_token(d));
    store.read(store.document_token(d), ids.size(), ids.data());
    documents.insert(ids);
  }
  for (uint64_t n = 0; n < 40; ++n) {
    const auto batch = collator.batch(n, 1);
    CHECK(batch.input_ids.size(1) <= 32);
    const auto source = row_of(batch.input_ids, 0, batch.input_ids.size(1)),
               target = labels_by_row(batch, batch.decoder_input_ids.size(1), 1)[0],
               read = row_of(batch.decoder_input_ids, 0, batch.decoder_input_ids.size(1));
    REQUIRE(source.back() == model.eos_token_id);
    REQUIRE(target.back() == model.eos_token_id);
    CHECK(read[0] == 0);
    CHECK(std::equal(read.begin() + 1, read.end(), target.begin()));  // shifted by one
    std::map<int64_t, std::vector<int64_t>> hidden;
    int64_t mark = -1;
    for (size_t i = 0; i + 1 < target.size(); ++i)
      if (contains(sentinels, target[i]))
        mark = target[i];
      else
        hidden[mark].push_back(target[i]);
    std::vector<int64_t> text;
    for (size_t i = 0; i + 1 < source.size(); ++i)
      if (const auto found = hidden.find(source[i]); found != hidden.end())
        text.insert(text.end(), found->second.begin(), found->second.end());
      else
        text.push_back(source[i]);
    const bool known = std::any_of(documents.begin(), documents.end(), [&](const auto& d) {
      return std::search(d.begin(), d.end(), text.begin(), text.end()) != d.end();
    });
    CHECK(known);
  }
}

TEST_CASE(
    "every encoder-decoder objective ends both sides with the end token, respects max_seq_length, and does not depend "
    "on "
    "earlier calls",
    "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 30);
  Objectives all;
  for (const auto& [kind, name, words] : choices(Corruption{})) {
    SpanCorruptionConfig c;
    c.corruption = kind;
    all.emplace_back(c);
  }
  DenoisingConfig deletion;
  deletion.mask_length = MaskLength::subword;
  deletion.replace_length = 0;
  deletion.rotate_prob = 1;
  deletion.insert_ratio = 0.1;
  all.emplace_back(DenoisingConfig{});
  all.emplace_back(deletion);
  all.emplace_back(GapSentencesConfig{});
  for (const auto& objective : all)
    for (const int64_t length : {4, 9, 40})
      for (const bool bart : {false, true}) {
        const auto model = bart ? ModelConfig(model_of<BartConfig>(store, store.tokenizer().special().sep))
                                : model_of<T5Config>(store, 0);
        INFO(kind_of(objective) << " " << length << " " << bart);
        const Collator collator(store, {objective}, data(store, length), Rng(1), "train", model);
        const auto batch = collator.batch(0, 16);
        CHECK(batch.input_ids.size(1) <= length);
        CHECK(batch.decoder_input_ids.size(1) <= length);
        const auto labels = labels_by_row(batch, batch.decoder_input_ids.size(1), 16);
        for (int64_t row = 0; row < 16; ++row) {
          REQUIRE_FALSE(labels[static_cast<size_t>(row)].empty());
          CHECK(labels[static_cast<size_t>(row)].back() == backbone_of(model).eos_token_id);
          if (bart) CHECK(labels[static_cast<size_t>(row)][0] == store.tokenizer().special().cls);
        }
        const auto alone = collator.batch(5, 1);
        const auto width = alone.input_ids.size(1);
        CHECK(at::equal(alone.input_ids[0], batch.input_ids[5].narrow(0, 0, width)));
      }
}

TEST_CASE("at high noise densities texts are shortened until their targets fit", "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 20);
  const auto model = model_of<T5Config>(store, store.tokenizer().special().pad);
  SpanCorruptionConfig c;
  c.noise_density = 0.8;
  c.mean_noise_span_length = 4;
  const auto batch = Collator(store, {c}, data(store, 32), Rng(1), "train", model).batch(0, 16);
  for (const auto& target : labels_by_row(batch, batch.decoder_input_ids.size(1), 16)) {
    CHECK(target.size() <= 32);
    CHECK(target.back() == store.tokenizer().special().sep);
  }
  CHECK(batch.decoder_input_ids.size(1) >= 31);
  CHECK(batch.input_ids.size(1) < 16);
}

TEST_CASE("a decoder-only model reads source and target concatenated within max_seq_length, with labels for the target",
          "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 30);
  const auto model = model_of<Gpt2Config>(store, 0);
  for (const auto kind : {Corruption::spans, Corruption::mass, Corruption::prefix_lm})
    for (const int64_t length : {4, 9, 40}) {
      INFO(kind << " " << length);
      SpanCorruptionConfig c;
      c.corruption = kind;
      const auto batch = Collator(store, {c}, data(store, length), Rng(1), "train", model).batch(0, 16);
      const int64_t width = batch.input_ids.size(1);
      CHECK(width <= length);
      const auto* at = batch.positions.data_ptr<int64_t>();
      for (int64_t i = 0; i + 1 < batch.positions.numel(); ++i) {
        if (at[i + 1] != at[i] + 1 || at[i + 1] / width != at[i] / width) continue;
        CHECK(batch.labels[i].item<int64_t>() ==
              batch.input_ids.flatten()[at[i] + 1].item<int64_t>());  // the next token
      }
      const auto labels = labels_by_row(batch, width, 16);
      for (const auto& row : labels) CHECK((row.empty() || row.back() == model.eos_token_id));
      CHECK_FALSE(batch.prefix.defined());
      auto whole = model;
      whole.prefix_lm = true;
      const auto marked = Collator(store, {c}, data(store, length), Rng(1), "train", whole).batch(0, 16);
      for (int64_t row = 0; row < 16; ++row) {  // the first label follows the prefix
        const auto first = at::nonzero(batch.positions.ge(row * width)).flatten();
        CHECK(marked.prefix[row].item<int64_t>() == at[first[0].item<int64_t>()] - row * width);
      }
    }
}

TEST_CASE("a decoder-only model's source and target mark every noise span with a sentinel",
          "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 40);
  const auto model = model_of<Gpt2Config>(store, 0);
  const auto& sentinels = store.tokenizer().sentinels();
  const auto marks = [&](std::vector<int64_t> ids) {
    std::erase_if(ids, [&](int64_t id) { return !contains(sentinels, id); });
    return ids;
  };
  for (const auto corruption : {Corruption::spans, Corruption::iid})
    for (const double density : {0.15, 0.5})
      for (const int64_t length : {9, 24, 63}) {
        SpanCorruptionConfig c;
        c.corruption = corruption;
        c.noise_density = density;
        const auto batch = Collator(store, {c}, data(store, length), Rng(1), "train", model).batch(0, 32);
        const int64_t width = batch.input_ids.size(1);
        CHECK(width <= length);
        CHECK(width > length / 2);
        const auto labels = labels_by_row(batch, width, 32);
        for (int64_t row = 0; row < 32; ++row) {
          INFO(corruption << " " << density << " " << length << " row " << row);
          const auto& target = labels[static_cast<size_t>(row)];
          const int64_t line = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width,
                        read = line + 1 - static_cast<int64_t>(target.size());
          const auto source = row_of(batch.input_ids, row, read);
          const auto noise_runs = static_cast<int64_t>(marks(source).size()),
                     kept_runs = static_cast<int64_t>(marks(target).size());
          CHECK(std::abs(noise_runs - kept_runs) <=
                (corruption == Corruption::iid
                     ? 1
                     : 0));  // the target marks the kept runs, with `iid` possibly one more or less
          if (corruption == Corruption::spans && length > 9) CHECK(noise_runs > 0);
          CHECK(source.back() == model.eos_token_id);
          CHECK(target.back() == model.eos_token_id);
        }
      }
}

TEST_CASE("gap sentences of a decoder-only model are whole sentences of one text, up to max_seq_length",
          "[objectives][generative]") {
  TempDir dir;
  const auto store = tiny_store(dir, 60);
  const auto& special = store.tokenizer().special();
  const auto model = model_of<Gpt2Config>(store, 0);
  std::vector<int64_t> whole(store.num_tokens());
  store.read(0, whole.size(), whole.data());
  std::set<std::ptrdiff_t> starts;
  for (uint64_t s = 0; s <= store.num_sentences(); ++s)
    starts.insert(static_cast<std::ptrdiff_t>(store.first_token(s)));
  GapSentencesConfig c;
  c.choose = SentenceChoice::lead,
  c.gap_sentences_ratio = 0.6;  // lead: the target and the kept sentences are the text in order
  int64_t used = 0;
  for (const int64_t length : {30, 64}) {
    const auto batch =
        Collator(store, {c}, data(store, length, RowPacking::doc_sentences), Rng(1), "train", model).batch(0, 32);
    CHECK(batch.input_ids.size(1) <= length);
    const auto labels = labels_by_row(batch, batch.input_ids.size(1), 32);
    for (int64_t row = 0; row < 32; ++row) {
      INFO(length << " row " << row);
      auto text = labels[static_cast<size_t>(row)];
      const int64_t line =
          batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : batch.input_ids.size(1);
      auto source = row_of(batch.input_ids, row, line + 1 - static_cast<int64_t>(text.size()));
      CHECK(text.back() == special.sep);
      CHECK(source.back() == special.sep);
      text.pop_back();
      source.pop_back();
      std::erase(source, special.mask);
      text.insert(text.end(), source.begin(), source.end());
      const auto found = std::search(whole.begin(), whole.end(), text.begin(), text.end());
      REQUIRE(found != whole.end());
      const auto first = found - whole.begin(), end = first + static_cast<std::ptrdiff_t>(text.size());
      CHECK(starts.count(first) == 1);
      CHECK(
          (starts.count(end) == 1 || *starts.upper_bound(first) > end));  // a sentence longer than the row is truncated
      used += static_cast<int64_t>(text.size());
    }
  }
  CHECK(used > 32 * (30 + 64) / 3);
}

TEST_CASE("a source that noise makes longer than its text still contains all of it", "[objectives][generative]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto& special = store.tokenizer().special();
  const bool decoder_only = GENERATE(false, true);
  const auto model =
      decoder_only ? ModelConfig(model_of<Gpt2Config>(store, 0)) : model_of<BartConfig>(store, special.sep);
  for (const double lambda : {0.1, 1.0, 3.5})
    for (const double insert : {0.0, 0.5}) {
      DenoisingConfig c;
      c.permute_sentences = 0;
      c.random_ratio = 0;
      c.insert_ratio = insert;
      c.poisson_lambda = lambda;
      c.mask_ratio = lambda == 3.5 ? 0 : 0.1;
      for (const int64_t length : {12, 60}) {
        const auto batch = Collator(store, {c}, data(store, length), Rng(1), "train", model).batch(0, 32);
        const auto& predicted = decoder_only ? batch.input_ids : batch.decoder_input_ids;
        CHECK(batch.input_ids.size(1) <= length);
        const auto labels = labels_by_row(batch, predicted.size(1), 32);
        for (int64_t row = 0; row < 32; ++row) {
          INFO(decoder_only << " lambda " << lambda << " insert " << insert << " length " << length << " row " << row);
          const auto& target = labels[static_cast<size_t>(row)];
          const int64_t line = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>()
                                                              : batch.input_ids.size(1);
          auto source =
              row_of(batch.input_ids, row, decoder_only ? line + 1 - static_cast<int64_t>(target.size()) : line);
          CHECK(source.back() == special.sep);
          std::erase(source, special.mask);
          size_t at = 0;  // the remaining tokens are in text order
          for (const auto id : source) {
            while (at < target.size() && target[at] != id) ++at;
            CHECK(at++ < target.size());
          }
          if (c.mask_ratio == 0) CHECK(source == target);
        }
      }
    }
}

TEST_CASE("in a decoder-only model text and corrupted text both fit, with their end tokens",
          "[objectives][generative]") {
  TempDir dir;
  const auto store = store_with_sentinels(dir, 30);
  const auto model = model_of<Gpt2Config>(store, 0);
  for (const auto kind : {Corruption::mass, Corruption::bert, Corruption::deshuffle})
    for (const int64_t length : {9, 40}) {
      SpanCorruptionConfig c;
      c.corruption = kind;
      const auto batch = Collator(store, {c}, data(store, length), Rng(1), "train", model).batch(0, 16);
      const int64_t width = batch.input_ids.size(1);
      CHECK(width <= length);
      const auto labels = labels_by_row(batch, width, 16);
      for (int64_t row = 0; row < 16; ++row) {
        INFO(kind << " " << length << " row " << row);
        const auto n = static_cast<int64_t>(labels[static_cast<size_t>(row)].size());
        CHECK(batch.input_ids[row][n - 1].item<int64_t>() ==
              model.eos_token_id);  // the source is as long as the target, and has its end token
        CHECK(batch.positions[at::nonzero(batch.positions.ge(row * width)).flatten()[0]].item<int64_t>() ==
              row * width + n - 1);
      }
    }
}

TEST_CASE("pairs are the same from two columns, JSON lines, or two files", "[objectives][generative]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(50));
  const auto stores = [&] {
    std::vector<TokenStore> found;
    PrepareOptions options;
    options.format = TextFormat::pairs;
    options.tokenizer = dir / "vocab.txt";
    options.held_out = 0;
    options.threads = 1;
    std::string columns, lines, source, target;
    for (int i = 0; i < 20; ++i) {
      const auto a = "w" + std::to_string(i) + "q w1q. w2q", b = "w" + std::to_string(49 - i) + "q";
      columns += a + "\t" + b + "\n";
      lines += "{\"x\": \"" + a + "\", \"y\": \"" + b + "\"}\n";
      source += a + "\n";
      target += b + "\n";
    }
    columns += "w1q\t\n";  // an empty target
    options.inputs = {dir.write("a.tsv", columns)};
    options.out = dir / "a";
    CHECK(prepare(options).incomplete_pairs == 1);
    found.emplace_back(options.out, "train");
    options.inputs = {dir.write("b.jsonl", lines)};
    options.field = "x,y";
    options.out = dir / "b";
    prepare(options);
    found.emplace_back(options.out, "train");
    options.field.reset();
    options.inputs = {dir.write("c.en", source)};
    options.targets = {dir.write("c.de", target)};
    options.out = dir / "c";
    prepare(options);
    found.emplace_back(options.out, "train");
    dir.write("d.de", target + "w1q\n");
    options.targets = {dir / "d.de"};
    options.out = dir / "d";
    CHECK_THROWS_WITH(prepare(options), Catch::Contains("has more lines than"));
    options.targets.clear();
    CHECK_THROWS_WITH(
        prepare(options),
        Catch::Contains(
            "no tab between source and target; write both in one line, or name the other file with --target"));
    return found;
  }();
  for (const auto& store : stores) {
    const auto model = model_of<VaswaniConfig>(store, store.tokenizer().special().cls);
    const Collator collator(store, {PairsConfig{}}, data(store, 16), Rng(1), "train", model);
    CHECK(collator.size() == 20);
    for (uint64_t n = 0; n < 20; ++n) {
      const auto batch = collator.batch(n, 1);
      const auto source = row_of(batch.input_ids, 0, batch.input_ids.size(1)),
                 target = labels_by_row(batch, batch.decoder_input_ids.size(1), 1)[0];
      const auto word = std::stoi(store.tokenizer().piece(source[0]).substr(1));
      REQUIRE(target.size() == 2);
      CHECK(store.tokenizer().piece(target[0]) == "w" + std::to_string(49 - word) + "q");
      CHECK(batch.decoder_input_ids[0][0].item<int64_t>() == store.tokenizer().special().cls);
    }
  }
}

TEST_CASE(
    "batching by length keeps the pairs of each step, groups similar lengths in a batch, and does not depend on "
    "earlier "
    "calls",
    "[objectives][generative]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(50));
  constexpr int pairs = 500;
  constexpr int64_t rows = 8, batches = 10;
  std::string text;
  const auto words_of = [](int n, int word) {
    std::string line;
    for (int k = 0; k < n; ++k) line += (k ? " w" : "w") + std::to_string(word) + "q";
    return line;
  };
  for (int i = 0; i < pairs; ++i)
    text += words_of(1 + i * 7 % 19, i % 50) + "\t" + words_of(1 + i * 7 % 19 / 2 + i % 3, i / 50) +
            "\n";  // the two words identify the pair
  PrepareOptions options;
  options.inputs = {dir.write("a.tsv", text)};
  options.format = TextFormat::pairs;
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "a";
  options.held_out = 0;
  options.threads = 1;
  prepare(options);
  const TokenStore store(options.out, "train");
  const auto model = model_of<VaswaniConfig>(store, store.tokenizer().special().cls);
  const auto collator = [&](StepRows step) {
    return Collator(store, {PairsConfig{}}, data(store, 64), Rng(1), "train", model, step);
  };
  const auto shuffled = collator({rows, 1}), sorted = collator({rows, batches});
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  const auto read = [&](const Collator& from, uint64_t first, Pairs& found, double& padding) {
    const auto batch = from.batch(first, rows);
    padding += 1 - static_cast<double>(batch.tokens) /
                       static_cast<double>(batch.input_ids.numel() + batch.decoder_input_ids.numel());
    const auto labels = labels_by_row(batch, batch.decoder_input_ids.size(1), rows);
    for (size_t r = 0; r < rows; ++r)
      found.emplace_back(batch.input_ids[static_cast<int64_t>(r)][0].item<int64_t>(), labels[r][0]);
    return batch.decoder_input_ids.size(1);
  };
  double before = 0, after = 0;
  bool by_length = true;
  for (uint64_t step = 0; step < 12; ++step) {  // nearly two epochs
    Pairs once, again;
    std::vector<int64_t> widths;
    for (uint64_t b = 0; b < batches; ++b)
      read(shuffled, (step * batches + b) * rows, once, before),
          widths.push_back(read(sorted, (step * batches + b) * rows, again, after));
    CHECK(once != again);
    std::ranges::sort(once), std::ranges::sort(again);
    CHECK(once == again);
    by_length = by_length && std::ranges::is_sorted(widths);
  }
  CHECK(before / (12 * batches) > 0.3);
  CHECK(after < before / 2);
  CHECK_FALSE(by_length);  // the first batches of a step are not its shortest
  const auto batch = sorted.batch(80, rows);
  for (int64_t r = rows - 1; r >= 0; --r) {
    const auto alone = sorted.batch(80 + static_cast<uint64_t>(r), 1);
    CHECK(row_of(alone.input_ids, 0, alone.input_ids.size(1)) == row_of(batch.input_ids, r, alone.input_ids.size(1)));
  }
}

TEST_CASE("texts that an objective cannot use are rejected with a message", "[objectives][generative]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const auto model = model_of<T5Config>(store, 0);
  CHECK_THROWS_WITH(Collator(store, {SpanCorruptionConfig{}}, data(store, 32), Rng(1), "train", model),
                    Catch::Contains("does not have; prepare the text with --sentinels 100"));
  CHECK_THROWS_WITH(Collator(store, {PairsConfig{}}, data(store, 32), Rng(1), "train", model),
                    Catch::Contains("does not hold pairs of texts; prepare them with --format pairs"));
}
