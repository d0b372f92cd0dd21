// Tests that tensors which `diff` compares in parts are judged as if one thread had read them, and
// that the number of threads changes nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/diff/diff_seamed.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/format/tensor_item.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using test::diff_of;
using ::testing::HasSubstr;

constexpr std::size_t kPart = std::size_t{16} << 20U;

/// Calls before() before each read of the payload.
class PayloadReads : public PassingStore {
 public:
  using PassingStore::PassingStore;

  std::unique_ptr<ReadFile> open(const std::string& path) final {
    auto file = inner().open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), *this);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, PayloadReads& store)
        : inner_(std::move(inner)), store_(store) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      store_.before(offset, out.size());
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    PayloadReads& store_;
  };

  virtual void before(std::uint64_t offset, std::size_t bytes) = 0;
};

/// Can't read a byte of the payload.
class FailingAt final : public PayloadReads {
 public:
  FailingAt(Store& inner, std::uint64_t at) : PayloadReads(inner), at_(at) {}

 private:
  void before(std::uint64_t offset, std::size_t bytes) override {
    if (at_ >= offset && at_ - offset < bytes) throw Error(Code::kTornFile, "a bad block");
  }

  std::uint64_t at_;
};

/// Lets a thread read beyond an offset of the payload once another one does.
class MetBeyond final : public PayloadReads {
 public:
  MetBeyond(Store& inner, std::uint64_t offset) : PayloadReads(inner), offset_(offset) {}

  std::size_t threads() const { return threads_.size(); }

 private:
  void before(std::uint64_t offset, std::size_t /*bytes*/) override {
    if (offset <= offset_) return;
    std::unique_lock lock(meeting_);
    if (threads_.insert(std::this_thread::get_id()).second) met_.notify_all();
    if (alone_) return;
    alone_ = !met_.wait_for(lock, std::chrono::seconds(10), [this] { return threads_.size() > 1; });
  }

  std::uint64_t offset_;
  std::mutex meeting_;
  std::condition_variable met_;
  std::set<std::thread::id> threads_;
  bool alone_ = false;
};

TEST(DiffParts, AreComparedAsIfByOneThread) {
  constexpr std::size_t kRow = std::size_t{17} << 20U;  // longer than what a thread takes at a time
  const Dims shape{3, kRow};
  Bytes elements(3 * kRow, std::byte{1});
  test::WrittenCheckpoint left;
  left.bytes("a", 3, 4).tensor("w", DType::kUInt8, shape, elements).bytes("z", 3, 4);
  elements[2 * kRow - 1] = std::byte{9};
  elements[3 * kRow - 1] = std::byte{2};
  test::WrittenCheckpoint right;
  right.bytes("a", 3, 4).chunks(
      "w", DType::kUInt8, shape,
      {{Box{{0, 0}, {2, kRow}}, Bytes(elements.begin(), elements.begin() + 2 * kRow)},
       {Box{{2, 0}, {1, kRow}}, Bytes(elements.begin() + 2 * kRow, elements.end())}});
  right.bytes("z", 3, 4);
  PosixStore& one = left.store();
  PosixStore& other = right.store();
  for (const int threads : {1, 2, 7}) {
    SCOPED_TRACE(threads);
    ThreadTasks tasks(threads);
    const DiffOptions options{.tasks = &tasks};
    const auto report = diff_of(one, "ckpt", other, "ckpt", options);
    EXPECT_TRUE(report.damage.empty());
    ASSERT_EQ(report.tensors.size(), 3U);
    const TensorDiff& w = report.tensors[1];
    EXPECT_EQ(w.verdict, DiffVerdict::kDifferent);
    EXPECT_EQ(w.comparison.elements, 3 * kRow);
    EXPECT_EQ(w.comparison.bit_mismatches, 2U);
    EXPECT_EQ(w.comparison.max_delta, 8);
    EXPECT_EQ(w.first, (Dims{1, kRow - 1}));
    EXPECT_THAT(w.first_right, HasSubstr("9"));
    ASSERT_TRUE(w.change);
    EXPECT_EQ(w.change->before, 3.0 * kRow);
    EXPECT_EQ(w.change->difference, 65);

    FailingAt bad(one, kRow + kRow / 2);
    const auto partly = diff_of(bad, "ckpt", other, "ckpt", options);
    const TensorDiff& unread = partly.tensors[1];
    EXPECT_TRUE(unread.unread);
    EXPECT_EQ(unread.verdict, DiffVerdict::kNotKnown);
    EXPECT_EQ(partly.tensors[2].verdict, DiffVerdict::kSame);
  }
  ThreadTasks two(2);
  MetBeyond both(one, std::uint64_t{1} << 20U);  // within "w"
  const auto only_w = [](std::string_view key) { return key == "w"; };
  diff_of(both, "ckpt", other, "ckpt", {.wanted = only_w, .tasks = &two});
  EXPECT_EQ(both.threads(), 2U);
  std::fstream file(left.path() + "/ckpt/__0_0.distcp",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2 * kRow);
  file.put('\x55');
  file.close();
  for (const int threads : {1, 7}) {
    ThreadTasks tasks(threads);
    const auto report = diff_of(one, "ckpt", other, "ckpt", {.tasks = &tasks});
    ASSERT_EQ(report.damage.size(), 1U) << threads;
    EXPECT_EQ(report.damage[0].key, "w");
    EXPECT_EQ(report.tensors[1].comparison.bit_mismatches, 3U);
  }
}

/// Says what a report holds but for the notes.
std::string told(const DiffReport& report) {
  std::string text;
  for (const TensorDiff& tensor : report.tensors) {
    text += tensor.key + " " + std::string(name_of(tensor.verdict)) + " " + tensor.reason + " " +
            std::to_string(tensor.comparison.elements) + " " +
            std::to_string(tensor.comparison.bit_mismatches) + " " +
            std::to_string(tensor.change ? tensor.change->before : -1) + "\n";
  }
  for (const Findings* findings : {&report.damage, &report.unread}) {
    for (const Finding& one : *findings) {
      text += std::string(name_of(one.code)) + " " + one.key + " " +
              std::to_string(one.offset.value_or(0)) + " " + one.message + "\n";
    }
  }
  return text;
}

std::vector<Both<StoredTensor>> first_with_each(const std::vector<StoredTensor>& left,
                                                const std::vector<StoredTensor>& right) {
  std::vector<Both<StoredTensor>> pairs;
  for (const StoredTensor& tensor : right) pairs.push_back({&left.front(), &tensor});
  return pairs;
}

TEST(DiffParts, OneTensorOfSeveralPairsIsReadForEach) {
  const Bytes elements(2 * kPart + kPart / 2, std::byte{3});
  const Dims shape{static_cast<std::int64_t>(elements.size())};
  test::WrittenCheckpoint left;
  left.tensor("w", DType::kUInt8, shape, elements);
  test::WrittenCheckpoint right;
  right.tensor("w0", DType::kUInt8, shape, elements).tensor("w1", DType::kUInt8, shape, elements);
  PosixStore& one = left.store();
  PosixStore& two = right.store();
  FailingAt bad(two, kPart + kPart / 2);  // within "w0"
  DiffSeams seams;
  seams.tensors = first_with_each;
  for (const bool fails : {false, true}) {
    std::string first;
    for (const int threads : {1, 7, 7, 7}) {
      SCOPED_TRACE(std::to_string(threads) + (fails ? " with a failing part" : ""));
      ThreadTasks tasks(threads);
      Checkpoint a = Checkpoint::open(one, "ckpt");
      Checkpoint b = Checkpoint::open(fails ? static_cast<Store&>(bad) : two, "ckpt");
      HostDevice device("test", 0);
      NoProgress progress;
      const auto report = diff(a, b, device, {.tasks = &tasks}, progress, seams);
      for (const Finding& found : report.damage) EXPECT_NE(found.code, Code::kChecksum);
      EXPECT_EQ(report.damage.empty(), !fails);
      ASSERT_EQ(report.tensors.size(), 2U);
      EXPECT_EQ(report.tensors[0].verdict, fails ? DiffVerdict::kNotKnown : DiffVerdict::kSame);
      EXPECT_EQ(report.tensors[1].verdict, DiffVerdict::kSame);
      if (first.empty()) first = told(report);
      EXPECT_EQ(told(report), first);
    }
  }
}

/// Writes "ckpt.pt" as torch.save does, without a checksum of the elements.
void write_saved(PosixStore& store, std::size_t elements) {
  const Dims shape{static_cast<std::int64_t>(elements)};
  const TensorItemLayout layout(DType::kUInt8, shape);
  Bytes file = layout.head();
  append(file, Bytes(elements, std::byte{5}));
  append(file, layout.tail(0));
  const auto out = store.create("ckpt.pt");
  out->write_at(0, file);
  out->close();
}

TEST(DiffParts, AFileWithoutChecksumsIsSound) {
  contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  write_saved(store, 2 * kPart + 7);
  for (const int threads : {1, 7}) {
    ThreadTasks tasks(threads);
    Checkpoint a = Checkpoint::open_any(store, "ckpt.pt");
    Checkpoint b = Checkpoint::open_any(store, "ckpt.pt");
    HostDevice device("test", 0);
    NoProgress progress;
    const auto report = diff(a, b, device, {.tasks = &tasks}, progress);
    EXPECT_EQ(report.outcome(), DiffOutcome::kSame) << threads << told(report);
  }
}

TEST(DiffParts, AWrongChecksumBeforeAnUnreadBlockIsTold) {
  const std::size_t some = kPart / 4;
  const Dims shape{static_cast<std::int64_t>(3 * kPart)};
  const auto checkpoint = [&](test::WrittenCheckpoint& to) {
    to.chunks(
        "w", DType::kUInt8, shape,
        {{Box{{0}, {static_cast<std::int64_t>(some)}}, Bytes(some, std::byte{1})},
         {Box{{static_cast<std::int64_t>(some)}, {shape[0] - static_cast<std::int64_t>(some)}},
          Bytes(3 * kPart - some, std::byte{1})}});
  };
  test::WrittenCheckpoint left;
  test::WrittenCheckpoint right;
  checkpoint(left);
  checkpoint(right);
  PosixStore& one = left.store();
  PosixStore& two = right.store();
  std::fstream file(left.path() + "/ckpt/__0_0.distcp",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(some / 2));
  file.put('\x55');
  file.close();
  FailingAt bad(one, 2 * some);  // in the second chunk, and in the first part
  std::string first;
  for (const int threads : {1, 7, 7, 7}) {
    ThreadTasks tasks(threads);
    const auto report = diff_of(bad, "ckpt", two, "ckpt", {.tasks = &tasks});
    ASSERT_EQ(report.damage.size(), 2U) << told(report);
    EXPECT_EQ(report.damage[0].code, Code::kChecksum);
    EXPECT_EQ(report.damage[1].code, Code::kTornFile);
    if (first.empty()) first = told(report);
    EXPECT_EQ(told(report), first);
  }
}

/// Writes a tensor in parts: the first chunk has its elements, and three have none.
void write_with_empty_chunks(test::WrittenCheckpoint& to, std::size_t elements) {
  const auto end = static_cast<std::int64_t>(elements);
  to.chunks("w", DType::kUInt8, {end},
            {{Box{{0}, {end}}, Bytes(elements, std::byte{1})},
             {Box{{1}, {0}}, {}},
             {Box{{2}, {0}}, {}},
             {Box{{3}, {0}}, {}}});
}

void flip(const test::WrittenCheckpoint& checkpoint, std::uint64_t at) {
  std::fstream file(checkpoint.path() + "/ckpt/__0_0.distcp",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put('\x55');
}

/// Returns where the chunk's record without elements lies that nobody parses.
std::uint64_t id_of(Store& store, std::size_t chunk) {
  constexpr std::string_view kName = "archive/.data/serialization_id";
  const Metadata metadata = Checkpoint::open(store, "ckpt").metadata();
  const auto file = store.open("ckpt/__0_0.distcp");
  const ByteRange range = metadata.catalog.tensors.front().chunks[chunk].range;
  std::string item(static_cast<std::size_t>(range.size), ' ');
  file->read_at(range.offset, std::as_writable_bytes(std::span(item)));
  const std::size_t name = item.find(kName);
  std::uint16_t padding = 0;
  std::memcpy(&padding, item.data() + name - sizeof padding, sizeof padding);
  return range.offset + name + kName.size() + padding;
}

TEST(DiffParts, DamageBehindAnItemThatIsNotReadIsToldOnBothSides) {
  for (const std::size_t elements : {kPart + 7, std::size_t{7}}) {
    SCOPED_TRACE(elements);
    test::WrittenCheckpoint a;
    test::WrittenCheckpoint b;
    write_with_empty_chunks(a, elements);
    write_with_empty_chunks(b, elements);
    PosixStore& one = a.store();
    PosixStore& two = b.store();
    flip(a, id_of(one, 3));
    flip(b, id_of(two, 2));
    const auto wrong_at = [](const DiffReport& report) {
      std::vector<std::uint64_t> found;
      for (const Finding& finding : report.damage) {
        if (finding.code == Code::kChecksum) found.push_back(finding.offset.value_or(0));
      }
      return found;
    };
    const auto healthy = wrong_at(diff_of(one, "ckpt", two, "ckpt"));
    EXPECT_EQ(healthy.size(), 2U) << told(diff_of(one, "ckpt", two, "ckpt"));
    for (const std::size_t bad : {0U, 1U}) {
      const std::uint64_t at = id_of(one, bad);
      FailingAt failing(one, at);
      std::string first;
      for (const int threads : {1, 7, 7}) {
        ThreadTasks tasks(threads);
        const auto report = diff_of(failing, "ckpt", two, "ckpt", {.tasks = &tasks});
        EXPECT_EQ(wrong_at(report), healthy) << "chunk " << bad << "\n" << told(report);
        EXPECT_EQ(report.damage.back().code, Code::kTornFile);
        if (first.empty()) first = told(report);
        EXPECT_EQ(told(report), first);
      }
    }
  }
}

/// The first chunk can't be read, and the elements of the others are damaged, in A and in B.
TEST(DiffParts, WhatFollowsAnUnreadBlockIsReadForItsChecksums) {
  const auto begin_of = [](Store& store, std::size_t chunk) {
    return Checkpoint::open(store, "ckpt").metadata().catalog.tensors[0].chunks[chunk].range;
  };
  const auto middle_of = [&](Store& store, std::size_t chunk) {
    return begin_of(store, chunk).offset + begin_of(store, chunk).size / 2;
  };
  for (const std::size_t size : {kPart / 4, kPart - 7}) {
    SCOPED_TRACE(size);
    const auto length = static_cast<std::int64_t>(size);
    const Bytes elements(size, std::byte{1});
    test::WrittenCheckpoint a;
    test::WrittenCheckpoint b;
    for (test::WrittenCheckpoint* to : {&a, &b}) {
      to->chunks("w", DType::kUInt8, {3 * length},
                 {{Box{{0}, {length}}, elements},
                  {Box{{length}, {length}}, elements},
                  {Box{{2 * length}, {length}}, elements}});
    }
    PosixStore& one = a.store();
    PosixStore& two = b.store();
    flip(a, middle_of(one, 1));
    flip(b, middle_of(two, 2));
    FailingAt failing(one, middle_of(one, 0));
    std::string first;
    for (const int threads : {1, 7, 7}) {
      ThreadTasks tasks(threads);
      const auto report = diff_of(failing, "ckpt", two, "ckpt", {.tasks = &tasks});
      ASSERT_EQ(report.damage.size(), 3U) << told(report);
      EXPECT_EQ(report.damage[0].code, Code::kChecksum);
      EXPECT_EQ(report.damage[1].code, Code::kChecksum);
      EXPECT_EQ(report.damage[2].code, Code::kTornFile);
      if (first.empty()) first = told(report);
      EXPECT_EQ(told(report), first);
    }
    const auto unchecked = diff_of(failing, "ckpt", two, "ckpt", {.checksums = false});
    EXPECT_EQ(unchecked.damage.size(), 1U);
  }
}

/// Counts the bytes that are read of the payload.
class Counting final : public PassingStore {
 public:
  explicit Counting(Store& inner) : PassingStore(inner) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = inner().open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), bytes);
  }

  std::atomic<std::uint64_t> bytes = 0;

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, std::atomic<std::uint64_t>& bytes)
        : inner_(std::move(inner)), bytes_(bytes) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      bytes_ += out.size();
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    std::atomic<std::uint64_t>& bytes_;
  };
};

TEST(DiffParts, WhatFollowsADifferenceIsReadOnce) {
  Bytes elements(3 * kPart, std::byte{1});
  const Dims shape{static_cast<std::int64_t>(elements.size())};
  test::WrittenCheckpoint left;
  left.tensor("w", DType::kUInt8, shape, elements);
  elements[0] = std::byte{2};
  test::WrittenCheckpoint right;
  right.tensor("w", DType::kUInt8, shape, elements);
  Counting one(left.store());
  ThreadTasks tasks(1);
  const auto report = diff_of(one, "ckpt", right.store(), "ckpt", {.tasks = &tasks});
  EXPECT_EQ(report.tensors.front().change->before, 3.0 * kPart);
  EXPECT_LT(one.bytes, 3 * kPart + kPart / 4);
}

TEST(DiffParts, AddUpToTheSameChangeToTheLastBit) {
  Bytes elements(3 * kPart);
  for (std::size_t i = 0; i < elements.size() / 4; ++i) {
    const float value = 0.1F * static_cast<float>(i % 9973);
    std::memcpy(elements.data() + 4 * i, &value, 4);
  }
  const Dims shape{static_cast<std::int64_t>(elements.size() / 4)};
  test::WrittenCheckpoint left;
  left.tensor("w", DType::kFloat32, shape, elements);
  elements[kPart + kPart / 2] ^= std::byte{1};
  test::WrittenCheckpoint right;
  right.tensor("w", DType::kFloat32, shape, elements);
  PosixStore& one = left.store();
  PosixStore& two = right.store();
  std::optional<double> first;
  for (const int threads : {1, 2, 7, 7}) {
    ThreadTasks tasks(threads);
    const auto report = diff_of(one, "ckpt", two, "ckpt", {.tasks = &tasks});
    ASSERT_TRUE(report.tensors.front().change);
    if (!first) first = report.tensors.front().change->before;
    EXPECT_EQ(report.tensors.front().change->before, first) << threads;
  }
}

/// Reads a tensor of 32 MiB in a record of 48 MiB whose checksum is wrong.
TEST(DiffParts, ARecordOfWhichATensorIsAPartIsReadOnce) {
  test::WrittenCheckpoint written;
  written.bytes("w", 4 * kPart, 1);
  Counting store(written.store());
  Metadata metadata = Checkpoint::open(store, "ckpt").metadata();
  StoredTensor& tensor = metadata.catalog.tensors.front();
  StoredChunk& chunk = tensor.chunks.front();
  const auto half = static_cast<std::int64_t>(2 * kPart);
  tensor.shape = chunk.box.extent = {half};
  const auto record = std::make_shared<SharedRecord>("data/0", ByteRange{4096, 3 * kPart}, 1);
  chunk.form = ItemForm::kView;
  chunk.range = {4096, 2 * kPart};
  chunk.view = std::make_shared<StoredView>(StoredView{.strides = {1}, .record = record});
  std::string first;
  for (const int threads : {1, 7, 7}) {
    ThreadTasks tasks(threads);
    Checkpoint a = Checkpoint::open(store, "ckpt").with(metadata);
    Checkpoint b = Checkpoint::open(written.store(), "ckpt").with(metadata);
    HostDevice device("test", 0);
    NoProgress progress;
    store.bytes = 0;
    const auto report = diff(a, b, device, {.tasks = &tasks}, progress);
    EXPECT_EQ(report.outcome(), DiffOutcome::kDamaged);
    EXPECT_LT(store.bytes, 4 * kPart);
    if (first.empty()) first = told(report);
    EXPECT_EQ(told(report), first);
  }
}

}  // namespace
}  // namespace reprise
