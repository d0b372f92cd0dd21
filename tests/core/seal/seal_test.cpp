// Tests that digests don't depend on layouts and formats, and that a seal notices each change.

#include "core/seal/seal.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "core/adapters/posix/thread_tasks.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/digest/witness_digest.hpp"
#include "core/seal/content_digest.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise::test::seal_test {
namespace {

namespace fs = std::filesystem;

struct Ports {
  HostDevice device{"test", 0};
  ThreadTasks tasks;
  NoProgress progress;

  explicit Ports(int threads = 2) : tasks(threads) {}
  operator SurveyPorts() { return {device, tasks, progress}; }
};

std::map<std::string, std::uint64_t> digests_of(const std::string& fixture, int threads) {
  Checkpoint checkpoint = Checkpoint::open_any(data_store(), fixture);
  std::vector<const StoredTensor*> tensors;
  for (const auto& tensor : checkpoint.catalog().tensors) tensors.push_back(&tensor);
  Ports ports(threads);
  const auto found = content_digests(checkpoint, tensors, ports);
  std::map<std::string, std::uint64_t> digests;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    digests[tensors[t]->key] = found.tensors[t].digest;
  return digests;
}

TEST(ContentDigest, layouts_and_threads_change_nothing) {
  const auto expected = digests_of("mcore_0.16.1_gpt_tp2_pp2", 1);
  EXPECT_EQ(expected.size(), 36U);
  EXPECT_EQ(digests_of("mcore_0.16.1_gpt_tp2_pp2", 3), expected);
  EXPECT_EQ(digests_of("mcore_0.16.1_gpt_dp2", 2), expected);
}

TEST(ContentDigest, it_is_that_of_the_whole_tensor) {
  for (const std::string fixture : {"torch_2.15.0/plain_odd", "mcore_0.16.1_gpt_dp2"}) {
    Checkpoint checkpoint = Checkpoint::open_any(data_store(), fixture);
    const auto digests = digests_of(fixture, 2);
    HostDevice device("test", 0);
    Bytes staging(1U << 16U);
    for (const auto& tensor : checkpoint.catalog().tensors) {
      const Dims& shape = logical_shape(tensor);
      Bytes elements(static_cast<std::size_t>(volume(shape)) * size_of(tensor.dtype));
      TensorReader({checkpoint, device, staging}, tensor).read(Box::whole(shape), elements.data());
      EXPECT_EQ(digests.at(tensor.key),
                witness_digest(witness_key(tensor.key, name_of(tensor.dtype)), tensor.dtype, shape,
                               Box::whole(shape), elements))
          << tensor.key;
    }
  }
}

struct Row {
  const char* what;
  std::function<void(const fs::path&)> change;
  Code code;
  const char* file;
};

void append(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

TEST(Seal, each_change_is_noticed) {
  const Row rows[] = {
      {"a bit",
       [](const fs::path& at) {
         std::fstream file(at / "__0_0.distcp", std::ios::in | std::ios::out | std::ios::binary);
         file.seekg(100);
         const char byte = static_cast<char>(file.get() ^ 1);
         file.seekp(100);
         file.put(byte);
       },
       Code::kChecksum, "__0_0.distcp"},
      {"more bytes", [](const fs::path& at) { append(at / "__0_0.distcp", "x"); }, Code::kChecksum,
       "__0_0.distcp"},
      {"a file that is gone", [](const fs::path& at) { fs::remove(at / ".metadata"); },
       Code::kNotFound, ".metadata"},
      {"a new file", [](const fs::path& at) { append(at / "new.txt", "x"); }, Code::kNotRequested,
       "new.txt"},
      {"a new file further down",
       [](const fs::path& at) {
         fs::create_directories(at / "deeper");
         append(at / "deeper" / "new.txt", "x");
       },
       Code::kNotRequested, "deeper/new.txt"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    FixtureCopy copy("torch_2.15.0/plain");
    append(copy.path("ckpt") / "notes.txt", "mine");
    Checkpoint checkpoint = Checkpoint::open_any(copy.store, "ckpt");
    Ports ports;
    const Seal seal = seal_of(checkpoint, ports);
    const Seal again = read_seal(write_seal(seal), {.file = "f"});
    EXPECT_EQ(again, seal);
    EXPECT_TRUE(compare_with_seal(copy.store, "ckpt", again, ports).empty());
    row.change(copy.path("ckpt"));
    const auto findings = compare_with_seal(copy.store, "ckpt", again, ports);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].code, row.code);
    EXPECT_EQ(findings[0].severity, Severity::kError);
    EXPECT_EQ(findings[0].file, copy.store.display(std::string("ckpt/") + row.file));
  }
}

TEST(Seal, a_damaged_checkpoint_is_not_sealed) {
  FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  Checkpoint checkpoint = Checkpoint::open_any(copy.store, "ckpt");
  const StoredTensor* largest = &checkpoint.catalog().tensors.front();
  for (const auto& tensor : checkpoint.catalog().tensors) {
    if (volume(tensor.shape) > volume(largest->shape)) largest = &tensor;
  }
  const StoredChunk& chunk = largest->chunks.front();
  const TensorItem item = checkpoint.tensor_item(*largest, chunk);
  {
    std::fstream file(checkpoint.display(chunk.file),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(chunk.range.offset + item.data_offset));
    file.put('\x55').put('\x2a');
  }
  Checkpoint damaged = Checkpoint::open_any(copy.store, "ckpt");
  Ports ports;
  const auto error = contracts::error_of([&] { seal_of(damaged, ports); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum);
  EXPECT_EQ(error->place().key, largest->key);
}

TEST(Seal, what_is_no_seal_is_refused) {
  const std::pair<const char*, Code> rows[] = {
      {"", Code::kTornFile},
      {"{}", Code::kTornFile},
      {R"({"format":"reprise-seal","version":2,"files":[],"tensors":[]})", Code::kUnsupported},
      {R"({"format":"reprise-seal","version":1,"files":{},"tensors":[]})", Code::kTornFile},
      {R"({"format":"reprise-seal","version":1,"files":[3],"tensors":[]})", Code::kTornFile},
      {R"({"format":"reprise-seal","version":1,"files":[{"name":"a","bytes":-1,"sha256":""}],"tensors":[]})",
       Code::kTornFile},
      {R"({"format":"reprise-seal","version":1,"files":[{"name":"a","bytes":1,"sha256":"x"}],"tensors":[]})",
       Code::kTornFile},
  };
  for (const auto& [text, code] : rows) {
    const auto error = contracts::error_of(
        [&, text = text] { read_seal(as_bytes(std::string_view(text)), {.file = "f"}); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->code(), code) << text;
    EXPECT_EQ(error->place().file, "f");
  }
}

}  // namespace
}  // namespace reprise::test::seal_test
