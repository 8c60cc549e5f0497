#include "objectives/collator.h"

#include "objectives/generative_rows.h"
#include "objectives/special_tokens.h"

namespace cloze {

struct Collator::Impl {
  explicit Impl(RowContext made) : context(std::move(made)), rows(make_rows()) {}

  RowContext context;
  std::unique_ptr<RowMaker> rows;

 private:
  std::unique_ptr<RowMaker> make_rows() const {
    const auto& objectives = context.objectives;
    require_special_tokens(objectives, backbone_of(context.model), context.store.tokenizer(), context.data.tokens);
    if (const auto* generative = generative_of(objectives)) return make_generative_row_maker(context, *generative);
    if (const auto* mntp = first_of<MntpConfig>(objectives)) return make_mntp_rows(context, *mntp);
    if (const auto* plm = first_of<PlmConfig>(objectives)) return make_permuted_rows(context, *plm);
    return make_masked_rows(context);
  }
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
  return impl_->rows->batch(first, count, draws);
}

}  // namespace cloze
