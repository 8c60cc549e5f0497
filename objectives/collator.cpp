#include "objectives/collator.h"

#include "core/mapped_file.h"
#include "objectives/rows.h"

namespace cloze {

struct Collator::Impl {
  explicit Impl(RowContext made) : context(std::move(made)), rows(make_rows(context)) {}

  RowContext context;
  std::unique_ptr<RowMaker> rows;
};

Collator::Collator(TokenStore store, const Objectives& objectives, const DataConfig& data, const RowStreams& streams,
                   const std::string& stage, const ModelConfig& model, StepRows rows)
    : impl_(std::make_shared<Impl>(RowContext(std::move(store), objectives, data, streams, stage, model, rows))) {}

uint64_t Collator::size() const { return impl_->rows->size(); }
double Collator::text_share() const { return impl_->rows->text_share(); }
double Collator::random_next_share() const { return impl_->rows->random_next_share(); }
const TokenStore& Collator::store() const { return impl_->context.store; }

Batch Collator::batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const {
  if (draws) draws->assign(static_cast<size_t>(count), {});
  const LostPartsAsZeros reads_on;
  Batch made;
  try {
    made = impl_->rows->batch(first, count, draws);
  } catch (...) {
    store().require_whole();  // the better reason
    throw;
  }
  store().require_whole();
  return made;
}

}  // namespace cloze
