#pragma once
// Documents to ids, on many threads, in the order in which they came.
#include <xxhash.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "data/reader.h"
#include "data/sentences.h"
#include "data/tokenizer.h"

namespace cloze {

struct RawBatch {
  uint64_t number = 0;
  std::vector<RawDocument> documents;
};

/// A document in ids.
struct EncodedDocument {
  uint64_t hash = 0;
  std::vector<int32_t> ids;
  std::vector<uint32_t> lengths;   // of its sentences
};

struct EncodedBatch {
  std::vector<EncodedDocument> documents;
};

/// A hash of the lines alone: copies of a document have one.
inline uint64_t content_hash(const RawDocument& document) {
  uint64_t hash = 0;
  for (const auto& line : document.lines) hash = XXH3_64bits_withSeed(line.data(), line.size(), hash + 1);
  return hash;
}

inline EncodedDocument encode(const RawDocument& raw, const Tokenizer& tokenizer, bool sentences_given, std::vector<std::string_view>& found) {
  EncodedDocument out;
  out.hash = content_hash(raw);
  for (const auto& line : raw.lines) {
    found.clear();
    if (sentences_given) found.emplace_back(line);
    else split_sentences(line, found);
    for (const auto sentence : found) {
      const auto ids = tokenizer.encode(sentence, sentence.data() != found.front().data());
      if (ids.empty()) continue;
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      out.lengths.push_back(static_cast<uint32_t>(ids.size()));
    }
  }
  return out;
}

/// Batches go in numbered and come out in order, encoded by `threads` threads; few are under way at a time.
class Encoders {
 public:
  Encoders(const Tokenizer& tokenizer, bool sentences_given, int64_t threads) : tokenizer_(tokenizer), given_(sentences_given), limit_(static_cast<size_t>(4 * threads)) {
    for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Encoders() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  bool full() {
    const std::lock_guard lock(mutex_);
    return sent_ - received_ >= limit_;
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return sent_ == received_;
  }
  void send(RawBatch batch) {
    {
      const std::lock_guard lock(mutex_);
      batch.number = sent_++;
      waiting_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }
  /// The next batch in order; waits for it.
  EncodedBatch receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.count(received_) > 0 || error_; });
    if (error_) std::rethrow_exception(error_);
    auto batch = std::move(done_.extract(received_++).mapped());
    return batch;
  }

 private:
  void work() {
    std::vector<std::string_view> found;
    for (;;) {
      RawBatch batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
        if (stop_) return;
        batch = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
      }
      EncodedBatch encoded;
      std::exception_ptr error;
      try {
        for (const auto& document : batch.documents) encoded.documents.push_back(encode(document, tokenizer_, given_, found));
      } catch (...) {
        error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        if (error) error_ = error;
        done_.emplace(batch.number, std::move(encoded));
      }
      changed_.notify_all();
    }
  }

  const Tokenizer& tokenizer_;
  bool given_;
  size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RawBatch> waiting_;
  std::map<uint64_t, EncodedBatch> done_;
  uint64_t sent_ = 0, received_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace cloze
