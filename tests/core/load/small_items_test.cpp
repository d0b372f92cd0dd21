// Tests how many reads and tasks a load takes for small items.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/ports/passing_device.hpp"
#include "tests/fixtures/one_writer.hpp"

namespace reprise::test {
namespace {

/// Counts the reads of payload files. Those of the byte `broken_at` fail, if it is not 0.
class CountingStore final : public PassingStore {
 public:
  CountingStore(Store& inner, std::atomic<int>& reads, std::uint64_t broken_at = 0)
      : PassingStore(inner), reads_(reads), broken_at_(broken_at) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = PassingStore::open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), *this);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, CountingStore& store)
        : inner_(std::move(inner)), store_(store) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      count(offset, out.size());
      inner_->read_at(offset, out);
    }
    void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
      std::size_t bytes = 0;
      for (const auto part : parts) bytes += part.size();
      count(offset, bytes);
      inner_->read_parts(offset, parts);
    }

   private:
    void count(std::uint64_t offset, std::size_t bytes) {
      ++store_.reads_;
      const std::uint64_t broken = store_.broken_at_;
      if (offset <= broken && broken < offset + bytes && broken != 0) {
        throw Error(Code::kIo, "broken", {.offset = broken});
      }
    }

    std::unique_ptr<ReadFile> inner_;
    CountingStore& store_;
  };

  std::atomic<int>& reads_;
  std::uint64_t broken_at_;
};

class CountingTasks final : public Tasks {
 public:
  std::unique_ptr<Task> start(std::function<void()> work) override {
    ++count;
    return tasks_.start(std::move(work));
  }
  int threads() const override { return tasks_.threads(); }

  int count = 0;

 private:
  ThreadTasks tasks_{2};
};

/// Memory that only copies reach, as a GPU's; counts the calls that start copies.
class FarDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;
  bool host_memory() const override { return false; }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    ++scatters;
    return PassingDevice::scatter(copies);
  }

  int scatters = 0;
};

/// Many tensors of 1 KiB each, or of `each` elements, all of whose elements differ.
struct ManyTensors {
  static constexpr std::int64_t kEach = 128;

  explicit ManyTensors(std::size_t count, std::int64_t each = kEach) : elements(count * each) {
    for (std::size_t t = 0; t < count; ++t) {
      TensorLeaf leaf;
      leaf.key = "w" + std::to_string(10'000 + t);
      leaf.dtype = DType::kInt64;
      leaf.shape = {each};
      leaf.pieces = {contiguous_piece(Box::whole({each}))};
      leaf.data = reinterpret_cast<std::byte*>(elements.data() + t * each);
      state.tensors.push_back(std::move(leaf));
    }
    state.common = Dict{{"content", std::int64_t{1}}};
  }

  std::vector<std::int64_t> elements;
  StateDict state;
};

void save_many(ManyTensors& many, const std::string& directory) {
  std::iota(many.elements.begin(), many.elements.end(), 1);
  run_ranks(1, directory, [&](const Ports& ports) {
    Save::begin(ports, ports.fabric.communicator(Group::world(1)), many.state, options_of(1))
        .finish();
  });
}

TEST(SmallItems, ten_thousand_take_at_most_400_tasks_and_reads) {
  const TemporaryDirectory directory;
  ManyTensors saved(10'000);
  save_many(saved, directory.path());
  for (const bool far : {false, true}) {
    for (const auto checksums : {LoadChecksums::kIgnored, LoadChecksums::kVerified}) {
      std::atomic<int> reads = 0;
      run_ranks(
          1, directory.path(),
          [&](const Ports& near) {
            CountingTasks tasks;
            FarDevice device(near.device);
            const Ports ports{near.store, near.fabric, far ? device : near.device, tasks,
                              near.trace};
            ManyTensors loaded(10'000);
            const auto group = ports.fabric.communicator(Group::world(1));
            const auto report =
                load(ports, *group, loaded.state, {.directory = "run", .checksums = checksums});
            EXPECT_EQ(loaded.elements, saved.elements);
            EXPECT_EQ(report.bytes_read, report.bytes_needed);
            EXPECT_LE(tasks.count, 400);
            EXPECT_LE(device.scatters, 400);
          },
          [&](Store& store, GlobalRank) { return std::make_unique<CountingStore>(store, reads); });
      EXPECT_LE(reads, 400) << far;
    }
  }
}

/// So many items that some are read together.
constexpr std::size_t kJoined = 2000;

TEST(SmallItems, read_together_tell_which_of_them_failed) {
  const TemporaryDirectory directory;
  ManyTensors saved(kJoined);
  save_many(saved, directory.path());
  const std::uint64_t size = fs::file_size(directory.path() + "/" + kFirst + "/__0_0.distcp");
  for (const std::size_t broken : {std::size_t{0}, std::size_t{3}, std::size_t{100}, kJoined - 1}) {
    std::atomic<int> reads = 0;
    const auto failed = error_of([&] {
      run_ranks(
          1, directory.path(),
          [](const Ports& ports) {
            ManyTensors loaded(kJoined);
            load(ports, *ports.fabric.communicator(Group::world(1)), loaded.state,
                 {.directory = "run"});
          },
          [&](Store& store, GlobalRank) {
            const std::uint64_t middle = size * (2 * broken + 1) / (2 * kJoined);
            return std::make_unique<CountingStore>(store, reads, middle);
          });
    });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code(), Code::kIo);
    EXPECT_EQ(failed->place().key, "w" + std::to_string(10'000 + broken));
  }
}

TEST(SmallItems, of_one_element_take_no_more_than_a_rank_without_tensors_may) {
  const TemporaryDirectory directory;
  ManyTensors saved(200, 1);
  save_many(saved, directory.path());
  for (const int threads : {1, 16}) {
    for (const bool far : {false, true}) {
      run_ranks(1, directory.path(), [&](const Ports& near) {
        ThreadTasks tasks(threads);
        FarDevice device(near.device);
        const Ports ports{near.store, near.fabric, far ? device : near.device, tasks, near.trace};
        ManyTensors loaded(200, 1);
        const auto group = ports.fabric.communicator(Group::world(1));
        const auto report = load(ports, *group, loaded.state, {.directory = "run"});
        EXPECT_EQ(loaded.elements, saved.elements);
        EXPECT_LE(report.peak_staging, report.bound_staging);
        EXPECT_LE(report.bound_staging, report.bound_empty) << threads << far;
      });
    }
  }
}

TEST(SmallItems, few_of_1_KiB_take_few_reads_by_any_number_of_threads) {
  for (const std::size_t count : {20U, 500U}) {
    const TemporaryDirectory directory;
    ManyTensors saved(count);
    save_many(saved, directory.path());
    for (const int threads : {1, 4}) {
      for (const bool far : {false, true}) {
        std::atomic<int> reads = 0;
        run_ranks(
            1, directory.path(),
            [&](const Ports& near) {
              ThreadTasks tasks(threads);
              FarDevice device(near.device);
              const Ports ports{near.store, near.fabric, far ? device : near.device, tasks,
                                near.trace};
              ManyTensors loaded(count);
              const auto group = ports.fabric.communicator(Group::world(1));
              const auto report = load(ports, *group, loaded.state, {.directory = "run"});
              EXPECT_EQ(loaded.elements, saved.elements);
              EXPECT_LE(report.peak_staging, report.bound_staging);
            },
            [&](Store& store, GlobalRank) {
              return std::make_unique<CountingStore>(store, reads);
            });
        EXPECT_LE(reads, 8) << count << far << threads;
        EXPECT_GE(reads, 4) << count << far << threads;  // so that several threads have work
      }
    }
  }
}

/// Into host memory, elements of larger items are read straight to where they belong.
TEST(SmallItems, have_their_heads_and_tails_in_the_declared_bound) {
  const TemporaryDirectory directory;
  constexpr std::size_t kCount = 640;
  constexpr std::int64_t kEach = 4096;
  ManyTensors saved(kCount, kEach);
  save_many(saved, directory.path());
  const std::uint64_t size = fs::file_size(directory.path() + "/" + kFirst + "/__0_0.distcp");
  const std::uint64_t around = size / kCount - kEach * sizeof(std::int64_t);
  run_ranks(1, directory.path(), [&](const Ports& near) {
    ThreadTasks tasks(4);
    const Ports ports{near.store, near.fabric, near.device, tasks, near.trace};
    ManyTensors loaded(kCount, kEach);
    const auto group = ports.fabric.communicator(Group::world(1));
    const auto report = load(ports, *group, loaded.state, {.directory = "run"});
    EXPECT_EQ(loaded.elements, saved.elements);
    const std::uint64_t together = 32;
    EXPECT_GE(report.bound_staging, report.peak_staging + (8 + 1) * together * around);
  });
}

/// Changes a byte of the item of tensor `t`, `at` bytes behind its begin.
void change(const std::string& directory, std::size_t t, std::uint64_t at) {
  PosixStore store(directory);
  Checkpoint checkpoint = Checkpoint::open(store, "run");
  const StoredTensor& tensor = *checkpoint.catalog().tensor("w" + std::to_string(10'000 + t));
  const StoredChunk& chunk = tensor.chunks.front();
  const std::string path = checkpoint.path_of(chunk.file);
  Bytes content = read_all(store, path, std::uint64_t{1} << 24U);
  content[chunk.range.offset + at] ^= std::byte{1};
  write_durably(store, path, content);
}

TEST(SmallItems, read_together_may_have_one_that_is_framed_in_another_way) {
  constexpr std::uint64_t kTime = 10;  // of the first record; nothing depends on it
  const TemporaryDirectory directory;
  ManyTensors saved(kJoined);
  save_many(saved, directory.path());
  for (const std::size_t t : {7U, 8U, 100U}) change(directory.path(), t, kTime);
  for (const int threads : {1, 2}) {
    for (const bool far : {false, true}) {
      for (const auto checksums : {LoadChecksums::kIgnored, LoadChecksums::kVerified}) {
        run_ranks(1, directory.path(), [&](const Ports& near) {
          ThreadTasks tasks(threads);
          FarDevice device(near.device);
          const Ports ports{near.store, near.fabric, far ? device : near.device, tasks, near.trace};
          ManyTensors loaded(kJoined);
          const auto group = ports.fabric.communicator(Group::world(1));
          const auto report =
              load(ports, *group, loaded.state, {.directory = "run", .checksums = checksums});
          EXPECT_EQ(loaded.elements, saved.elements);
          EXPECT_EQ(report.bytes_read, report.bytes_needed);
        });
      }
    }
  }
}

TEST(SmallItems, read_together_tell_which_of_them_has_a_wrong_checksum) {
  const TemporaryDirectory directory;
  ManyTensors saved(kJoined);
  save_many(saved, directory.path());
  const std::uint64_t size = fs::file_size(directory.path() + "/" + kFirst + "/__0_0.distcp");
  change(directory.path(), 7, size / kJoined / 2);  // among the elements
  for (const int threads : {1, 2}) {
    for (const bool far : {false, true}) {
      run_ranks(1, directory.path(), [&](const Ports& near) {
        ThreadTasks tasks(threads);
        FarDevice device(near.device);
        const Ports ports{near.store, near.fabric, far ? device : near.device, tasks, near.trace};
        const auto group = ports.fabric.communicator(Group::world(1));
        ManyTensors loaded(kJoined);
        const auto report = load(ports, *group, loaded.state, {.directory = "run"});
        EXPECT_EQ(report.bytes_read, report.bytes_needed);
        const auto failed = error_of([&] {
          load(ports, *group, loaded.state,
               {.directory = "run", .checksums = LoadChecksums::kVerified});
        });
        ASSERT_TRUE(failed);
        EXPECT_EQ(failed->code(), Code::kChecksum);
        EXPECT_EQ(failed->place().key, "w10007");
      });
    }
  }
}

/// Saves tensors by many ranks, `of_first` of them by the first one and one by each other.
void save_apart(const std::string& directory, ManyTensors& many, std::int32_t ranks,
                std::size_t of_first) {
  run_ranks(ranks, directory, [&](const Ports& ports) {
    StateDict own;
    own.common = many.state.common;
    const auto rank = static_cast<std::size_t>(ports.fabric.rank().value);
    const std::size_t begin = rank == 0 ? 0 : of_first + rank - 1;
    const std::size_t end = rank == 0 ? of_first : begin + 1;
    for (std::size_t t = begin; t < end; ++t) own.tensors.push_back(many.state.tensors[t]);
    Save::begin(ports, ports.fabric.communicator(Group::world(ranks)), own, options_of(1)).finish();
  });
}

TEST(SmallItems, that_are_still_to_be_read_fail_before_the_next_file) {
  const TemporaryDirectory directory;
  ManyTensors saved(kJoined);
  save_apart(directory.path(), saved, 2, kJoined - 1);
  const std::uint64_t size = fs::file_size(directory.path() + "/" + kFirst + "/__0_0.distcp");
  const WatchedStore::See refuse_second = [](Store&, const std::string& call,
                                             const std::string& path) {
    if (call == "open" && path.ends_with("__1_0.distcp")) throw Error(Code::kIo, "no such file");
  };
  for (const bool broken : {false, true}) {
    std::atomic<int> reads = 0;
    std::unique_ptr<Store> watched;
    const auto failed = error_of([&] {
      run_ranks(
          1, directory.path(),
          [](const Ports& ports) {
            ManyTensors loaded(kJoined);
            load(ports, *ports.fabric.communicator(Group::world(1)), loaded.state,
                 {.directory = "run"});
          },
          [&](Store& store, GlobalRank) {
            watched = std::make_unique<WatchedStore>(store, refuse_second, WatchedStore::See{});
            return std::make_unique<CountingStore>(
                *watched, reads, broken ? size * (2 * kJoined - 3) / (2 * kJoined - 2) : 0);
          });
    });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->place().key, broken ? "w11998" : "w11999");
  }
}

TEST(SmallItems, do_not_keep_their_file_open_when_they_have_been_read) {
  constexpr std::int32_t kFiles = 70;  // more than a checkpoint keeps open
  const TemporaryDirectory directory;
  ManyTensors saved(kFiles + 2);
  save_apart(directory.path(), saved, kFiles, 3);
  int most = 0;
  const auto open_now = [] {
    int files = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      files += fs::read_symlink(entry.path(), gone).string().ends_with(".distcp") ? 1 : 0;
    }
    return files;
  };
  run_ranks(
      1, directory.path(),
      [&](const Ports& near) {
        ThreadTasks tasks(1);
        const Ports ports{near.store, near.fabric, near.device, tasks, near.trace};
        ManyTensors loaded(kFiles + 2);
        load(ports, *ports.fabric.communicator(Group::world(1)), loaded.state,
             {.directory = "run"});
        EXPECT_EQ(loaded.elements, saved.elements);
      },
      [&](Store& store, GlobalRank) {
        return std::make_unique<WatchedStore>(
            store,
            [&](Store&, const std::string&, const std::string&) {
              most = std::max(most, open_now());
            },
            WatchedStore::See{});
      });
  EXPECT_GE(most, 63);
  EXPECT_LE(most, 64);
}

TEST_F(OneWriter, a_small_item_is_read_at_once_into_its_own_memory) {
  save(7, options_of(1));
  std::atomic<int> reads = 0;
  run_ranks(
      1, directory_.path(),
      [](const Ports& ports) {
        TinyState tiny(-2);
        const auto group = ports.fabric.communicator(Group::world(1));
        load(ports, *group, tiny.state, {.directory = "run"});
        EXPECT_EQ(tiny.elements, std::vector<std::int64_t>(kElements, 7));
      },
      [&](Store& store, GlobalRank) { return std::make_unique<CountingStore>(store, reads); });
  EXPECT_EQ(reads, 1);
}

}  // namespace
}  // namespace reprise::test
