// Options of text generation, shared by `generate` and `evaluate`.
#include "cli/verbs.h"

namespace cloze {

namespace {

template <class T>
CLI::Option* add(CLI::App& verb, const char* group, const char* name, T& field, const char* help) {
  return verb.add_option(name, field, help)->capture_default_str()->group(group);
}

void add_lengths(CLI::App& verb, SearchConfig& s, int64_t& batch_size) {
  constexpr const char* group = "Generation";
  add(verb, group, "--max-new-tokens", s.max_new_tokens, "maximum number of generated tokens");
  add(verb, group, "--min-new-tokens", s.min_new_tokens, "number of tokens before which a text cannot end");
  add(verb, group, "--no-repeat-ngram-size", s.no_repeat_ngram_size,
      "no n-gram of this size occurs twice; 0 = no limit");
  add(verb, group, "--repetition-penalty", s.repetition_penalty,
      "divides the scores of tokens that already occur; above 1 discourages repetition");
  add(verb, group, "--forced-bos-token-id", s.forced_bos_token_id, "id of the first generated token; -1 = free");
  add(verb, group, "--forced-eos-token-id", s.forced_eos_token_id,
      "id of the last token of a text that reaches the maximum length; -1 = free");
  add(verb, group, "--batch-size", batch_size, "texts per batch")->check(CLI::Range(1, 1 << 16));
}

void add_beams(CLI::App& verb, SearchConfig& s) {
  constexpr const char* group = "Beam search";
  add(verb, group, "--num-beams", s.num_beams, "number of beams; 1 = greedy search");
  add(verb, group, "--length-penalty", s.length_penalty,
      "scores are divided by length to this power; above 0 favours longer texts");
  std::string help = "when a search ends:";
  for (const auto& one : choices(EarlyStopping{}))
    help += concat(help.ends_with(':') ? " " : ", ", one.name, " = ", one.words);
  add_choice<EarlyStopping>(verb, "--early-stopping", s.early_stopping, help)->group(group);
  add(verb, group, "--num-beam-groups", s.num_beam_groups, "groups for diverse beam search");
  add(verb, group, "--diversity-penalty", s.diversity_penalty,
      "subtracted from a token's score for each earlier group that chose it");
}

void add_sampling(CLI::App& verb, SearchConfig& s) {
  constexpr const char* group = "Sampling";
  verb.add_flag("--do-sample,--sample", s.do_sample, "sample tokens instead of taking the most likely")->group(group);
  add(verb, group, "--temperature", s.temperature, "divides the logits; below 1 sharpens the distribution");
  add(verb, group, "--top-k", s.top_k, "sample from the k most likely tokens; 0 = all");
  add(verb, group, "--top-p", s.top_p, "nucleus sampling: from the most likely tokens with this total probability");
  add(verb, group, "--typical-p", s.typical_p, "locally typical sampling: from tokens with this total probability");
  add(verb, group, "--seed", s.seed, "random seed");
}

}  // namespace

void add_search_options(CLI::App& verb, SearchConfig& search, int64_t& batch_size) {
  add_lengths(verb, search, batch_size);
  add_beams(verb, search);
  add_sampling(verb, search);
}

void check_search_options(const CLI::App& verb, const SearchConfig& s) {
  for (const char* name : {"--temperature", "--top-k", "--top-p", "--typical-p", "--seed"})
    require<ConfigError>(verb.count(name) == 0 || s.do_sample, name,
                         " applies to sampling only; add --do-sample, or leave it out");
  for (const char* name : {"--length-penalty", "--early-stopping"})
    require<ConfigError>(verb.count(name) == 0 || s.num_beams > 1, name,
                         " applies to beam search only; set --num-beams above 1, or leave it out");
}

}  // namespace cloze
