#include "data/prepare/near_duplicates.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "core/random.h"

namespace cloze {

namespace {

constexpr uint64_t no_shingle = ~uint64_t{0};
constexpr size_t bands = 16, max_compared = 16;
static_assert(bands * sizeof(uint64_t) == sizeof(Sketch));

/// The minimum shingle hash in each of 128 partitions of the hash range.
class Minima {
 public:
  Minima() { min_.fill(no_shingle); }

  void add(unsigned char byte) {
    window_ = window_ << 8 | byte;
    if (++bytes_ >= sizeof window_) note();
  }

  Sketch finish() {
    if (bytes_ < sizeof window_) note();  // a text shorter than a shingle is one
    Sketch sketch{};
    for (uint64_t entry = 0; entry < sketch.size(); ++entry) {
      uint64_t from = entry;
      for (uint64_t attempt = 1; min_[from] == no_shingle; ++attempt) from = mix(entry, attempt) % sketch.size();
      sketch[entry] = static_cast<uint8_t>(min_[from]);
    }
    return sketch;
  }

 private:
  void note() {
    uint64_t hash = (window_ ^ window_ >> 32) * 0x9E3779B97F4A7C15;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9;
    hash ^= hash >> 32;
    auto& min = min_[hash >> 57];
    min = std::min(min, hash & (~uint64_t{0} >> 7));
  }

  std::array<uint64_t, std::tuple_size_v<Sketch>> min_;
  uint64_t window_ = 0, bytes_ = 0;
};

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first index of a group (union-find with path compression).
uint32_t first_of(std::vector<uint32_t>& groups, uint32_t number) {
  while (groups[number] != number) {
    groups[number] = groups[groups[number]];
    number = groups[number];
  }
  return number;
}

/// The record of a document in the file.
struct Entry {
  Sketch sketch;
  uint64_t hash;
};

/// The file as an array.
struct MappedEntries {
  MappedEntries(std::FILE* file, uint64_t count, const std::string& path) : bytes(count * sizeof(Entry)) {
    mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fileno(file), 0);
    require<DataError>(mapped != MAP_FAILED, path, ": cannot be read (", system_reason(), ")");
  }
  ~MappedEntries() { munmap(mapped, bytes); }
  MappedEntries(const MappedEntries&) = delete;
  MappedEntries& operator=(const MappedEntries&) = delete;
  const Entry& operator[](uint64_t n) const { return static_cast<const Entry*>(mapped)[n]; }
  uint64_t bytes;
  void* mapped;
};

}  // namespace

Sketch sketch_of(const std::vector<std::string>& lines) {
  Minima minima;
  bool after_space = true;
  for (const auto& line : lines) {
    for (const char c : line) {
      const bool space = is_ascii_space(c);
      if (!space || !after_space) minima.add(space ? ' ' : static_cast<unsigned char>(c));
      after_space = space;
    }
    if (!after_space) minima.add(' ');
    after_space = true;
  }
  return minima.finish();
}

double resemblance(const Sketch& a, const Sketch& b) {
  double equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  const double agree = equal / static_cast<double>(a.size());
  return std::max(0.0, (agree - 0x1p-8) / (1 - 0x1p-8));  // corrected for entries that agree by chance
}

NearDuplicates::NearDuplicates(const std::string& file) : path_(file), file_(open_own(file, "w+b")) {
  require<DataError>(file_ != nullptr, path_, ": cannot be written (", system_reason(), ")");
}

NearDuplicates::~NearDuplicates() {
  std::fclose(file_);
  std::remove(path_.c_str());
}

void NearDuplicates::add(uint64_t hash, const Sketch& sketch) {
  const Entry entry{.sketch = sketch, .hash = hash};
  const bool written = std::fwrite(&entry, sizeof entry, 1, file_) == 1;
  require<DataError>(written, path_, ": cannot be written (", system_reason(), ")");
  ++count_;
}

std::vector<uint32_t> NearDuplicates::groups() {
  require<DataError>(count_ < ~uint32_t{0}, "the text has ", count_, " documents, at most ", ~uint32_t{0},
                     " can be compared; prepare it in parts");
  std::vector<uint32_t> groups(count_);
  std::iota(groups.begin(), groups.end(), 0);
  if (count_ == 0) return groups;
  const bool written = std::fflush(file_) == 0;
  require<DataError>(written, path_, ": cannot be written (", system_reason(), ")");
  const MappedEntries entries(file_, count_, path_);
  std::vector<std::pair<uint64_t, uint32_t>> keys(count_);
  std::vector<uint32_t> others;  // of a band: not near-duplicates of each other
  for (size_t band = 0; band <= bands; ++band) {
    const bool is_of_text = band == bands;  // the hash of the whole text is the last band, without comparison
    for (uint32_t n = 0; n < count_; ++n) {
      const auto& entry = entries[n];
      std::memcpy(
          &keys[n].first,
          is_of_text ? reinterpret_cast<const uint8_t*>(&entry.hash) : entry.sketch.data() + band * sizeof(uint64_t),
          sizeof(uint64_t));
      keys[n].second = n;
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto [key, number] = keys[i];
      if (i == 0 || keys[i - 1].first != key) others.clear();
      const auto is_duplicate = [&, number = number](uint32_t other) {
        return is_of_text || resemblance(entries[number].sketch, entries[other].sketch) >= near_duplicate_threshold;
      };
      const auto match = std::find_if(others.begin(), others.end(), is_duplicate);
      if (match == others.end()) {
        if (others.size() < max_compared) others.push_back(number);
        continue;
      }
      const uint32_t one = first_of(groups, *match);
      const uint32_t other = first_of(groups, number);
      groups[std::max(one, other)] = std::min(one, other);
    }
  }
  for (uint32_t n = 0; n < count_; ++n) groups[n] = first_of(groups, n);
  return groups;
}

}  // namespace cloze
