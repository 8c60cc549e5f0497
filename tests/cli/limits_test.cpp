#include <filesystem>

#include "tests/cli/program.h"

TEST_CASE("options that do not go together are refused, each with what to choose", "[cli]") {
  struct Rule {
    const char* config;
    const char* sentence;
    int code = 2;
  };
  const Rule rules[] = {
      {"bert/tiny.yaml --set 'objectives=[{kind: rtd},{kind: mlm}]'",
       "rtd does its own masking (rtd.mlm) and cannot be combined with mlm; remove mlm"},
      {"bert/tiny.yaml --set 'objectives=[{kind: nsp},{kind: sop}]'",
       "nsp and sop need different pairs of segments; keep one of them"},
      {"distilbert/tiny.yaml --set 'objectives=[{kind: nsp}]'", "distilbert has none; choose another model"},
      {"roberta/tiny.yaml --set data.max_seq_length=130", "(positions start at pad_token_id + 1)"},
      {"longformer/tiny.yaml --set model.attention.attention_window=7",
       "'model.attention.attention_window' is 7, must be a multiple of 2 in [2, 16777216]"},
      {"longformer/tiny.yaml --set model.attention.attention_window=8,16,32",
       "has 3 values for 2 layers; give one value, or one per layer"},
      {"longformer/tiny.yaml --set model.architecture=decoder", "model.attention of kind window is bidirectional"},
      {"longformer/tiny.yaml --set model.attention.attention_dilation=0",
       "'model.attention.attention_dilation' is 0, must be in [1, 16777216]"},
      {"longformer/tiny.yaml --set model.attention.dilated_heads=3",
       "model.attention.dilated_heads 3 is more than model.num_attention_heads 2; lower it"},
      {"bigbird/tiny.yaml --set model.architecture=decoder",
       "model.attention of kind bigbird is bidirectional; set model.architecture: encoder, or choose kind: full or "
       "performer"},
      {"bert/tiny.yaml --set model.attention.kind=linformer --set model.position_embeddings=none --set "
       "data.max_seq_length=256",
       "data.max_seq_length 256 is longer than model.max_position_embeddings 128; shorten the sequences or give the "
       "model more positions"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: nsp}]'",
       "nsp needs two segment types, gpt2 has none; choose another model, or remove nsp from the objectives"},
      {"bert/tiny.yaml --set model.attention.kind=linformer --set model.attention.compressed=4096",
       "model.attention.compressed 4096 is more than model.max_position_embeddings 128; lower it"},
      {"performer/tiny.yaml --set model.relative_positions=8",
       "model.relative_positions 8 needs attention of kind full, it is performer; choose that, or other positions"},
      {"performer/tiny.yaml --set model.position_embeddings=rotary",
       "model.position_embeddings rotary needs attention of kind full or alternating, it is performer; choose that, or "
       "other positions"},
      {"bert/tiny.yaml --set model.position_embeddings=alibi --set model.relative_positions=4",
       "'model.relative_positions' is 4, and position_embeddings alibi are relative positions too; leave one of the "
       "two "
       "out"},
      {"bart/tiny.yaml --set model.position_embeddings=relative_key",
       "model.position_embeddings relative_key is for models of one stack; choose model.architecture: encoder or "
       "decoder, or other positions"},
      {"bert/tiny.yaml --set model.position_embeddings=rotary --set model.hidden_size=126 --set "
       "model.num_attention_heads=6",
       "model.position_embeddings rotary rotates pairs of numbers, and heads of width 21 are odd; choose "
       "model.hidden_size and num_attention_heads with an even quotient"},
      {"modernbert/tiny.yaml --set model.architecture=decoder",
       "model.attention of kind alternating is bidirectional; set model.architecture: encoder, or choose kind: full or "
       "performer"},
      {"modernbert/tiny.yaml --set 'model.attention.global_layers=[0,4]'",
       "model.attention.global_layers names layer 4 of a stack with 4, whose first one is 0; leave it out"},
      {"modernbert/tiny.yaml --set 'objectives=[{kind: mlm}, {kind: nsp}]'",
       "nsp needs two segment types, modernbert has none; choose another model, or remove nsp from the objectives"},
      {"bert/tiny.yaml --set optimizer.kind=muon",
       "optimizer.kind muon updates matrices alone; give it a group of them (optimizer.groups, with kind: muon and "
       "role: weight), and another kind the rest"},
      {"bert/tiny.yaml --set optimizer.learning_rate=0 --set 'optimizer.groups=[{kind: muon, role: weight}]'",
       "optimizer.learning_rate is 0, so that the schedule gives optimizer.groups no rate; raise it"},
      {"bert/tiny.yaml --set optimizer.learning_rate=0 --set optimizer.head_rate=0.1",
       "optimizer.learning_rate is 0, so that the schedule gives optimizer.head_rate no rate; raise it, or train the "
       "heads "
       "alone with init.probe"},
      {"bert/tiny.yaml --set 'objectives=[{kind: sbo}]'",
       "sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives"},
      {"electra/tiny.yaml --set objectives.0.generator_steps=10",
       "rtd.generator_steps: the discriminator starts with the generator's weights, so both need the same shape and "
       "separate embeddings"},
      {"bert/tiny.yaml --set objectives.1.from_step=9 --set objectives.1.until_step=9",
       "objective nsp: until_step 9 is not after from_step 9; raise it, or set it to 0"},
      {"bert/tiny.yaml --set objectives.0.until_step=5 --set objectives.1.until_step=7",
       "no objective is active at step 7; let one begin earlier or end later (from_step, until_step)"},
      {"roberta/tiny.yaml --set data.packing=sentence_pair",
       "data.packing sentence_pair needs two segment types, model.type_vocab_size is 1; raise it to 2, or choose "
       "another packing"},
      {"bert/tiny.yaml --set 'objectives=[{kind: clm}]'",
       "objective clm needs a generative model, bert is bidirectional; choose gpt2, t5, bart"},
      {"t5/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm needs an encoder-only model, t5 has a decoder; choose span_corruption, denoising, gap_sentences "
       "or "
       "pairs, or another model"},
      {"t5/tiny.yaml --set 'objectives=[{kind: clm}]'",
       "objective clm has no input for the encoder of t5; choose gpt2 or lstm, or span_corruption with corruption: "
       "prefix_lm"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm needs bidirectional attention, and gpt2 is causal; choose clm, or another model"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: clm},{kind: pairs}]'",
       "objective clm makes its own rows and cannot be combined with pairs; keep one of them"},
      {"gpt2/tiny.yaml --set model.prefix_lm=true",
       "objective clm has no input prefix, which model.prefix_lm needs; choose pairs, or "
       "span_corruption with corruption: prefix_lm, or set prefix_lm to false"},
      {"gpt2/tiny.yaml --set model.prefix_lm=true --set model.relative_positions=4",
       "model.relative_positions 4 does not go with model.prefix_lm; choose other positions, or set prefix_lm to "
       "false"},
      {"gpt2/tiny.yaml --set model.prefix_lm=true --set model.attention.kind=performer",
       "model.prefix_lm needs attention of kind full, it is performer; choose that, or set prefix_lm to false"},
      {"bart/tiny.yaml --set model.decoder_attention_heads=3",
       "model.hidden_size 128 is not a multiple of model.decoder_attention_heads 3; choose a number of heads that "
       "divides it"},
      {"t5/tiny.yaml --set model.attention.kind=linformer",
       "model.relative_attention_num_buckets 32 needs attention of kind full, it is linformer; choose that, or other "
       "positions"},
      {"t5/tiny.yaml --set model.relative_attention_max_distance=16",
       "model.relative_attention_max_distance 16 leaves no distances for the logarithmic buckets; raise it above 16"},
      {"bart/tiny.yaml --set model.is_decoder=true",
       "'model.is_decoder' is true: an encoder-decoder family; leave it out, or choose architecture: decoder"},
      {"bert/tiny.yaml --set model.architecture=two_stream",
       "model.architecture two_stream is not available for bert; choose encoder or decoder"},
      {"lstm/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm needs bidirectional attention, and lstm is causal; choose clm, or another model"},
      {"lstm/tiny.yaml --set 'objectives=[{kind: mntp}]'",
       "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and lstm has no "
       "attention; choose clm, or another model"},
      {"xlnet/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm does not support xlnet, which predicts from its query stream; choose objective kind: plm"},
      {"bert/tiny.yaml --set 'objectives=[{kind: plm}]'",
       "objective plm needs a query stream, which bert does not have; choose model kind: xlnet"},
      {"xlnet/tiny.yaml --set 'objectives=[{kind: plm},{kind: mlm}]'",
       "objective plm makes its own rows and cannot be combined with mlm; keep one of them"},
      {"albert/tiny.yaml --set model.architecture=decoder --set 'objectives=[{kind: clm}]'",
       "objective clm multiplies hidden states of width 128 by the token embeddings of width 64; set "
       "model.embedding_size to 0, "
       "tie_word_embeddings to false, or give clm a transform"},
      {"transformer/multi30k.yaml --set data.max_seq_length=64",
       "does not hold pairs of texts; prepare them with --format pairs", 1},
      {"bert/tiny.yaml --set 'objectives=[{kind: mlm, mixture: [{share: 0}, {share: 0, unit: word}]}]'",
       "mlm.mixture: the shares sum to 0; give at least one masking a `share` above 0"},
      {"bert/tiny.yaml --set 'objectives=[{kind: mlm, mixture: [{unit: word}, {unit: span, count: bernoulli}]}]'",
       "mlm.mixture.1: count: bernoulli draws single tokens or words; with unit: span choose count: rounded, ceil or "
       "stochastic"},
      {"electra/tiny.yaml --set 'objectives.0.mlm.mixture=[{mask_prob: 0.8, random_prob: 0.3}]'",
       "rtd.mlm.mixture.0: mask_prob 0.8 and random_prob 0.3 add up to more than 1; lower one of them"},
      {"bert/tiny.yaml --set 'data.mixture=[{tokens: a, weight: 1}, {tokens: b, weight: -1}]'",
       "data.mixture.1.weight is -1, and a text needs a share above 0; raise it, or leave the text out"},
      {"bert/tiny.yaml --set 'data.mixture=[{tokens: a, weight: 1e308}, {tokens: b, weight: 1}]'",
       "data.mixture.0.weight is 1e+308, more than 1e+09; weights are relative, so divide all by the same number"},
      {"bert/tiny.yaml --set 'data.mixture=[{tokens: a}]'",
       "data.mixture.0.weight is 0, and a text needs a share above 0"},
      {"bert/tiny.yaml --set 'data.mixture=[{weight: 1}]'",
       "data.mixture.0 names no tokens; give it a folder made by `cloze prepare`"},
      {"xlnet/tiny.yaml --set model.mem_len=8 --set model.reuse_len=8 --set data.packing=full --set "
       "data.short_seq_prob=0 --set 'data.mixture=[{tokens: a, weight: 1}, {tokens: b, weight: 1}]'",
       "data.mixture takes every row from another text, and the mems of model.mem_len and model.reuse_len continue one "
       "text from step to step; name one text, or set model.mem_len to 0"},
      {"bert/tiny.yaml --set 'objectives=[{kind: classification}]' --set 'data.mixture=[{tokens: a, weight: 1}]'",
       "data.mixture mixes texts, and the rows of a task are as they were prepared; leave it out"},
      {"bert/tiny.yaml --set init.from=nowhere",
       "nowhere: no such run directory; name one that `cloze pretrain` or `cloze import` made", 1}};
  const auto& w = world();
  const auto run = w.dir / "x";
  for (const auto& [config, sentence, code] : rules)
    check_refused(
        std::string("pretrain " SOURCE_DIR "/configs/") + config + " --set data.tokens=" + w.tokens + " --run " + run,
        code, sentence);
  CHECK_FALSE(std::filesystem::exists(run));
}
