#include "objectives/collator.h"

#include "core/mapped_file.h"
#include "objectives/rows.h"

namespace cloze {

struct Collator::Impl {
  explicit Impl(RowContext made) : context(std::move(made)), rows(make_rows(context)) {}
  Impl(RowContext row_context, std::unique_ptr<RowMaker> made)
      : context(std::move(row_context)), rows(std::move(made)) {}

  RowContext context;
  std::unique_ptr<RowMaker> rows;
};

Collator::Collator(TokenStore store, const Objectives& objectives, const DataConfig& data, const RowStreams& streams,
                   const std::string& stage, const ModelConfig& model, StepRows rows)
    : Collator(RowContext(std::move(store), objectives, data, streams, stage, model, rows)) {}

Collator::Collator(RowContext context) : impl_(std::make_shared<Impl>(std::move(context))) {}

Collator::Collator(RowContext context, std::unique_ptr<RowMaker> rows)
    : impl_(std::make_shared<Impl>(std::move(context), std::move(rows))) {}

uint64_t Collator::size() const { return impl_->rows->size(); }
double Collator::text_fraction() const { return impl_->rows->text_fraction(); }
double Collator::random_next_rate() const { return impl_->rows->random_next_rate(); }
const TokenStore& Collator::store() const { return impl_->context.store; }

namespace {

/// What `make` makes of tokens that are whole.
template <class Make>
auto made_of_whole(const TokenStore& store, const Make& make) {
  const LostPartsAsZeros reads_on;
  decltype(make()) made;
  try {
    made = make();
  } catch (...) {
    store.require_intact();  // the better reason
    throw;
  }
  store.require_intact();
  return made;
}

}  // namespace

Batch Collator::batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const {
  if (draws) draws->assign(static_cast<size_t>(count), {});
  return made_of_whole(store(), [&] { return impl_->rows->batch(first, count, draws); });
}

std::vector<Batch> Collator::step_batches(uint64_t first, int64_t count) const {
  return made_of_whole(store(), [&] { return impl_->rows->step_batches(first, count); });
}

}  // namespace cloze
