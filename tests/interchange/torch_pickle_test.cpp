#include "interchange/huggingface_weights.h"

#include <caffe2/serialize/inline_container.h>
#include <sys/stat.h>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using namespace std::string_literals;

namespace {

at::Tensor count_up(at::IntArrayRef sizes) { return at::arange(c10::multiply_integers(sizes)).view(sizes) / 4.0; }

const std::string pickles = SOURCE_DIR "/tests/interchange/pickles/";

/// A file in the format of torch.save with these opcodes; record 0 has four floats.
std::string saved(const TempDir& dir, const std::string& opcodes) {
  const auto path = dir / "pytorch_model.bin";
  std::filesystem::remove(path);
  caffe2::serialize::PyTorchStreamWriter file(path);
  const float numbers[4] = {1, 2, 3, 4};
  file.writeRecord("data.pkl", opcodes.data(), opcodes.size());
  file.writeRecord("data/0", numbers, sizeof numbers);
  file.writeEndOfFile();
  return path;
}

std::string answer(const std::string& path) {
  try {
    read_torch_pickle(path);
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "read";
}

const std::string mark = "(", empty = "}",
                  storage =
                      "(U\x07storagectorch\nFloatStorage\nU\x01"
                      "0U\x03"
                      "cpuK\x04tQ";

/// The opcodes of {'w': tensor}, given pickled offset, sizes and strides.
std::string with_tensor(const std::string& offset, const std::string& sizes, const std::string& strides) {
  return "\x80\x02}U\x01wctorch._utils\n_rebuild_tensor_v2\n("s + storage + offset + sizes + strides + "\x89}tRs.";
}

}  // namespace

TEST_CASE("a state_dict is read in all formats of torch.save since version 1.6", "[interchange]") {
  for (const std::string name : {"protocol-2", "protocol-4", "protocol-5", "nested", "nested-4", "nested-tensors"}) {
    INFO(name);
    const auto found = read_torch_pickle(pickles + name + ".bin");
    CHECK(found.size() == 11);
    const auto same = [&](const std::string& key, const at::Tensor& wanted) {
      INFO(key);
      const auto& tensor = found.at(key);
      CHECK(tensor.scalar_type() == wanted.scalar_type());
      CHECK(tensor.sizes() == wanted.sizes());
      CHECK(at::equal(tensor, wanted));
    };
    same("table", count_up({3, 4}));
    same("tied", count_up({3, 4}));
    same("turned", count_up({2, 3}).t());
    same("part", count_up({5}).slice(0, 2, 4));
    same("half", count_up({3}).to(at::kHalf));
    same("bfloat", count_up({3}).to(at::kBFloat16));
    same("double", count_up({2}).to(at::kDouble));
    same("ids", at::arange(4).view({1, 4}));
    same("flags", at::tensor({1, 0}).to(at::kBool));
    same("scalar", at::tensor(2.5F).squeeze());
    same("empty", at::empty({0, 4}));
    CHECK(found.at("table").data_ptr() == found.at("tied").data_ptr());
  }
  CHECK(at::equal(read_torch_pickle(pickles + "parameters.bin").at("table"), count_up({3, 4})));
  CHECK(at::equal(read_torch_pickle(pickles + "expanded.bin").at("wide"), at::full({7}, 2.5)));
}

TEST_CASE("a torch.save file without a state_dict is refused, and the message says what to save instead",
          "[interchange]") {
  CHECK_THAT(answer(pickles + "before-1.6.bin"),
             Catch::Contains("before-1.6.bin: is in the format that torch.save wrote before version 1.6; in Python, "
                             "torch.save(torch.load(PATH, map_location='cpu'), PATH) converts it"));
  CHECK_THAT(answer(pickles + "model.bin"),
             Catch::Contains("model.bin: has an object of torch.nn.modules.linear.Linear instead of tensors by "
                             "name; save only the state_dict of the model"));
  CHECK_THAT(answer(pickles + "sparse.bin"),
             Catch::Contains(
                 "sparse.bin: 'table' is an object of torch._utils._rebuild_sparse_tensor instead of a tensor; save"));
  CHECK_THAT(answer(pickles + "protocol-1.bin"),
             Catch::Contains("protocol-1.bin: uses pickle protocol 0 or 1, which are not supported; save it without"));
  CHECK_THAT(answer(pickles + "list.bin"), Catch::Contains("list.bin: has no tensors by name; save only the"));
  TempDir dir;
  REQUIRE(mkfifo((dir / "pipe.bin").c_str(), 0600) == 0);
  CHECK_THAT(answer(dir / "pipe.bin"), Catch::Contains("pipe.bin: is not a regular file; get it again"));
}

TEST_CASE("opcodes that torch.save never writes are refused without allocating memory", "[interchange]") {
  TempDir dir;
  const auto refused = [&](const std::string& opcodes, const std::string& sentence) {
    CHECK_THAT(answer(saved(dir, opcodes)), Catch::Contains("pytorch_model.bin: ") && Catch::Contains(sentence));
  };
  CHECK(answer(saved(dir, with_tensor("K\x00"s, "K\x02K\x02\x86", "K\x02K\x01\x86"))) == "read");
  CHECK(answer(saved(dir, with_tensor("K\x02"s, "K\x02\x85", "K\x01\x85"))) == "read");
  // A memo index of 2^31 - 1 or 2^32 - 1 takes one entry.
  refused("\x80\x02}r\xff\xff\xff\x7f."s, "has no tensors by name");
  refused("\x80\x02}r\xff\xff\xff\xff."s, "has no tensors by name");
  const auto longer = "tensor 'w' is longer than its data in the file; the file is damaged";
  refused(with_tensor("K\x00"s, "K\x05\x85", "K\x01\x85"), longer);
  refused(with_tensor("K\x03"s, "K\x02\x85", "K\x01\x85"), longer);
  refused(with_tensor("K\x00"s, "K\x02K\x02\x86", "K\x03K\x01\x86"), longer);
  refused(with_tensor("K\x00"s, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"s, "K\x00\x85"s), longer);
  refused(with_tensor("K\x00"s, "K\x02K\x02\x86", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x01\x86"s), longer);
  refused(with_tensor("J\xff\xff\xff\xff"s, "K\x02\x85", "K\x01\x85"), "a tensor without its strides");
  refused(with_tensor("K\x00"s, "J\xff\xff\xff\xff\x85"s, "K\x01\x85"), "an invalid size");
  refused("\x80\x02X\xff\xff\xff\x7fno such length."s, "unexpected end");
  refused("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffno such length."s, "unexpected end");
  refused("\x80\x02}", "unexpected end");
  refused("\x80\x02\x80", "unexpected end");
  refused("\x80\x02h\x07.", "a memo entry is missing");
  refused("\x80\x02u.", "a mark is missing");
  refused("\x80\x02](K\x01u.", "items without a container");
  refused("\x80\x02R.", "a value is missing");
  refused("\x80\x02}}R.", "a value of the wrong type");
  refused("\x80\x09}.", "unknown pickle protocol 9");
  refused("\x80\x02P1\n.", "unknown opcode 80");
  refused("\x80\x02}U\x01wU\x01xs.", "has no tensors by name");
  refused("\x80\x02}K\x01U\x01xs.", "has an entry without a name");
  refused("\x80\x02}U\x01wcos\nsystem\n(U\x02lstRs.", "'w' is an object of os.system instead of a tensor");
  refused(
      "\x80\x02}U\x01w(U\x07storagectorch\nComplexFloatStorage\nU\x01"
      "0U\x03"
      "cpuK\x04tQs.",
      "has values of torch.ComplexFloatStorage, which are not supported; save them as floats");
  refused(
      "\x80\x02}U\x01w(U\x07storagectorch\nFloatStorage\nU\x01"
      "7U\x03"
      "cpuK\x04tQs.",
      "cannot be read (");
  refused("\x80\x02" + std::string(200000, ']') + std::string(199999, 'a') + ".", "has no tensors by name");
  refused("\x80\x02" + std::string((16 << 20) + 1, ']') + ".", "bytes of opcodes in its data.pkl");
}

TEST_CASE("a damaged byte of a torch.save file is ignored or refused, never a crash", "[interchange]") {
  TempDir dir;
  const auto good = with_tensor("K\x00"s, "K\x02K\x02\x86", "K\x02K\x01\x86");
  for (size_t i = 0; i < good.size(); ++i)
    for (const int change : {1, 0x7f, 0x80, 0xff}) {
      auto bad = good;
      bad[i] = static_cast<char>(bad[i] ^ change);
      const auto said = answer(saved(dir, bad));
      CHECK((said == "read" || said.find("pytorch_model.bin: ") != std::string::npos));
    }
}
