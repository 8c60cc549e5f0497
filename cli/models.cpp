#include <algorithm>

#include "cli/engine.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "data/token_store.h"

namespace cloze {

namespace {

void verify_data(const std::string& folder) {
  for (const auto* split : {"train", "valid"}) {
    const TokenStore store(folder, split);
    store.verify();
    log_info("data", words(folder, " ", split, ": ", thousands(store.num_documents()), " documents, ",
                           thousands(store.num_tokens()), " tokens, checksums hold"));
  }
}

void add_verify(CLI::App& app, Globals& globals) {
  auto* verify = app.add_subcommand("verify", "prove it: numbers against golden cases, files against their checksums");
  verify->require_subcommand(1);
  verify->footer("Example:\n  cloze verify parity tests/parity/bert");

  auto* parity = verify->add_subcommand("parity", "a golden case: every expected tensor, gradients included");
  auto command = std::make_shared<VerifyParityCommand>();
  parity->add_option("folder", command->folder, "config.json, model, inputs and expected .safetensors")->required();
  parity->add_flag("--json", command->json, "one line of JSON on standard output");
  parity->footer("Example:\n  cloze verify parity tests/parity/bert");
  parity->callback([command, &globals] { globals.exit_code = run_engine(*command); });

  auto path = std::make_shared<std::string>();
  auto* data = verify->add_subcommand("data", "every byte of prepared tokens against its checksum");
  data->add_option("folder", *path, "folder that `cloze prepare` made")->required();
  data->footer("Example:\n  cloze verify data tokens");
  data->callback([path] { verify_data(*path); });
  auto* run = verify->add_subcommand("run", "every checkpoint of a run against its manifest");
  run->add_option("run", *path, "run directory")->required();
  run->footer("Example:\n  cloze verify run runs/first");
  run->callback([path, &globals] { globals.exit_code = run_engine(VerifyRunCommand{*path}); });

  auto* script = verify->add_subcommand("torchscript-run", "");
  auto inner = std::make_shared<RunTorchScriptCommand>();
  script->add_option("script", inner->script)->required();
  script->add_option("cases", inner->cases)->required();
  script->add_option("out", inner->out)->required();
  script->group("");  // called by `export` in a new process; of no use by hand
  script->callback([inner, &globals] { globals.exit_code = run_engine(*inner); });
}

}  // namespace

void add_model_verbs(CLI::App& app, Globals& globals) {
  auto* evaluate = app.add_subcommand("evaluate", "held-out loss and accuracy of a run");
  auto e = std::make_shared<EvaluateCommand>();
  evaluate->add_option("run", e->runs, "run directories, or step folders of some")->required();
  evaluate
      ->add_option("--objective", e->objectives,
                   "what to score by, KIND[:SHARE][,KEY=VALUE]...: mlm:0.15, mlm:0.4, mlm,unit=word, clm; may be given "
                   "again (default: evaluation.objectives of the run)")
      ->allow_extra_args(false);
  evaluate->add_option("--set", e->set, "override: evaluation.KEY=VALUE; may be given again")->allow_extra_args(false);
  auto* text = evaluate->add_option("--text", e->text,
                                    "files to evaluate on, or - for standard input; read with the run's tokenizer");
  evaluate->add_option("--target", e->target, "pairs: files with the other side of --text, line by line")->needs(text);
  evaluate->add_option("--format", e->format, "of --text: auto, text, lines, jsonl, wiki, pairs")
      ->capture_default_str();
  evaluate->add_option("--field", e->field, "of --text: the key of JSON lines that holds the text")
      ->needs(text)
      ->capture_default_str();
  evaluate
      ->add_option("--columns", e->columns,
                   "pairs: NAME,NAME, the columns of source and target, as the first line of each file of --text names "
                   "them; in JSON lines both keys")
      ->needs(text);
  evaluate->add_option("--tokens", e->tokens, "prepared folder; its held-out split is used (default: the run's own)")
      ->excludes(text);
  evaluate->add_option("--sequences", e->sequences, "sequences to score (default: evaluation.sequences of the run)");
  auto* generate = evaluate->add_flag(
      "--generate", e->generate,
      "pairs: write the target of each held-out source, and print BLEU, chrF, ROUGE and exact matches");
  const auto before = evaluate->get_options().size();
  add_search_options(*evaluate, e->search, e->batch_size);
  for (size_t i = before; i < evaluate->get_options().size(); ++i)
    if (auto* option = evaluate->get_options()[i]; !option->check_name("--batch-size"))
      option->needs(generate);  // scores are made in batches too
  evaluate->add_flag("--json", e->json, "one line of JSON on standard output");
  evaluate->footer(
      "Example:\n  cloze evaluate runs/first --text chapter.txt\n  cloze evaluate runs/a runs/b --objective mlm:0.15 "
      "--objective mlm:0.4\n  cloze evaluate runs/en-de --generate --num-beams 4\n"
      "  cloze evaluate runs/en-de --text test.en --target test.de --generate\n\n"
      "Several runs are scored on the same text with the same masks, whatever they were trained with.\n"
      "Without --text, sources and references are the prepared ones as the tokenizer gives them back, unknown pieces "
      "included.");
  evaluate->callback([e, evaluate, &globals] {
    check_search_options(*evaluate, e->search);
    require<ConfigError>((e->sequences > 0 || evaluate->count("--sequences") == 0) && e->batch_size > 0,
                         "--sequences and --batch-size must be at least 1");
    globals.exit_code = run_engine(*e);
  });

  auto* fill = app.add_subcommand("fill", "fill the blanks of a text");
  auto f = std::make_shared<FillCommand>();
  fill->add_option("run", f->run, "run directory, or one of its step folders")->required();
  fill->add_option("text", f->texts, "text with [MASK] for each blank; several are filled one by one")->required();
  fill->add_option("--top", f->top, "candidates for each blank; a model that writes gives at most so many texts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  fill->add_flag("--json", f->json, "one line of JSON for each text");
  fill->footer("Example:\n  cloze fill runs/first \"the mouse [MASK] the cheese\"");
  fill->callback([f, &globals] {
    for (auto& line : f->texts) {
      if (line[0] == bracket_guard) line.erase(0, 1);
      check_text(line);
      require<ConfigError>(line.find("[MASK]") != std::string::npos, "'", line,
                           "' has no [MASK] to fill; write [MASK] for each blank");
    }
    globals.exit_code = run_engine(*f);
  });

  auto* import = app.add_subcommand("import", "Hugging Face folder -> run directory");
  auto i = std::make_shared<ImportCommand>();
  import
      ->add_option("folder", i->folder,
                   "folder with config.json, model.safetensors or pytorch_model.bin (or shards), tokenizer files")
      ->required();
  import->add_option("--out", i->out, "run directory to make")->required();
  import->add_option(
      "--generator", i->generator,
      "of ELECTRA: the folder of the generator, beside the discriminator's; the run holds both and can be trained on");
  import->footer("Example:\n  cloze import bert-base-uncased --out runs/bert-base");
  import->callback([i, &globals] { globals.exit_code = run_engine(*i); });

  auto* export_verb = app.add_subcommand("export", "run -> TorchScript file, or Hugging Face folder");
  auto x = std::make_shared<ExportCommand>();
  export_verb->add_option("run", x->run, "run directory, or one of its step folders")->required();
  export_verb->add_option("--to", x->to, "torchscript or huggingface")
      ->required()
      ->check(CLI::IsMember({"torchscript", "huggingface"}));
  export_verb->add_option("--out", x->out, "file (torchscript) or folder (huggingface) to write")->required();
  export_verb->add_option("--dtype", x->dtype, "torchscript: float32 or bfloat16")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  export_verb
      ->add_option("--part", x->part, "generator: that of replaced token detection, instead of the discriminator")
      ->check(CLI::IsMember({"generator"}));
  export_verb->add_flag("--force", x->force, "replace a file or a model folder that is there already");
  export_verb->add_flag("--json", x->json, "one line of JSON on standard output");
  export_verb->footer(
      "Example:\n  cloze export runs/first --to torchscript --out first.pt\n\nA TorchScript file is loaded in a new "
      "process, run at other shapes and compared before it is given to you.");
  export_verb->callback([x, &globals] {
    x->program = globals.program;
    globals.exit_code = run_engine(*x);
  });
  add_verify(app, globals);
}

}  // namespace cloze
