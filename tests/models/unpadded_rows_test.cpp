#include "core/contains.h"
#include "models/families/backbone.h"
#include "tests/models/padded_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"
#include "tests/support/numbers.h"

using namespace cloze;
using padded::columns;
using padded::rows;

namespace {

/// The states that are read, and the gradients of all parameters of their sum by fixed weights.
struct Pass {
  Tensor states;  // [B, T, D], zero where nobody reads them
  std::vector<Tensor> gradients{};
};
Pass pass_of(Backbone& network, const Inputs& in, bool of_encoder) {
  for (const auto& each : collect_params(network)) each.param.value().mutable_grad() = Tensor();
  auto states = of_encoder ? network.encode(in).states : network.hidden(in);
  if (of_encoder || !in.decoder_input_ids.defined()) states = states * in.attention_mask.unsqueeze(-1);
  if (in.read_positions.defined()) {
    const auto read = at::zeros({rows * columns}).index_fill(0, in.read_positions, 1).view({rows, columns, 1});
    states = states * read;
  }
  (states * numbers(states.sizes(), 0.3)).sum().backward();
  Pass pass{.states = states.detach()};
  for (const auto& each : collect_params(network)) {
    const auto gradient = each.param.value().grad();
    pass.gradients.push_back(gradient.defined() ? gradient.clone() : Tensor());
  }
  return pass;
}

void check_equal(const Pass& a, const Pass& b) {
  CHECK(error_of(a.states, b.states) < 1e-5);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    INFO("gradient " << i);
    REQUIRE(a.gradients[i].defined() == b.gradients[i].defined());
    if (a.gradients[i].defined()) CHECK(error_of(a.gradients[i], b.gradients[i]) < 3e-5);
  }
}

}  // namespace

TEST_CASE("what is read of padded rows, and its gradients, are the same where nothing is computed for padding",
          "[models]") {
  const std::vector<std::string> padded_families{"bigbird", "linformer", "distances", "keyed", "xlnet", "lstm"};
  for (const auto& family : every_family()) {
    INFO(family.name);
    auto model = family.model;
    backbone_of(model).vocab_size = 23;
    auto network = make_backbone(model, {.pooler = false});
    initialize(collect_params(*network), 0.3, false, Rng(1));
    network->train();  // with dropout, whose masks are the same
    auto in = padded::inputs(model);
    const bool two_stacks = in.decoder_input_ids.defined();
    for (const bool of_encoder : {false, true}) {
      if (of_encoder && !two_stacks) continue;
      in.padding_is_unread = false;
      const auto padded = pass_of(*network, in, of_encoder);
      in.padding_is_unread = true;
      check_equal(pass_of(*network, in, of_encoder), padded);
      network->set_gradient_checkpointing(true);
      check_equal(pass_of(*network, in, of_encoder), padded);
      network->set_gradient_checkpointing(false);
    }
    const at::NoGradGuard no_grad;
    const auto states = two_stacks ? network->encode(in).states : network->hidden(in);
    const bool unpads = states[0].narrow(0, 4, columns - 4).eq(0).all().item<bool>();
    CHECK(unpads != contains(padded_families, family.name));
  }
}

TEST_CASE("states of some positions of padded rows are the same where nothing is computed for padding", "[models]") {
  for (const auto& family : every_family()) {
    if (backbone_of(family.model).is_encoder_decoder() || backbone_of(family.model).is_two_stream()) continue;
    INFO(family.name);
    auto model = family.model;
    backbone_of(model).vocab_size = 23;
    auto network = make_backbone(model, {.pooler = false});
    initialize(collect_params(*network), 0.3, false, Rng(1));
    network->train();
    auto in = padded::inputs(model);
    in.read_positions = at::tensor(std::vector<int64_t>{0, 2, columns + 12, 2 * columns, 3 * columns + 8});
    const auto padded = pass_of(*network, in, /*of_encoder=*/false);
    in.padding_is_unread = true;
    check_equal(pass_of(*network, in, /*of_encoder=*/false), padded);
  }
}

TEST_CASE("a text that is longer than the position table is refused by its own length, whatever the batch",
          "[models]") {
  auto model = every_family()[0].model;
  backbone_of(model).vocab_size = 23;
  const auto network = make_backbone(model, {.pooler = false});
  Inputs in{.input_ids = at::full({3, 47}, 7, at::kLong), .attention_mask = at::ones({3, 47}, at::kBool)};
  in.attention_mask[0].narrow(0, 5, 42).fill_(false);
  in.padding_is_unread = true;
  CHECK_THROWS_WITH(network->hidden(in), Catch::Contains("a sequence of 47 tokens is longer than the model's 40"));
}
