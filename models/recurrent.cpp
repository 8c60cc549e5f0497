#include "core/error.h"
#include "core/tensor/recompute.h"
#include "models/backbone.h"
#include "models/initialization.h"

namespace cloze {

namespace {

/// A layer of long short-term memory: the gates of a token are W x_t + U h_(t-1) + b, of its input and of the layer's
/// output for the token before it. Rows of the matrices are those of i, f, g and o (see memory_cell).
struct LstmLayer final : Layer {
  static constexpr int64_t gates = 4;
  explicit LstmLayer(int64_t width)
      : input(own("input", std::make_shared<Linear>(width, gates * width, /*with_bias=*/true, gates))),
        recurrent(own("recurrent", std::make_shared<Linear>(width, gates * width, /*with_bias=*/false, gates))) {}

  /// x [B, T, D]; returns [B, T, D]. `state` is that of the token before x, and becomes that of its last one.
  Tensor forward(const Tensor& x, MemoryState& state) const {
    std::vector<Tensor> outputs;
    for (const auto& of_input : input->forward(x).unbind(1)) {
      state = memory_cell(of_input + recurrent->forward(state.output), state.cell);
      outputs.push_back(state.output);
    }
    return at::stack(outputs, 1);
  }
  /// Multiply-adds for one token.
  double multiply_adds() const { return input->multiply_adds() + recurrent->multiply_adds(); }

  std::shared_ptr<Linear> input, recurrent;
};

/// Embeddings and layers of long short-term memory, from left to right. Padding on the right changes no state that is
/// read. Source: Zaremba et al. 2014, section 3.2, for the places of dropout.
struct Recurrent final : Backbone {
  explicit Recurrent(const RecurrentConfig& c)
      : config(c),
        embeddings(own("embeddings", std::make_shared<Embeddings>(EmbeddingSizes{
                                         .vocab = c.vocab_size, .width = c.hidden_size, .positions = 0, .types = 0}))),
        stack(own("stack", std::make_shared<Layer>())) {
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
      layers.push_back(stack->own(std::to_string(i), std::make_shared<LstmLayer>(c.hidden_size)));
      set_depth(*layers.back(), i + 1);
    }
  }

  Tensor hidden(const Inputs& in, Traces* traces) override {
    require<ShapeError>(!in.prefix.defined(), "a recurrent network reads a text from left to right, without a prefix");
    DecoderState state;
    return read(in.input_ids, state, {.p = config.hidden_dropout_prob, .key = in.dropout_key, .active = is_training()},
                traces ? &traces->encoder : nullptr);
  }

  Tensor decode(const Tensor& ids, const EncoderOutput&, DecoderState& state, const Tensor& attention_mask,
                const Tensor&) override {
    require<ShapeError>(!attention_mask.defined(), "a recurrent network reads rows without padding");
    return read(ids, state, {}, nullptr);
  }
  bool decodes() const override { return true; }

  /// Hidden states [B, T, D] of the tokens after `state`, which has the output and the cell of each layer.
  Tensor read(const Tensor& ids, DecoderState& state, Dropout drop, Trace* trace) const {
    const auto record = [&](const Tensor& of_layer) {
      if (trace) trace->hidden_states.push_back(of_layer);
    };
    auto x = embeddings->forward({.ids = ids}, drop);
    record(x);
    const bool recomputes = gradient_checkpointing && state.of_tokens.empty() && at::GradMode::is_enabled();
    if (state.of_tokens.empty()) state = beginning(x);
    for (size_t i = 0; i < layers.size(); ++i) {
      MemoryState memory{state.of_tokens.at(2 * i), state.of_tokens.at(2 * i + 1)};
      if (recomputes) {
        const auto again = [layer = layers[i], memory](const std::vector<Tensor>& in) {
          auto fresh = memory;
          return std::vector{layer->forward(in[0], fresh)};
        };
        x = recompute(again, {x}, *layers[i])[0];
      } else {
        x = layers[i]->forward(x, memory);
        state.of_tokens[2 * i] = memory.output;
        state.of_tokens[2 * i + 1] = memory.cell;
      }
      ++drop.site;
      x = dropout(x, drop);
      record(x);
    }
    return x;
  }

  /// Zeros for the rows of x [B, T, D].
  DecoderState beginning(const Tensor& x) const {
    const auto zeros = at::zeros({x.size(0), x.size(2)}, x.options());
    DecoderState state;
    for (size_t i = 0; i < layers.size(); ++i) {
      state.of_tokens.push_back(zeros);
      state.of_tokens.push_back(zeros.to(accumulation_type(x)));
    }
    return state;
  }

  double multiply_adds(const std::vector<RowSizes>& rows) const override {
    double of_token = 0;
    for (const auto& layer : layers) of_token += layer->multiply_adds();
    return total(rows, &RowSizes::length) * of_token;
  }

  Tensor pooled(const Tensor&) override { fail<ShapeError>("a recurrent network has no pooler"); }
  const Param& token_embedding() const override { return embeddings->word; }
  const std::shared_ptr<Embeddings>& embedding_tables() const override { return embeddings; }
  bool has_pooler() const override { return false; }
  void set_gradient_checkpointing(bool on) override { gradient_checkpointing = on; }

  RecurrentConfig config;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Layer> stack;
  std::vector<std::shared_ptr<LstmLayer>> layers;
  bool gradient_checkpointing = false;
};

}  // namespace

std::shared_ptr<Backbone> make_recurrent(const RecurrentConfig& config) {
  require<ConfigError>(config.vocab_size > 0,
                       "model.vocab_size is 0; set it to the number of rows of the token embedding");
  auto made = std::make_shared<Recurrent>(config);
  set_init_ranges(*made, config);
  return made;
}

}  // namespace cloze
