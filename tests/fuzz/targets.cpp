#include "tests/fuzz/targets.h"

namespace cloze {

std::vector<FuzzTarget> fuzz_targets() {
  return {{"config", fuzz_config},
          {"override", fuzz_override},
          {"tokenizer_json", fuzz_tokenizer_json},
          {"tokenizer_facts", fuzz_tokenizer_facts},
          {"vocab_txt", fuzz_vocab_txt},
          {"byte_bpe", fuzz_byte_bpe},
          {"sentencepiece", fuzz_sentencepiece, {"data/tokenizers/families/bare.model"}},
          {"text", fuzz_text},
          {"gz", fuzz_gz},
          {"xz", fuzz_xz},
          {"manifest", fuzz_manifest},
          {"shard", fuzz_shard},
          {"plot", fuzz_plot},
          {"state", fuzz_state},
          {"checkpoint", fuzz_checkpoint},
          {"safetensors", fuzz_safetensors},
          {"pickle", fuzz_pickle},
          {"torch_file", fuzz_torch_file, {"interchange/pickles/model.bin", "interchange/pickles/nested-4.bin"}},
          {"huggingface_config", fuzz_huggingface_config, {"parity/bert/config.json", "parity/t5/config.json"}},
          {"suite_lines", fuzz_suite_lines},
          {"suite_table", fuzz_suite_table},
          {"python_json", fuzz_python_json},
          {"task_file", fuzz_task_file},
          {"task_data", fuzz_task_data}};
}

}  // namespace cloze
