#include "core/save/image_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/random.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/memory_store.hpp"

namespace reprise {
namespace {

using contracts::error_of;

/// Delays all work until somebody waits for it.
class LateTasks final : public Tasks {
 public:
  std::unique_ptr<Task> start(std::function<void()> work) override {
    auto late = std::make_unique<Late>();
    late->work = std::move(work);
    return late;
  }

 private:
  struct Late final : Task {
    std::function<void()> work;

    bool done() override { return !work; }
    void wait() override {
      if (work) std::exchange(work, nullptr)();
    }
    ~Late() override {
      try {
        wait();
      } catch (const Error&) {  // nobody waited for the work
      }
    }
  };
};

/// Provides elements that depend on item and position. The elements arrive only when drain() is
/// called.
class Elements final : public ContentSource {
 public:
  explicit Elements(const std::vector<ImageItem>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      widths_.push_back(size_of(items[i].dtype));
      contents_.emplace_back();
      if (!items[i].content.empty()) continue;
      Bytes& content = contents_.back();
      content.resize(static_cast<std::size_t>(volume(items[i].extent)) * widths_[i]);
      const Stream random = Stream(1).split(i);
      for (std::size_t b = 0; b < content.size(); ++b) {
        content[b] = static_cast<std::byte>(random.at(b));
      }
    }
  }

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    const std::size_t width = widths_[item];
    ASSERT_LT(begin, end);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(end - begin) * width);
    std::fill(out.begin(), out.end(), std::byte{0xBD});
    pending_.push_back({item, static_cast<std::size_t>(begin) * width, out});
  }
  void drain() override {
    for (const auto& [item, begin, out] : pending_) {
      std::copy_n(contents_[item].begin() + static_cast<std::ptrdiff_t>(begin), out.size(),
                  out.begin());
    }
    pending_.clear();
  }
  void spoil() {
    for (auto& content : contents_) std::fill(content.begin(), content.end(), std::byte{0});
  }
  const Bytes& content(std::size_t item) const { return contents_[item]; }

 private:
  struct Pending {
    std::size_t item;
    std::size_t begin;
    MutableByteSpan out;
  };
  std::vector<std::size_t> widths_;
  std::vector<Bytes> contents_;
  std::vector<Pending> pending_;
};

/// Returns objects of odd sizes between tensors, so that nothing is aligned. Some items are larger
/// than a batch.
std::vector<ImageItem> awkward_items() {
  const auto object = [](std::size_t bytes) {
    ImageItem item{.key = "o", .extent = {}, .content = Bytes(bytes)};
    for (std::size_t i = 0; i < bytes; ++i) item.content[i] = static_cast<std::byte>(i * 7);
    return item;
  };
  const auto tensor = [](DType dtype, Dims extent) {
    return ImageItem{.key = "t", .dtype = dtype, .extent = extent, .content = {}};
  };
  return {object(1),
          tensor(DType::kFloat32, {3, 5}),
          object(9001),
          tensor(DType::kComplex128, {1021}),
          tensor(DType::kBool, {7}),
          tensor(DType::kBFloat16, {0, 4}),
          tensor(DType::kInt8, {20011}),
          object(4095),
          object(4096),
          tensor(DType::kFloat64, {}),
          tensor(DType::kBFloat16, {3, 1, 999})};
}

/// Builds the expected file item by item from the format alone.
Bytes expected_file(const std::vector<ImageItem>& items, const Elements& source,
                    Checksums checksums) {
  Bytes file;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].content.empty()) {
      append(file, items[i].content);
      continue;
    }
    const TensorItemLayout layout(items[i].dtype, items[i].extent);
    Crc32 crc;
    if (checksums != Checksums::kNone) crc.update(source.content(i));
    append(file, layout.head());
    append(file, source.content(i));
    append(file, layout.tail(crc.value()));
  }
  return file;
}

TEST(ImageWriter, any_batching_gives_the_same_file_within_its_staging) {
  const auto items = awkward_items();
  for (const std::uint64_t batch : {4096U, 4097U, 5003U, 16384U, 1U << 20U}) {
    for (const std::uint64_t staging : {batch, batch + 1, 2 * batch, 3 * batch + 7}) {
      for (const auto checksums :
           {Checksums::kNone, Checksums::kCrc32, Checksums::kCrc32AndSha256}) {
        SCOPED_TRACE(std::to_string(batch) + " of " + std::to_string(staging));
        test::MemoryStore store;
        LateTasks tasks;
        Elements source(items);
        const Bytes expected = expected_file(items, source, checksums);
        ImageWriter writer(store, tasks, "f", items, {staging, batch, checksums});
        EXPECT_FALSE(writer.done());
        writer.stage(source);
        source.spoil();  // as if the job continued
        EXPECT_FALSE(writer.done());
        const WrittenFile written = writer.finish();
        EXPECT_TRUE(writer.done());
        EXPECT_LE(writer.peak_bytes(), staging);
        const auto& file = *store.files.at("f");
        ASSERT_EQ(file.content, expected);
        EXPECT_TRUE(file.synced && file.closed);
        EXPECT_EQ(written.bytes, expected.size());
        ASSERT_EQ(written.ranges.size(), items.size());
        std::uint64_t next = 0;
        for (const auto& range : written.ranges) {
          EXPECT_EQ(range.offset, next);
          next += range.size;
        }
        EXPECT_EQ(next, expected.size());
        EXPECT_EQ(written.sha256.has_value(), checksums == Checksums::kCrc32AndSha256);
        if (written.sha256) {
          EXPECT_EQ(*written.sha256, sha256_of(expected));
        }
      }
    }
  }
}

/// Provides elements at once, and their checksum for every second run.
class SummedElements final : public ContentSource {
 public:
  explicit SummedElements(const std::vector<ImageItem>& items) : elements_(items) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    elements_.fill(item, begin, end, out);
    elements_.drain();
    crc_ = crc_ ? std::nullopt : std::optional(crc32_of(out));
  }
  std::optional<std::uint32_t> filled_crc() const override { return crc_; }
  void drain() override {}

 private:
  Elements elements_;
  std::optional<std::uint32_t> crc_;
};

/// Flips a bit of one byte of each file when the file is opened to be read.
class FlipsWhenClosed final : public PassingStore {
 public:
  FlipsWhenClosed(test::MemoryStore& inner, std::uint64_t at)
      : PassingStore(inner), memory_(inner), at_(at) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    Bytes& content = memory_.files.at(path)->content;
    if (at_ < content.size()) content[at_] ^= std::byte{4};
    return inner().open(path);
  }

 private:
  test::MemoryStore& memory_;
  std::uint64_t at_;
};

TEST(ImageWriter, reads_back_what_it_wrote_and_finds_any_other_byte) {
  const auto items = awkward_items();
  const Elements same(items);
  for (const auto checksums : {Checksums::kNone, Checksums::kCrc32, Checksums::kCrc32AndSha256}) {
    const Bytes expected = expected_file(items, same, checksums);
    for (const std::uint64_t batch : {4096U, 5003U, 1U << 20U}) {
      for (const std::uint64_t staging : {batch, 3 * batch}) {
        for (std::uint64_t at = 0;; at += 997) {  // the last is beyond the file
          test::MemoryStore memory;
          FlipsWhenClosed store(memory, at);
          LateTasks tasks;
          SummedElements source(items);
          ImageOptions options{staging, batch, checksums};
          options.read_back = ReadBack::kAlways;
          ImageWriter writer(store, tasks, "f", items, options);
          writer.stage(source);
          const auto error = error_of([&] { writer.finish(); });
          ASSERT_EQ(error.has_value(), at < expected.size()) << at << " in " << batch;
          if (error) {
            EXPECT_EQ(error->code(), Code::kIo);
            continue;
          }
          EXPECT_EQ(memory.files.at("f")->content, expected);
          break;
        }
      }
    }
  }
}

/// Changes a byte after its checksum was computed, as if memory were bad.
class SpoiledElements final : public ContentSource {
 public:
  explicit SpoiledElements(const std::vector<ImageItem>& items) : summed_(items) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    summed_.fill(item, begin, end, out);
    if (summed_.filled_crc()) out.front() ^= std::byte{1};
  }
  std::optional<std::uint32_t> filled_crc() const override { return summed_.filled_crc(); }
  void drain() override {}

 private:
  SummedElements summed_;
};

TEST(ImageWriter, finds_a_byte_that_changed_after_it_was_summed) {
  const auto items = awkward_items();
  for (const auto checksums : {Checksums::kCrc32, Checksums::kCrc32AndSha256}) {
    test::MemoryStore store;
    LateTasks tasks;
    SpoiledElements source(items);
    ImageOptions options{3 * 4096, 4096, checksums};
    options.read_back = ReadBack::kAlways;
    ImageWriter writer(store, tasks, "f", items, options);
    writer.stage(source);
    const auto error = error_of([&] { writer.finish(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kIo);
  }
}

TEST(ImageWriter, items_can_be_read_where_the_ranges_say) {
  const auto items = awkward_items();
  test::MemoryStore store;
  ThreadTasks tasks(2);
  Elements source(items);
  ImageWriter writer(store, tasks, "f", items, {8192, 4096});
  writer.stage(source);
  const WrittenFile written = writer.finish();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].content.empty()) continue;
    const ByteRange range = written.ranges[i];
    SpanSource slice(ByteSpan(store.files["f"]->content).subspan(range.offset, range.size));
    const TensorItem item = read_tensor_item(slice);
    EXPECT_EQ(item.size, items[i].extent);
    EXPECT_EQ(item.dtype, items[i].dtype);
    EXPECT_EQ(read_range(slice, {item.data_offset, item.data_bytes}), source.content(i));
  }
}

TEST(ImageWriter, without_items_there_is_an_empty_file) {
  test::MemoryStore store;
  LateTasks tasks;
  Elements source({});
  ImageWriter writer(store, tasks, "f", {}, {4096, 4096});
  writer.stage(source);
  EXPECT_EQ(writer.finish().bytes, 0U);
  EXPECT_TRUE(store.files.at("f")->closed);
}

/// If any write or sync fails, stage() or finish() reports it, whether background work runs on time
/// or late.
TEST(ImageWriter, a_failure_in_the_background_is_never_lost) {
  const auto items = awkward_items();
  const auto run = [&](Tasks& tasks, std::optional<int> failing) {
    test::MemoryStore store;
    store.failing_call = failing;
    Elements source(items);
    return error_of([&] {
      ImageWriter writer(store, tasks, "f", items, {8192, 4096});
      writer.stage(source);
      writer.finish();
    });
  };
  test::MemoryStore whole;
  LateTasks tasks;
  Elements source(items);
  ImageWriter writer(whole, tasks, "f", items, {8192, 4096});
  writer.stage(source);
  writer.finish();
  ASSERT_GT(whole.calls(), 10);
  for (const int threads : {0, 1, 3}) {
    const auto failed = [&](std::optional<int> call) {
      LateTasks late;
      if (threads == 0) return run(late, call);
      ThreadTasks pool(threads);
      return run(pool, call);
    };
    EXPECT_FALSE(failed(std::nullopt));
    int calls = 0;
    for (auto error = failed(calls); error; error = failed(++calls)) {
      EXPECT_EQ(error->code(), Code::kNoSpace);
    }
    EXPECT_EQ(calls, whole.calls()) << "every write and the sync must be able to fail";
  }
}

/// A source whose n-th fill or n-th drain fails.
class FailingElements final : public ContentSource {
 public:
  FailingElements(const std::vector<ImageItem>& items, int fills, int settles)
      : inner_(items), fills_(fills), settles_(settles) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    if (fills_-- == 0) throw Error(Code::kIo, "the device is gone");
    inner_.fill(item, begin, end, out);
    ++under_way;
  }
  void drain() override {
    if (settles_-- == 0) throw Error(Code::kIo, "the device is gone");
    inner_.drain();  // writes to the destination, which must still exist
    under_way = 0;
  }

  int under_way = 0;

 private:
  Elements inner_;
  int fills_;
  int settles_;
};

TEST(ImageWriter, no_copy_is_running_into_freed_memory_when_staging_fails) {
  const auto items = awkward_items();
  const auto failed = [&items](int fills, int settles) {
    test::MemoryStore store;
    ThreadTasks tasks(1);
    FailingElements source(items, fills, settles);
    ImageWriter writer(store, tasks, "f", items, {8192, 4096});
    const bool threw = error_of([&] { writer.stage(source); }).has_value();
    EXPECT_EQ(source.under_way, 0) << fills << " fills, " << settles << " settles";
    return threw;
  };
  int fills = 0;
  while (failed(fills, -1)) ++fills;
  int settles = 0;
  while (failed(-1, settles)) ++settles;
  EXPECT_GT(std::min(fills, settles), 5);
}

/// A source whose copies run until somebody waits for them.
class CopyingElements final : public ContentSource {
 public:
  explicit CopyingElements(const std::vector<ImageItem>& items) : inner(items) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    inner.fill(item, begin, end, out);
  }
  std::function<void()> start() override {
    return [this] { drain(); };
  }
  void drain() override {
    ++waits;
    if (fails) throw Error(Code::kIo, "the device is gone");
    inner.drain();
  }

  Elements inner;
  int waits = 0;
  bool fails = false;
};

constexpr ImageOptions kEarly{
    .staging_bytes_max = 1 << 20, .batch_bytes = 4096, .returns = BeginReturns::kWhenQueued};

TEST(ImageWriter, may_return_once_copies_are_queued_and_the_caller_waits) {
  const auto items = awkward_items();
  test::MemoryStore store;
  LateTasks tasks;
  CopyingElements source(items);
  const Bytes expected = expected_file(items, source.inner, Checksums::kCrc32);
  ImageWriter writer(store, tasks, "f", items, kEarly);
  writer.stage(source);
  EXPECT_EQ(source.waits, 0);
  writer.wait_for_copies(source);
  EXPECT_EQ(source.waits, 1);
  source.inner.spoil();
  writer.finish();
  EXPECT_EQ(store.files["f"]->content, expected);
}

TEST(ImageWriter, has_waited_for_copies_when_it_returns_if_staging_is_short) {
  const auto items = awkward_items();
  test::MemoryStore store;
  LateTasks tasks;
  CopyingElements source(items);
  const Bytes expected = expected_file(items, source.inner, Checksums::kCrc32);
  ImageOptions options = kEarly;
  options.staging_bytes_max = 8192;
  ImageWriter writer(store, tasks, "f", items, options);
  writer.stage(source);
  source.inner.spoil();
  writer.finish();
  EXPECT_EQ(store.files["f"]->content, expected);
}

TEST(ImageWriter, whose_copies_have_ended_asks_for_none_of_them_again) {
  const auto items = awkward_items();
  test::MemoryStore store;
  LateTasks tasks;
  CopyingElements source(items);
  ImageOptions options = kEarly;
  options.returns = BeginReturns::kWhenCopied;
  const Bytes expected = expected_file(items, source.inner, Checksums::kCrc32);
  ImageWriter writer(store, tasks, "f", items, options);
  writer.stage(source);
  const int waits = source.waits;
  writer.wait_for_copies(source);
  EXPECT_EQ(source.waits, waits) << "a device that fails later would fail a complete file";
  writer.finish();
  EXPECT_EQ(store.files["f"]->content, expected);
}

TEST(ImageWriter, a_copy_that_fails_after_it_returned_fails_the_file) {
  const auto items = awkward_items();
  for (const bool caller_waits : {false, true}) {
    test::MemoryStore store;
    LateTasks tasks;
    CopyingElements source(items);
    ImageWriter writer(store, tasks, "f", items, kEarly);
    writer.stage(source);
    source.fails = true;
    if (caller_waits) writer.wait_for_copies(source);
    source.fails = !caller_waits;  // the caller's wait alone has seen it
    const auto error = error_of([&] { writer.finish(); });
    ASSERT_TRUE(error) << caller_waits;
    EXPECT_EQ(error->message(), "the device is gone");
  }
}

/// Tasks that keep their work, and what it refers to, for as long as they live.
class KeptTasks final : public Tasks {
 public:
  std::unique_ptr<Task> start(std::function<void()> work) override {
    auto task = std::make_unique<Kept>();
    task->work = std::move(work);
    task->work();
    return task;  // says that it is not done, so that no batch is used again
  }

 private:
  struct Kept final : Task {
    std::function<void()> work;
    bool done() override { return false; }
    void wait() override {}
  };
};

/// A source that knows whether its staging memory is still in use.
class LentElements final : public ContentSource {
 public:
  explicit LentElements(const std::vector<ImageItem>& items) : inner_(items) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    inner_.fill(item, begin, end, out);
  }
  void drain() override { inner_.drain(); }
  StagingMemory staging(std::size_t bytes) override {
    StagingMemory memory(new std::byte[bytes]);
    lent_.emplace_back(memory);
    return memory;
  }
  bool all_given_back() const {
    return std::all_of(lent_.begin(), lent_.end(), [](const auto& lent) { return lent.expired(); });
  }

 private:
  Elements inner_;
  std::vector<std::weak_ptr<std::byte[]>> lent_;
};

TEST(ImageWriter, gives_all_staging_back_when_the_file_is_finished) {
  const auto items = awkward_items();
  for (const bool fails : {false, true}) {
    test::MemoryStore store;
    if (fails) store.failing_call = 0;
    KeptTasks tasks;
    LentElements source(items);
    ImageWriter writer(store, tasks, "f", items,
                       {.staging_bytes_max = 1 << 20,
                        .batch_bytes = 4096,
                        .checksums = Checksums::kCrc32AndSha256,
                        .read_back = fails ? ReadBack::kBeforeOlderGoes : ReadBack::kAlways});
    writer.stage(source);
    EXPECT_EQ(error_of([&] { writer.finish(); }).has_value(), fails);
    EXPECT_TRUE(source.all_given_back()) << fails;
  }
}

TEST(ImageWriter, two_files_in_flight_over_one_background_do_not_mix) {
  const auto items = awkward_items();
  for (const int threads : {1, 2}) {
    test::MemoryStore first_store;
    test::MemoryStore second_store;
    ThreadTasks tasks(threads);
    Elements source(items);
    const Bytes expected = expected_file(items, source, Checksums::kCrc32);
    ImageWriter first(first_store, tasks, "f", items, {8192, 4096});
    ImageWriter second(second_store, tasks, "f", items, {1 << 20, 4096});
    first.stage(source);
    second.stage(source);
    second.finish();
    first.finish();
    EXPECT_EQ(first_store.files["f"]->content, expected);
    EXPECT_EQ(second_store.files["f"]->content, expected);
  }
}

}  // namespace
}  // namespace reprise
