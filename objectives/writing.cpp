#include "objectives/writing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace cloze {

const ObjectiveConfig* writing_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (asks_to_write(objective)) return &objective;
  return nullptr;
}

void take_special_ids(ModelConfig& model, const SpecialIds& special) {
  auto& m = encoder_of(model);
  const auto kind = kind_of(model);
  m.pad_token_id = special.filler();
  m.eos_token_id = special.sep;
  m.decoder_start_token_id = kind == "t5" || kind == "pegasus"           ? m.pad_token_id
                             : kind == "transformer" && special.cls >= 0 ? special.cls
                                                                         : special.sep;
}

namespace {

template <class Kind>
const Kind* as(const ObjectiveConfig& objective) {
  return std::get_if<Kind>(&objective);
}

bool needs_sentinels(const ObjectiveConfig& objective) {
  const auto* spans = as<SpanCorruptionConfig>(objective);
  return spans && (spans->corruption == "spans" || spans->corruption == "iid");
}

BartNoise noise_of(const DenoisingConfig& c) {
  return {.permute_sentences = c.permute_sentences,
          .mask_ratio = c.mask_ratio,
          .poisson_lambda = c.poisson_lambda,
          .random_ratio = c.random_ratio,
          .insert_ratio = c.insert_ratio,
          .rotate_prob = c.rotate_prob,
          .mask_length = c.mask_length,
          .replace_length = c.replace_length};
}

}  // namespace

Writer::Writer(const ObjectiveConfig& objective, const DataConfig& data, const EncoderConfig& model,
               const TokenStore& store, const Vocabulary& vocabulary)
    : objective_(objective),
      data_(data),
      model_(model),
      store_(store),
      vocabulary_(vocabulary),
      eos_(vocabulary.special.sep) {
  const auto& sentinels = store.tokenizer().sentinels();
  require<ConfigError>(
      !needs_sentinels(objective) || !sentinels.empty(),
      "span_corruption marks what is missing by <extra_id_0>, <extra_id_1>, ..., which the tokenizer of ", data.tokens,
      " does not have; prepare the text with --sentinels 100");
  if (const auto* corruption = as<SpanCorruptionConfig>(objective); corruption && corruption->corruption == "spans") {
    const auto tokens = static_cast<int64_t>(length());
    const auto spans = noise_count(tokens, corruption->noise_density, corruption->mean_noise_span_length).spans;
    require<ConfigError>(spans <= static_cast<int64_t>(sentinels.size()), "a text of ", tokens, " tokens has ", spans,
                         " hidden spans, the tokenizer of ", data.tokens, " ", sentinels.size(),
                         " sentinels; prepare the text with --sentinels ", spans,
                         ", shorten data.max_seq_length, or lengthen the spans");
  }
  require<DataError>(!as<PairsConfig>(objective) || store.num_sentences() == 2 * store.num_documents(),
                     data.tokens.empty() ? "the text" : data.tokens,
                     " does not hold pairs of texts; prepare them with --format pairs");
  ids_ = {.mask = vocabulary.special.mask, .vocabulary = vocabulary.size, .first_random = 0};
  if (!sentinels.empty() && sentinels.back() > vocabulary.size / 2)
    ids_.vocabulary = std::min(sentinels.back(), sentinels.front());  // they stand last
  while (ids_.first_random + 1 < ids_.vocabulary && vocabulary.is_special[static_cast<size_t>(ids_.first_random)])
    ++ids_.first_random;
}

Packing Writer::packing() const {
  if (as<PairsConfig>(objective_)) return Packing::whole;
  if (data_.packing == "full") return Packing::full;
  if (data_.packing == "doc_sentences" || as<GapSentencesConfig>(objective_))
    return Packing::doc_sentences;  // whole sentences are what it hides
  return data_.packing == "full_sentences" ? Packing::full_sentences : Packing::document;
}

double Writer::expected_length(int64_t tokens) const {
  const auto n = static_cast<double>(tokens);
  double source = n + 1, target = n + 1;
  if (const auto* spans = as<SpanCorruptionConfig>(objective_)) {
    const auto& kind = spans->corruption;
    const double noise = spans->noise_density * n,
                 variance = noise * (1 - spans->noise_density);  // of the hidden tokens; so many runs are there too
    if (kind == "spans") {
      const auto count = noise_count(tokens, spans->noise_density, spans->mean_noise_span_length);
      source = static_cast<double>(tokens - count.tokens + count.spans + 1),
      target = static_cast<double>(count.tokens + count.spans + 1);
    } else if (kind == "iid") {
      const double runs =
          std::min(static_cast<double>(store_.tokenizer().sentinels().size()), variance + 3 * std::sqrt(variance));
      source = std::min(n + 1, n - noise + runs + 1), target = std::min(n + 2, noise + runs + 1);
    } else if (kind == "drop" || kind == "prefix_lm") {
      target = model_.is_encoder_decoder ? n : 1;  // each token stands on one side
    }
  } else if (const auto* c = as<DenoisingConfig>(objective_)) {
    double more = 0;  // tokens of the source than of the text
    if (c->mask_length == "span-poisson") {
      const double hidden = c->mask_ratio * n, drawn = hidden / c->poisson_lambda,
                   of_none = std::exp(-c->poisson_lambda);
      const double masks = c->replace_length == 1 ? drawn * (1 - of_none) : c->replace_length == -1 ? hidden : 0;
      more = std::max(0.0, masks - hidden + drawn * of_none +
                               3 * std::sqrt(drawn * of_none + of_none * of_none * drawn / c->poisson_lambda));
    }
    source = n + more + std::ceil(c->insert_ratio * (n + more + 2)) + 1;
  } else if (const auto* gaps = as<GapSentencesConfig>(objective_)) {
    const double sentence =
        static_cast<double>(store_.num_tokens()) / static_cast<double>(std::max<uint64_t>(1, store_.num_sentences()));
    if (!model_.is_encoder_decoder)
      target = 1 + std::max(1.0, gaps->gap_sentences_ratio * n /
                                     sentence);  // a mask for each of the sentences that stand there
  }
  return length_of(source, target);
}

double Writer::length_of(double source, double target) const {
  return model_.is_encoder_decoder ? std::max(source, target) : source + target;
}

bool Writer::fits(double length) const {
  const int64_t begin = model_.texts_begin ? 1 : 0;
  return length <= static_cast<double>(model_.is_encoder_decoder
                                           ? data_.max_seq_length - begin
                                           : data_.max_seq_length + 1 - 2 * begin);  // the last label is not read
}

uint64_t Writer::length() const {
  const int64_t begin = model_.texts_begin ? 1 : 0, most = data_.max_seq_length;
  if (as<ClmConfig>(objective_)) return static_cast<uint64_t>(most + 1 - begin);  // the last one is only a label
  const auto* spans = as<SpanCorruptionConfig>(objective_);
  int64_t tokens = spans && spans->corruption == "spans"
                       ? raw_length(most - begin, spans->noise_density, spans->mean_noise_span_length)
                       : most - begin - 1;
  while (tokens > 1 && !fits(expected_length(tokens))) --tokens;
  return static_cast<uint64_t>(std::max<int64_t>(1, tokens));
}

void Writer::shorten(double length) {
  auto kept = std::clamp<size_t>(
      static_cast<size_t>(static_cast<double>(data_.max_seq_length) / length * static_cast<double>(tokens_.size())), 1,
      tokens_.size() - 1);
  size_t sentences = 0, whole = 0;  // of the text that is kept
  while (sentences < sentence_lengths_.size() && whole + static_cast<size_t>(sentence_lengths_[sentences]) <= kept)
    whole += static_cast<size_t>(sentence_lengths_[sentences++]);
  if (as<GapSentencesConfig>(objective_) && whole > 0) kept = whole;
  tokens_.resize(kept);
  numbers_.resize(kept);
  sentence_lengths_.resize(sentences);
  if (kept > whole) sentence_lengths_.push_back(static_cast<int64_t>(kept - whole));
}

void Writer::gather(const Example& example) {
  tokens_.clear(), numbers_.clear(), sentence_lengths_.clear();
  uint64_t left = example.target_length;
  for (const auto& span : example.spans) {
    if (left == 0) break;
    if (!tokens_.empty()) {
      numbers_.push_back(-1);
      tokens_.push_back(eos_), --left;  // a separator takes the place that the sampler left free
      if (!sentence_lengths_.empty()) ++sentence_lengths_.back();
    }
    const uint64_t count = std::min(span.count, left), at = tokens_.size();
    tokens_.resize(at + count);
    store_.read(span.first, count, tokens_.data() + at);
    numbers_.resize(at + count);
    std::iota(numbers_.begin() + static_cast<std::ptrdiff_t>(at), numbers_.end(), static_cast<int64_t>(span.first));
    for (uint64_t token = span.first, sentence = store_.sentence_of(span.first); token < span.first + count;
         ++sentence) {
      const uint64_t end = std::min(store_.first_token(sentence + 1), span.first + count);
      sentence_lengths_.push_back(static_cast<int64_t>(end - token));
      token = end;
    }
    left -= count;
  }
  check_ids(tokens_);
}

void Writer::check_ids(const std::vector<int64_t>& ids) const {
  const int64_t largest = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end());
  require<DataError>(
      largest < vocabulary_.size, "the token store holds id ", largest, ", its tokenizer has ", vocabulary_.size,
      " pieces; the files are damaged: check them with `cloze verify data`, then prepare the text again");
}

/// Begins texts where the model's begin. Pairs that are too long are cut, their end tokens kept.
void Writer::finish(SourceTarget& row) const {
  const auto most = static_cast<size_t>(data_.max_seq_length - (model_.texts_begin ? 1 : 0));
  for (auto* side : {&row.source, &row.target}) {
    if (side->size() > most) side->resize(most), side->back() = eos_;
    if (model_.texts_begin) side->insert(side->begin(), vocabulary_.special.cls);
  }
  auto& numbers = row.target_tokens;
  if (numbers.size() > most) numbers.resize(most), numbers.back() = -1;
  if (model_.texts_begin) numbers.insert(numbers.begin(), -1);
  // A decoder alone reads both in one line; the last token is only a label.
  const auto room = static_cast<size_t>(data_.max_seq_length) + 1;
  if (model_.is_encoder_decoder || row.source.size() + row.target.size() <= room) return;
  const auto last = row.source.back();  // its end token, where it has one
  row.source.resize(std::min(row.source.size(), std::max(room / 2, room - std::min(room, row.target.size()))));
  if (last == eos_) row.source.back() = eos_;
  row.target.resize(std::min(row.target.size(), room - row.source.size()));
  row.target.back() = eos_;
  numbers.resize(row.target.size());
  numbers.back() = -1;
}

void Writer::write(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) {
  row.source.clear(), row.target.clear(), row.target_tokens.clear();
  if (as<PairsConfig>(objective_)) {
    const auto first = example.spans.front().first, middle = store_.first_token(store_.sentence_of(first) + 1),
               end = first + example.spans.front().count;
    row.source.resize(middle - first), row.target.resize(end - middle);
    store_.read(first, middle - first, row.source.data());
    store_.read(middle, end - middle, row.target.data());
    check_ids(row.source), check_ids(row.target);
    row.source.push_back(eos_);
    row.target.push_back(eos_);
    row.target_tokens.resize(end - middle);
    std::iota(row.target_tokens.begin(), row.target_tokens.end(), static_cast<int64_t>(middle));
    row.target_tokens.push_back(-1);
    finish(row);
    const int64_t added = model_.texts_begin ? 4 : 2;  // beginnings and ends
    read_ = std::max<int64_t>(0, static_cast<int64_t>(row.source.size() + row.target.size()) - added);
    return;
  }
  gather(example);
  const auto n = static_cast<int64_t>(tokens_.size());
  const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
  read_ = n - separators;
  if (as<ClmConfig>(objective_)) {
    const auto& last = example.spans.back();
    const bool ends =
        last.first + last.count == store_.document_token(store_.document_of(last.first) + 1);  // of its document
    if (ends && n < static_cast<int64_t>(length())) tokens_.push_back(eos_), numbers_.push_back(-1);
    row.target = tokens_;
    row.target_tokens = numbers_;
    if (!model_.texts_begin) return;
    row.target.insert(row.target.begin(), vocabulary_.special.cls);
    row.target_tokens.insert(row.target_tokens.begin(), -1);
    return;
  }
  for (;;) {
    if (infilled) *infilled = {};
    make(stream, row, infilled);
    const auto length = length_of(static_cast<double>(row.source.size()), static_cast<double>(row.target.size()));
    if (fits(length) || tokens_.size() < 2) break;
    shorten(length);  // more was put in than usual
  }
  read_ -= n - static_cast<int64_t>(tokens_.size());
  finish(row);
}

void Writer::make(Stream& stream, SourceTarget& row, Infilled* infilled) {
  const auto n = static_cast<int64_t>(tokens_.size());
  if (const auto* spans = as<SpanCorruptionConfig>(objective_)) {
    const auto& kind = spans->corruption;
    const double density = spans->noise_density;
    const auto& sentinels = store_.tokenizer().sentinels();
    const bool marked = kind == "spans" || kind == "iid";  // by sentinels
    if (marked || kind == "drop") {
      auto noise = kind == "spans" ? random_spans(n, density, spans->mean_noise_span_length, stream)
                                   : iid_mask(n, density, stream);
      if (kind == "iid") limit_runs(noise, sentinels.size());
      row = marked ? span_corruption(tokens_, noise, sentinels, eos_) : drop_tokens(tokens_, noise, eos_);
      // The same of numbers instead of ids says where each id of the target is from.
      const std::vector<int64_t> no_number(sentinels.size(), -1);
      row.target_tokens =
          marked ? span_corruption(numbers_, noise, no_number, -1).target : drop_tokens(numbers_, noise, -1).target;
      return;
    }
    if (kind == "mass") {
      row = mass(tokens_, iid_mask(n, density, stream), ids_, eos_);
    } else if (kind == "bert") {
      const auto noise = iid_mask(n, density, stream);
      row = bert_style(tokens_, noise, 0.1, ids_, eos_, stream);
    } else if (kind == "deshuffle") {
      row = deshuffle(tokens_, eos_, stream);
    } else {
      row = prefix_lm(tokens_, eos_, stream);
    }
    row.target_tokens.assign(numbers_.end() - static_cast<std::ptrdiff_t>(row.target.size() - 1),
                             numbers_.end());  // the whole text, or its end
    row.target_tokens.push_back(-1);
    if (kind == "prefix_lm" && !model_.is_encoder_decoder) row.source.pop_back();  // the text goes on in the same line
    return;
  }
  if (const auto* denoising = as<DenoisingConfig>(objective_)) {
    row.target = tokens_;
    row.target.push_back(eos_);
    row.target.insert(row.target.begin(), vocabulary_.special.cls);  // the noise keeps both ends where they are
    word_starts_.assign(row.target.size(), 1);
    for (size_t i = 0; i < row.target.size(); ++i)
      word_starts_[i] = vocabulary_.starts_word[static_cast<size_t>(row.target[i])];
    row.source = bart_noise(row.target, word_starts_, sentence_lengths_, noise_of(*denoising), ids_, stream, infilled);
    for (auto* side : {&row.source, &row.target}) side->erase(side->begin());
    row.target_tokens = numbers_;
    row.target_tokens.push_back(-1);
    return;
  }
  const auto& gaps = std::get<GapSentencesConfig>(objective_);
  sentences_.resize(sentence_lengths_.size());
  auto at = tokens_.begin();
  for (size_t s = 0; s < sentences_.size(); at += sentence_lengths_[s++])
    sentences_[s].assign(at, at + sentence_lengths_[s]);
  row =
      gap_sentences(sentences_, gaps.gap_sentences_ratio, gaps.choose, vocabulary_.special.sentence_mask, eos_, stream);
  // A sentence is hidden where its mask stands, which no text holds.
  size_t in_source = 0, in_text = 0;
  for (const auto& sentence : sentences_) {
    const bool hidden = !sentence.empty() && row.source[in_source] == vocabulary_.special.sentence_mask;
    const auto from = numbers_.begin() + static_cast<std::ptrdiff_t>(in_text);
    if (hidden)
      row.target_tokens.insert(row.target_tokens.end(), from, from + static_cast<std::ptrdiff_t>(sentence.size()));
    in_source += hidden ? 1 : sentence.size();
    in_text += sentence.size();
  }
  row.target_tokens.push_back(-1);
}

Batch Writer::batch(const std::vector<SourceTarget>& rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  const bool two = model_.is_encoder_decoder;
  Batch batch;
  std::vector<int64_t> positions, labels;
  // Lines of ids, padded on the right; `fill` appends row number r to the line it is given.
  const auto table = [&](const auto& fill, Tensor* mask) {
    std::vector<std::vector<int64_t>> lines(rows.size());
    int64_t longest = 1, total = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      fill(r, lines[r]);
      longest = std::max(longest, static_cast<int64_t>(lines[r].size())),
      total += static_cast<int64_t>(lines[r].size());
    }
    auto ids = at::full({count, longest}, vocabulary_.special.filler(), at::kLong);
    for (size_t r = 0; r < rows.size(); ++r)
      std::copy(lines[r].begin(), lines[r].end(), ids.data_ptr<int64_t>() + static_cast<int64_t>(r) * longest);
    if (mask && total < count * longest) {
      *mask = at::zeros({count, longest}, at::kBool);
      for (size_t r = 0; r < rows.size(); ++r)
        std::fill_n(mask->data_ptr<bool>() + static_cast<int64_t>(r) * longest, lines[r].size(), true);
    }
    batch.tokens += total;
    return ids;
  };
  if (two) {
    batch.input_ids = table([&](size_t r, auto& out) { out = rows[r].source; }, &batch.attention_mask);
    batch.decoder_input_ids = table(
        [&](size_t r, auto& out) {
          const auto& target = rows[r].target;
          out.push_back(model_.decoder_starts_with_last ? target.back() : model_.decoder_start_token_id);
          out.insert(out.end(), target.begin(), target.end() - 1);
        },
        nullptr);
  } else {
    batch.input_ids = table(
        [&](size_t r, auto& out) {
          out = rows[r].source;
          out.insert(out.end(), rows[r].target.begin(), rows[r].target.end());
          out.pop_back();  // nothing follows the last one
        },
        &batch.attention_mask);
    if (model_.prefix_lm) {  // the last token read begins what is written
      batch.prefix = at::zeros({count}, at::kLong);
      for (size_t r = 0; r < rows.size(); ++r)
        batch.prefix.data_ptr<int64_t>()[r] = std::max<int64_t>(0, static_cast<int64_t>(rows[r].source.size()) - 1);
    }
  }
  const int64_t width = two ? batch.decoder_input_ids.size(1) : batch.input_ids.size(1);
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto &source = rows[r].source, &target = rows[r].target;
    // Place p is asked for what stands behind it. A decoder alone has nothing before its first token.
    const int64_t before = two ? 0 : static_cast<int64_t>(source.size()) - 1;
    for (int64_t k = before < 0 ? 1 : 0; k < static_cast<int64_t>(target.size()); ++k) {
      positions.push_back(static_cast<int64_t>(r) * width + before + k);
      labels.push_back(target[static_cast<size_t>(k)]);
    }
  }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
  return batch;
}

}  // namespace cloze
