#include "core/tensor/safetensors.h"

#include <ATen/ATen.h>
#include <sys/stat.h>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

}  // namespace

TEST_CASE("tensors of every dtype survive a round trip", "[safetensors]") {
  TempDir dir;
  std::vector<NamedTensor> all;
  for (const auto type : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kHalf, at::kBFloat16, at::kBool, at::kByte,
                          at::kChar, at::kShort})
    all.push_back({c10::toString(type), at::arange(6).remainder(2).view({2, 3}).to(type)});
  all.push_back({"empty", at::empty({0, 4})});
  all.push_back({"scalar", at::scalar_tensor(3.5)});
  all.push_back({"strided", at::arange(6, at::kFloat).view({2, 3}).t()});
  save_safetensors(dir / "a.safetensors", all, {{"who", "me"}});
  const auto file = SafeTensors::open(dir / "a.safetensors");
  for (const auto& [name, tensor] : all) CHECK(at::equal(file.get(name), tensor));
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.metadata().at("who") == "me");
  CHECK_THROWS_WITH(file.get("scala"), Catch::Contains("has no tensor 'scala'; did you mean 'scalar'?"));
}

TEST_CASE("broken and hostile files are rejected with a message", "[safetensors]") {
  TempDir dir;
  const auto message = [&](const std::string& content) -> std::string {
    try {
      const auto file = SafeTensors::open(dir.write("x.safetensors", content));
      return "accepted";
    } catch (const CheckpointError& e) {
      return e.what();
    }
  };
  CHECK_THAT(message(""), Catch::Contains("is no safetensors file (it is empty)"));
  CHECK_THAT(message("abc"), Catch::Contains("too short for a safetensors file"));
  CHECK_THAT(message(std::string(8, '\xff') + "{}"), Catch::Contains("it is cut off or no safetensors file"));
  CHECK_THAT(message(file_of("[1]", "")), Catch::Contains("is not JSON"));
  CHECK_THAT(message(file_of(std::string(1000, '['), "")), Catch::Contains("nested too deep"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                             "abcd")),
             Catch::Contains("names 'a' twice"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd")),
             Catch::Contains("its shape needs 8 bytes"));
  const std::string long_name(100'000, ' ');
  const auto unknown =
      message(file_of("{\"" + long_name + R"(":{"dtype":"F\n8","shape":[1],"data_offsets":[0,1]}})", "a"));
  CHECK_THAT(unknown, Catch::Contains("has dtype F\\n8, which is not supported; convert it to F32"));
  CHECK(unknown.size() < 1000);
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}})",
                             "abcd")),
             Catch::Contains("shape that is too large"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "abcdefgh")),
             Catch::Contains("bytes 0 to 4 of its data belong to no tensor"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcdefgh")),
             Catch::Contains("holds 8 bytes of data, its header says 4"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", "abcd")),
             Catch::Contains("has dtype F99, which is not supported"));
  CHECK_THAT(message(file_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "abcd")),
             Catch::Contains("not made of whole numbers"));
  const std::string whole = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  CHECK(message(file_of(whole + "  ", "abcd")) == "accepted");
  for (const auto& header : {"\xef\xbb\xbf" + whole, whole + std::string(2, '\0'), " " + whole})
    CHECK_THAT(message(file_of(header, "abcd")), Catch::Contains("does not begin with '{', or contains NUL bytes"));
  std::string many;
  for (int i = 0; i < 150'000; ++i)
    many += (i ? "," : "") + ("\"" + std::to_string(i)) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  CHECK_THAT(message(file_of("{" + many + "}", "")), Catch::Contains("names more than 100000 tensors"));
}

TEST_CASE("a pipe in the place of weights is refused, not waited for", "[safetensors]") {
  TempDir dir;
  REQUIRE(mkfifo((dir / "w.safetensors").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(SafeTensors::open(dir / "w.safetensors"), Catch::Contains("w.safetensors: is no safetensors file"));
}

TEST_CASE("no flipped or missing byte of a header crashes the reader", "[safetensors]") {
  TempDir dir;
  save_safetensors(dir / "a.safetensors", {{"first", at::ones({3})}, {"second", at::ones({2, 2}, at::kLong)}});
  const auto whole = read_file(dir / "a.safetensors");
  const auto survives = [&](const std::string& content) {
    try {
      const auto file = SafeTensors::open(dir.write("b.safetensors", content));
      for (const auto& name : file.names()) file.get(name).sum();
    } catch (const Error&) {
    }
  };
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char mask : {'\x01', '\x20', '\x80'}) {
      auto damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      survives(damaged);
    }
  for (size_t length = 0; length < whole.size(); ++length)
    CHECK_THROWS_AS(SafeTensors::open(dir.write("c.safetensors", whole.substr(0, length))), CheckpointError);
}

TEST_CASE("a failed write names the reason and leaves no partial file", "[safetensors]") {
  TempDir dir;
  CHECK_THROWS_WITH(save_safetensors(dir / "none/a.safetensors", {{"a", at::ones({1})}}),
                    Catch::Contains("cannot be written (No such file or directory)"));
}
