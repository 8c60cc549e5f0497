#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

TEST_CASE("a report of runs goes to the file that is named, in the form of its ending, or to standard output") {
  const auto& run = world().run;
  const auto page = world().dir / "report.html";
  CHECK_THAT(cloze("report " + run).text, Catch::Contains("compared by mlm, the first of the held-out losses"));
  check_refused("report " + run + "-none", 1, "no such run directory");
  check_refused("report " + run + " --format pdf", 2, "--format is 'pdf', must be one of");
  check_refused("report " + run + " --metric mlm --unit bits_per_byte", 2, "mlm predicts a part of the text only");
  const auto written = cloze("report " + run + " --metric mlm --out " + page);
  CHECK(cloze("report " + run + " --metric mlm --output " + page).text == written.text);
  CHECK(written.code == 0);
  CHECK(written.text == page + "\n");
  CHECK(read_file(page).starts_with("<!doctype html>"));
  CHECK(cloze("report " + run + " --metric mlm --format html").text.starts_with("<!doctype html>"));
  CHECK(cloze("report " + run + " --metric mlm --format csv").text.starts_with("kind,arm,seed"));
  CHECK(json_of(cloze("report " + run + " --metric mlm --json"))["arms"].size() == 1);
}

TEST_CASE("no output takes the place of a file that the command reads", "[cli]") {
  TempDir dir;
  const auto refused = [&](const std::string& before, const std::string& file, const std::string& option) {
    const auto text = read_file(file);
    check_refused(before + " " + option + " " + file, 2,
                  option + " " + file + ": is a file that is read, which would be lost; name another");
    CHECK(read_file(file) == text);
  };
  const auto table = dir.write("points.csv", "params,tokens,loss\n1,2,3\n");
  refused("fit " + table, table, "--plot");
  const auto text = dir.write("lines.txt", "The cat sat.\n");
  refused("view " + world().run + " " + text, text, "--out");
  const auto config = dir.write("config.yaml", "model: {kind: bert}\n");
  refused("inspect objective " + config, config, "--page");
}

TEST_CASE("fit prints the law of a table in every form, and refuses what it cannot fit", "[cli]") {
  TempDir dir;
  std::string table = "params,tokens,flops,loss\n";
  for (const double size : {1e7, 1e8, 1e9, 1e10})
    for (const double ratio : {5, 20, 80}) {
      const double tokens = ratio * size;
      const double loss = 1.7 + 400 * std::pow(size, -0.34) + 1500 * std::pow(tokens, -0.36);
      std::array<char, 200> line{};
      std::snprintf(line.data(), line.size(), "%.17g,%.17g,%.17g,%.17g\n", size, tokens, 6 * size * tokens, loss);
      table += line.data();
    }
  const auto path = dir.write("points.csv", table), page = dir / "fit.html";
  const auto command = "fit " + path + " --size params --resamples 20 ";
  for (const std::string amount : {"--tokens tokens", "--flops flops"}) {
    const auto law = json_of(cloze(command + amount + " --json --plot " + page))["law"];
    CHECK(law["alpha"]["value"].get<double>() == Approx(0.34).epsilon(1e-4));
    CHECK(law["B"]["value"].get<double>() == Approx(1500).epsilon(1e-3));
  }
  CHECK_THAT(read_file(page), Catch::Contains("IsoFLOP curves"));
  CHECK_THAT(cloze(command + "--predict 70e9,1.4e12").text, Catch::Contains("Predicted"));
  const std::string head = "quantity,flops,value,low,high\nE,,", csv = cloze(command + "--format csv").text;
  CHECK_THAT(csv, Catch::StartsWith(head));
  CHECK(std::strtod(csv.c_str() + std::min(head.size(), csv.size()), nullptr) == Approx(1.7).epsilon(1e-9));
  check_refused("fit " + path, 1,
                "points.csv: has no column 'size'; its columns are params, tokens, flops, loss; name one with --size");
  check_refused(command + "--predict 70e9", 2,
                "--predict 70e9 is not a size and its tokens; write them as 70e9,1.4e12");
  check_refused(command + path, 2, "a fit takes one study, one CSV file, or run directories");
  check_refused("fit " + dir.write("few.csv", "size,tokens,loss\n1,2,3\n"), 1,
                "1 point does not determine the 5 parameters of a scaling law; give 6 or more");
}

TEST_CASE("a study without tokens and one of a thousand runs are refused before the first run", "[cli]") {
  TempDir dir;
  const std::string arms = "study: s\nbase: " SOURCE_DIR "/configs/bert/tiny.yaml\nbudget: {steps: 2}\npoints: 1\n";
  dir.write("bare.yaml", arms + "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  check_refused("study run " + dir / "bare.yaml" + " --out " + dir / "bare", 2, "names no tokens to train on");
  const auto set =
      "set: {data.tokens: " + world().tokens +
      ", model.hidden_size: 32, model.intermediate_size: 32, data.max_seq_length: 32, train.batch_size: 4}\n";
  dir.write("many.yaml", arms + set + "seeds: 500\narms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  check_refused("study run " + dir / "many.yaml" + " --out " + dir / "many < /dev/null", 2,
                "asks for 1,000 runs; if that is meant, give --yes");
  CHECK_FALSE(fs::exists(dir / "many"));  // nothing was probed either
  dir.write("named.yaml",
            "study: s\nbase: bert/tiny\nbudget: {steps: 2}\npoints: 1\narms: {a: {}, b: {train.batch_size: 4}}\n");
  check_refused("study run " + dir / "named.yaml" + " --out " + dir / "named", 2, "names no tokens to train on");
  dir.write("tasks.yaml", arms + set + "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\ntasks: {files: [sst3]}\n");
  check_refused("study plan " + dir / "tasks.yaml", 2, "sst3: no such file, and no ready task; did you mean 'sst2'?");
  dir.write("two.yaml", arms + set +
                            "seeds: 1\nmetric: {objective: mlm, sequences: 4}\n"
                            "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  const auto two = dir / "two.yaml" + " --out " + dir / "two";
  const auto plan = cloze("study plan " + two);
  CHECK_THAT(plan.text, Catch::Contains("2 arms x 1 seed = 2 runs") && Catch::Contains("FLOPs") &&
                            Catch::Contains("one seed gives no interval"));
  CHECK_THAT(cloze("study run " + two + " --only a").text, Catch::Contains(", 1 of 1\n"));
  CHECK_THAT(cloze("study run " + two).text, Catch::Contains(", 2 of 2\n"));  // what was done before counts
  CHECK_THAT(cloze("study commands " + two).text, Catch::Contains("no run is left to start"));
  dir.write("failing.yaml",
            arms + set +
                "seeds: 1\nmetric: {objective: mlm, sequences: 4}\narms: {a: {}, b: {optimizer.learning_rate: 1e3, "
                "schedule.warmup: 0, train.on_divergence: stop, checkpoint.log_every: 1}}\n");
  const auto failing = cloze("study run " + dir / "failing.yaml" + " --out " + dir / "failing");
  CHECK(failing.code == 1);
  CHECK_THAT(failing.text, Catch::Contains("1 run done, 1 failed") &&
                               Catch::Contains("cloze: error: 1 of 2 runs has failed, b/1: ") &&
                               Catch::Contains("; mend that, and the same command goes on"));
}
