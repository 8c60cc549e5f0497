#include "run/records/metrics.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += digits;
  }
  return text;
}

}  // namespace

TEST_CASE("TensorBoard records carry their lengths and checksums", "[run][metrics]") {
  const auto record = tf_record("abc");
  CHECK(record.size() == 8 + 4 + 3 + 4);
  CHECK(record.substr(12, 3) == "abc");
  // CRC-32C of "123456789" is e3069283; the record masks it.
  const auto known = tf_record("123456789");
  uint32_t masked = 0;
  std::memcpy(&masked, known.data() + known.size() - 4, 4);
  const uint32_t crc = 0xe3069283;
  CHECK(masked == static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8));
  CHECK(session_start_event(1.0, 5).substr(9) == std::string("\x10\x05\x3A\x02\x08\x01"));
  CHECK(scalar_event(1.0, 3, "loss", 2.0F).find("loss") != std::string::npos);
}

// The bytes are those of the protobuf messages of the Python package tensorboard 2.21.
TEST_CASE("a text is an event of TensorBoard's text plugin", "[run][metrics]") {
  CHECK(hex(text_event(1.0, "config", "    a: 1\n")) ==
        "09000000000000f03f2a360a340a13636f6e6669672f746578745f73756d6d61727942130807120412020801420920202020613a20310a"
        "4a08"
        "0a060a0474657874");
}

TEST_CASE("hyperparameters are numbers, booleans and texts of TensorBoard's hparams plugin", "[run][metrics]") {
  CHECK(
      hex(hparams_event(1.0, {{"a.rate", "0.5"}, {"b", "true"}, {"c", "bert"}})) ==
      "09000000000000f03f2a650a630a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f4a430a410a0768706172616d73"
      "12"
      "361a340a130a06612e72617465120911000000000000e03f0a070a0162120220010a0b0a016312061a046265727429000000000000f03f");
}

TEST_CASE("TensorBoard gets config, hyperparameters and the baselines of held-out losses", "[run][metrics]") {
  const TempDir dir;
  {
    Metrics metrics(dir.path, 0, 0);
    metrics.describe("train:\n  seed: 7\n", {{"train.seed", "7"}});
    const auto files = fs::directory_iterator(dir.path);
    CHECK(std::distance(begin(files), end(files)) == 1);  // metrics.jsonl: no events before the first number
    metrics.write({{"step", 3}, {"held_out", {{"mlm_loss", 2.5}, {"mlm_baseline_loss", 2.75}}}});
  }
  std::string events;
  for (const auto& entry : fs::directory_iterator(dir.path))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) events += read_file(entry.path());
  CHECK_THAT(events, Catch::Contains("config/text_summary") && Catch::Contains("    train:\n      seed: 7\n"));
  CHECK_THAT(events, Catch::Contains("_hparams_/session_start_info") && Catch::Contains("train.seed"));
  CHECK_THAT(events, Catch::Contains("held_out/mlm_baseline_loss"));
}
