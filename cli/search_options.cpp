// Options of text generation, shared by `generate` and `evaluate`.
#include "cli/verbs.h"

namespace cloze {

void add_search_options(CLI::App& verb, SearchConfig& s, int64_t& batch_size) {
  const auto add = [&](const char* group, const char* name, auto& field, const char* help) {
    return verb.add_option(name, field, help)->capture_default_str()->group(group);
  };
  const char *generation = "Generation", *beams = "Beam search", *sampling = "Sampling";
  add(generation, "--max-new-tokens", s.max_new_tokens, "maximum number of generated tokens");
  add(generation, "--min-new-tokens", s.min_new_tokens, "number of tokens before which a text cannot end");
  add(generation, "--no-repeat-ngram-size", s.no_repeat_ngram_size,
      "no n-gram of this size occurs twice; 0 = no limit");
  add(generation, "--repetition-penalty", s.repetition_penalty,
      "divides the scores of tokens that already occur; above 1 discourages repetition");
  add(generation, "--forced-bos-token-id", s.forced_bos_token_id, "id of the first generated token; -1 = free");
  add(generation, "--forced-eos-token-id", s.forced_eos_token_id,
      "id of the last token of a text that reaches the maximum length; -1 = free");
  add(generation, "--batch-size", batch_size, "texts per batch")->check(CLI::Range(1, 1 << 16));
  add(beams, "--num-beams", s.num_beams, "number of beams; 1 = greedy search");
  add(beams, "--length-penalty", s.length_penalty,
      "scores are divided by length to this power; above 0 favours longer texts");
  add(beams, "--early-stopping", s.early_stopping,
      "stop at num-beams finished texts (true), when better ones are unlikely (false), or when they are impossible "
      "(never)")
      ->check(CLI::IsMember({"true", "false", "never"}));
  add(beams, "--num-beam-groups", s.num_beam_groups, "groups for diverse beam search");
  add(beams, "--diversity-penalty", s.diversity_penalty,
      "subtracted from a token's score for each earlier group that chose it");
  verb.add_flag("--do-sample,--sample", s.do_sample, "sample tokens instead of taking the most likely")
      ->group(sampling);
  add(sampling, "--temperature", s.temperature, "divides the logits; below 1 sharpens the distribution");
  add(sampling, "--top-k", s.top_k, "sample from the k most likely tokens; 0 = all");
  add(sampling, "--top-p", s.top_p, "nucleus sampling: from the most likely tokens with this total probability");
  add(sampling, "--typical-p", s.typical_p, "locally typical sampling: from tokens with this total probability");
  add(sampling, "--seed", s.seed, "random seed");
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
