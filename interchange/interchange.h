#pragma once
// Import and export of models: Hugging Face folders, TorchScript files with a receipt, and parity checks.
#include "run/run.h"

namespace cloze {

/// The receipt in a folder that `export_huggingface` wrote: sizes and checksums of its files.
inline constexpr const char* export_receipt = "cloze_export.json";

/// Summary of an import, for the log.
struct ImportReport {
  std::string architecture;  ///< `BertForPreTraining`
  int64_t tensors = 0, parameters = 0;
  std::vector<std::string> ignored, fresh;  ///< tensors not used; parameters not in the file
};

/// Creates a run directory from a Hugging Face folder: config.json; model.safetensors or pytorch_model.bin, or shards
/// of either with an index; tokenizer files, if any. `generator`: the folder of ELECTRA's generator if `folder` is that
/// of the discriminator; the run holds both, for further pretraining. Throws CheckpointError, also for a folder that is
/// not what its receipt says, or ConfigError.
ImportReport import_huggingface(const std::string& folder, const std::string& run, const std::string& generator = "");

/// Writes config.json, model.safetensors and tokenizer files, as `from_pretrained` loads them, a receipt, and a
/// model card, README.md. `part`: `generator` of a run with replaced token detection, or empty. An existing model
/// folder is refused, or with `replace` replaced, all but its README.md; other non-empty folders are never replaced.
/// The folder is written atomically. Throws ConfigError.
void export_huggingface(const std::string& run, const std::string& out, const std::string& part = "",
                        bool replace = false);

/// Writes every checkpoint that a run keeps for checkpoint.at_words as a Hugging Face folder `out`/chck_7M, and
/// `main_checkpoint` as `out`/main; returns the names, main last. All of them are put in place at once, in a folder
/// that holds nothing else. Nothing is written where one of them exists and may not be replaced. Throws ConfigError,
/// CheckpointError for a run without such checkpoints.
std::vector<std::string> export_revisions(const std::string& run, const std::string& main_checkpoint,
                                          const std::string& out, const std::string& part = "", bool replace = false);

/// The reader for which `Tokenizer::save` writes the tokenizer of an export: the family's special tokens, the longest
/// input, a space before the first word where the head is one of tags, whose words have theirs, and the id of padding
/// by which GPT-2's class finds the last token of a text.
TextReader reader_of(const LoadedRun& run);

/// Writes the tokenizer of an export for that reader. A fine-tuned run reads texts as it was trained to:
/// model_max_length is the length of the rows of its task, whatever came with the tokenizer.
void save_tokenizer(const LoadedRun& run, const std::string& folder);

/// The comparison of an exported file with its model.
struct Receipt {
  std::string path;
  std::vector<std::pair<std::string, double>> largest_error;  ///< by output name, over all tested shapes
  std::vector<std::string> shapes;                            ///< `1x1`, `3x11`, ...
  double tolerance = 0;
  bool passed = false;
};

/// Writes a TorchScript file that needs only LibTorch or PyTorch: forward(input_ids, attention_mask=None,
/// token_type_ids=None) -> Dict[str, Tensor]. Then loads it in a new process (`self` is the program to start), runs it
/// at other shapes, compares it with the network, and writes the receipt next to it as PATH.receipt.json. dtype:
/// float32, bfloat16. An existing file is refused (ConfigError), or with `replace` replaced; file and receipt are
/// written when both are complete.
Receipt export_torchscript(const std::string& run, const std::string& out, const std::string& dtype,
                           const std::string& self, const std::string& part = "", bool replace = false);

/// The part of `export_torchscript` in the new process: runs `script` on the inputs of `cases` (safetensors:
/// input_ids.K, attention_mask.K, token_type_ids.K) and writes its outputs (NAME.K) to `out`.
void run_torchscript(const std::string& script, const std::string& cases, const std::string& out);

/// One tensor of a parity case.
struct ParityRow {
  std::string name;
  double error = 0, tolerance = 0;  ///< absolute for outputs (tolerance 0 for ids, else 1e-5 of the largest entry, at
                                    ///< least 1e-5), relative for the loss, relative to the largest entry for gradients
  bool passed = false;
  std::string note;  ///< why nothing was compared; empty if it was
};

/// Runs a golden case (config.json, model.safetensors, inputs.safetensors, expected.safetensors) and compares every
/// expected tensor, gradients included.
std::vector<ParityRow> verify_parity(const std::string& folder);

}  // namespace cloze
