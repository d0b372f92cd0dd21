// Tests export on fixtures of the real packages and on small checkpoints: what is written is what
// is in the checkpoint, and what goes wrong leaves nothing.

#include "core/export/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/export/safetensors_form.hpp"
#include "core/geometry/convert.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

std::vector<MappedTensor> all_of(const Catalog& catalog) {
  std::vector<MappedTensor> tensors;
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    tensors.push_back(mapped(catalog.tensors[t], t));
  }
  return tensors;
}

class Export : public test::StoreTest {
 protected:
  /// Compares the tensors of "out" with those of the checkpoint.
  std::uint64_t elements_that_are_the_same(Checkpoint& source) {
    Checkpoint out = Checkpoint::open_any(store_, "out");
    const auto report = diff(source, out, device_, {}, progress_);
    for (const auto& tensor : report.tensors) {
      EXPECT_EQ(tensor.verdict, DiffVerdict::kSame) << tensor.key;
    }
    return report.elements;
  }

  ExportReport run(Checkpoint& source, const std::vector<MappedTensor>& tensors,
                   std::uint64_t shard = std::uint64_t{1} << 40U, Store* store = nullptr) {
    SafetensorsForm form(shard);
    ThreadTasks tasks(3);
    CommitTarget target{"out"};
    target.replace = false;
    return export_tensors(source, tensors, form, target, {},
                          {store == nullptr ? store_ : *store, device_, tasks, tasks_, progress_});
  }
};

TEST_F(Export, every_fixture_comes_out_as_it_is) {
  for (const auto* fixture :
       {"torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/fsdp2_uneven", "mcore_0.16.1_gpt_tp2_pp2"}) {
    for (const std::uint64_t shard : {std::uint64_t{1} << 40U, std::uint64_t{200}}) {
      Checkpoint source = Checkpoint::open(test::data_store(), fixture);
      const auto report = run(source, all_of(source.catalog()), shard);
      EXPECT_EQ(report.proved, report.elements) << fixture;
      EXPECT_EQ(report.files.size() > 1, shard == 200) << fixture;
      EXPECT_TRUE(report.lost.empty());
      EXPECT_TRUE(verify(store_, "out", PayloadCheck::kRead, progress_).whole()) << fixture;
      EXPECT_EQ(elements_that_are_the_same(source), report.elements) << fixture;
      store_.remove("out");
    }
  }
}

TEST_F(Export, says_what_no_tensor_has_and_pads_with_zeros) {
  test::WrittenCheckpoint written;
  Bytes elements(24);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::byte>(i + 1);
  written.tensor("a", DType::kUInt8, {6, 4}, elements).bytes("b", 3, 7);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  const MappedTensor a = mapped(source.catalog().tensors[0], 0);
  const auto report = run(source, {padded(narrowed(a, 0, {0, 4}), 1, 5)});
  EXPECT_EQ(report.proved, 16U);
  EXPECT_EQ(report.elements, 20U);
  EXPECT_THAT(report.lost, ::testing::ElementsAre(LostElements{"a", 8, 24, Box{{4, 0}, {2, 4}}},
                                                  LostElements{"b", 3, 3, Box{{0}, {3}}}));
  const Bytes file = read_all(store_, "out/model.safetensors", 10'000);
  const Bytes last(file.end() - 20, file.end());
  EXPECT_EQ(last[3], std::byte{4});
  EXPECT_EQ(last[4], std::byte{0});
  EXPECT_EQ(last[19], std::byte{0});
}

/// Replaces a file by a copy of itself when the first elements have been written.
class Replacing final : public Progress {
 public:
  explicit Replacing(std::filesystem::path file) : file_(std::move(file)) {}
  void advance(std::string_view, std::uint64_t, std::uint64_t) override {
    if (std::exchange(done_, true)) return;
    const std::filesystem::path copy = file_.string() + ".copy";
    std::filesystem::copy_file(file_, copy);
    std::filesystem::rename(copy, file_);
  }

 private:
  std::filesystem::path file_;
  bool done_ = false;
};

TEST_F(Export, a_checkpoint_that_is_replaced_meanwhile_is_stale) {
  test::WrittenCheckpoint written;
  written.bytes("a", 1000, 7).bytes("b", 1000, 8);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  Replacing replacing(written.path() + "/ckpt/__0_0.distcp");
  ThreadTasks tasks(2);
  const CommitTarget target{.directory = "out", .step = {}, .replace = false};
  const auto tensors = all_of(source.catalog());
  EXPECT_EQ(contracts::code_of([&] {
              SafetensorsForm form(1000);
              export_tensors(source, tensors, form, target, {},
                             {store_, device_, tasks, tasks_, replacing});
            }),
            Code::kStaleMetadata);
  EXPECT_THAT(store_.list(""), ::testing::IsEmpty());
}

/// No file with tensors can be synced. The first is written only once another one was to be synced,
/// or the others are written slowly.
class Unsynced final : public PassingStore {
 public:
  enum class Late { kFirst, kOthers };
  Unsynced(Store& inner, Late late) : PassingStore(inner), late_(late) {}

  int created() const { return created_; }

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    if (path.ends_with(".safetensors")) ++created_;
    return std::make_unique<File>(inner().create(path), *this, path);
  }

 private:
  class File final : public WriteFile {
   public:
    File(std::unique_ptr<WriteFile> inner, Unsynced& store, std::string path)
        : inner_(std::move(inner)), store_(store), path_(std::move(path)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      const bool first = path_.find("00001-of") != std::string::npos;
      if (first && store_.late_ == Late::kFirst) {
        std::unique_lock lock(store_.meeting_);
        store_.met_.wait_for(lock, std::chrono::seconds(10), [this] { return store_.failed_; });
      }
      if (!first && store_.late_ == Late::kOthers) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      inner_->write_at(offset, bytes);
    }
    void sync() override {
      if (!path_.ends_with(".safetensors")) return inner_->sync();
      const std::lock_guard lock(store_.meeting_);
      store_.failed_ = true;
      store_.met_.notify_all();
      throw Error(Code::kIo, "no sync", {.file = path_});
    }
    void close() override { inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
    Unsynced& store_;
    std::string path_;
  };

  Late late_;
  std::atomic<int> created_ = 0;
  std::mutex meeting_;
  std::condition_variable met_;
  bool failed_ = false;
};

TEST_F(Export, of_files_that_are_not_synced_the_first_is_told) {
  test::WrittenCheckpoint written;
  for (const char* key : {"a", "b", "c"}) written.bytes(key, 1000, 7);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  Unsynced store(store_, Unsynced::Late::kFirst);
  const auto error =
      contracts::error_of([&] { run(source, all_of(source.catalog()), 1000, &store); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->place().file, ::testing::HasSubstr("00001-of"));
}

TEST_F(Export, no_file_is_begun_after_one_that_can_not_be_synced) {
  test::WrittenCheckpoint written;
  for (int i = 0; i < 40; ++i) written.bytes("t" + std::to_string(10 + i), 1000, 7);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  Unsynced store(store_, Unsynced::Late::kOthers);
  const auto error =
      contracts::error_of([&] { run(source, all_of(source.catalog()), 1000, &store); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->place().file, ::testing::HasSubstr("00001-of"));
  EXPECT_LT(store.created(), 20);
}

TEST_F(Export, keys_that_no_json_text_can_have_are_refused) {
  for (const std::string key : {"__metadata__", "w\xff", "w\xed\xb2\x80"}) {
    test::WrittenCheckpoint written;
    written.bytes("a", 3, 7);
    Checkpoint source = Checkpoint::open(written.store(), "ckpt");
    MappedTensor tensor = mapped(source.catalog().tensors[0], 0);
    tensor.key = key;
    EXPECT_EQ(contracts::code_of([&] { run(source, {tensor}); }), Code::kUnsupported);
  }
}

TEST_F(Export, names_the_tensor_of_a_type_that_safetensors_does_not_have) {
  Checkpoint source = Checkpoint::open(test::data_store(), "torch_2.15.0/plain");
  const auto error = contracts::error_of([&] { run(source, all_of(source.catalog())); });
  EXPECT_EQ(error.value().code(), Code::kUnsupported);
  EXPECT_EQ(error.value().place().key, "tensors.complex128");
}

TEST_F(Export, refuses_what_can_not_be_written_before_it_writes) {
  Checkpoint source = Checkpoint::open(test::data_store(), "torch_2.15.0/fsdp2_uneven");
  auto twice = all_of(source.catalog());
  twice.push_back(twice.front());
  EXPECT_EQ(contracts::code_of([&] { run(source, twice); }), Code::kUsage);
  store_.make_directory("out");
  EXPECT_EQ(contracts::code_of([&] { run(source, all_of(source.catalog())); }), Code::kUsage);
  EXPECT_EQ(store_.list("").size(), 1U);
}

template <class From, class To>
To converted(DType from, From value, DType to) {
  To result{};
  Bytes in(sizeof value);
  std::memcpy(in.data(), &value, sizeof value);
  convert(from, in, to, reinterpret_cast<std::byte*>(&result));
  return result;
}

TEST(Convert, rounds_half_to_even_and_keeps_what_has_no_number) {
  const auto half = [](float value) {
    return converted<float, std::uint16_t>(DType::kFloat32, value, DType::kFloat16);
  };
  const auto brain = [](float value) {
    return converted<float, std::uint16_t>(DType::kFloat32, value, DType::kBFloat16);
  };
  EXPECT_EQ(half(1.0F), 0x3C00);
  EXPECT_EQ(half(-2.0F), 0xC000);
  EXPECT_EQ(half(65504.0F), 0x7BFF);
  EXPECT_EQ(half(65520.0F), 0x7C00) << "rounds to infinity";
  EXPECT_EQ(half(65519.0F), 0x7BFF);
  EXPECT_EQ(half(std::ldexp(1.0F, -24)), 0x0001);
  EXPECT_EQ(half(std::ldexp(1.0F, -25)), 0x0000) << "half of the least, to even";
  EXPECT_EQ(half(std::ldexp(1.5F, -24)), 0x0002) << "half to even";
  EXPECT_EQ(half(1.0F + std::ldexp(1.0F, -11)), 0x3C00);
  EXPECT_EQ(half(1.0F + 3 * std::ldexp(1.0F, -11)), 0x3C02);
  EXPECT_EQ(half(INFINITY), 0x7C00);
  EXPECT_EQ(half(-INFINITY), 0xFC00);
  EXPECT_EQ(half(NAN) & 0x7C00, 0x7C00);
  EXPECT_NE(half(NAN) & 0x03FF, 0);
  EXPECT_EQ(half(-0.0F), 0x8000);
  EXPECT_EQ(brain(1.0F), 0x3F80);
  EXPECT_EQ(brain(1.0F + std::ldexp(1.0F, -8)), 0x3F80);
  EXPECT_EQ(brain(1.0F + 3 * std::ldexp(1.0F, -8)), 0x3F82);
  EXPECT_EQ(brain(3.4e38F), 0x7F80) << "rounds to infinity";
  EXPECT_EQ(brain(std::ldexp(1.0F, -133)), 0x0001);
  EXPECT_EQ((converted<std::uint16_t, float>(DType::kBFloat16, 0x3F81, DType::kFloat32)),
            1.0F + std::ldexp(1.0F, -7));
  EXPECT_FALSE(can_convert(DType::kInt64, DType::kFloat32));
  EXPECT_TRUE(can_convert(DType::kInt64, DType::kInt64));
}

TEST(Convert, the_fast_way_to_bfloat16_and_back_is_that_of_all_types) {
  for (std::uint32_t upper = 0; upper <= 0xffffU; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const auto value = std::bit_cast<float>((upper << 16U) | lower);
      const auto fast = converted<float, std::uint16_t>(DType::kFloat32, value, DType::kBFloat16);
      const auto slow = converted<double, std::uint16_t>(DType::kFloat64, value, DType::kBFloat16);
      ASSERT_EQ(fast, slow) << upper << " " << lower;
    }
    const auto bits = static_cast<std::uint16_t>(upper);
    const auto wide = converted<std::uint16_t, float>(DType::kBFloat16, bits, DType::kFloat32);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), upper << 16U);
  }
}

}  // namespace
}  // namespace reprise
