// Tests loads in which several ranks need the same data. The data must be read from storage only
// once, and the result must be the same as if each rank had read it.
#include "core/load/record_exchange.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>

#include "core/load/load_seamed.hpp"
#include "core/ports/passing_store.hpp"
#include "core/save/save_seamed.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/device_fabric.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise {
namespace {

using contracts::error_of;
using contracts::run_ranks;
using contracts::TemporaryDirectory;
using testing::HasSubstr;
using testing_job::mesh_of;
using testing_job::RankState;
using testing_job::TensorSpec;

/// Counts how often each byte of the payload files and of the common state is read, summed over all
/// ranks.
class Tally {
 public:
  void read(const std::string& path, std::uint64_t offset, std::uint64_t size) {
    if (!path.ends_with(".distcp") && !path.ends_with("common.pt")) return;
    const std::lock_guard lock(mutex_);
    auto& times = times_[path];
    times.resize(std::max<std::size_t>(times.size(), offset + size));
    for (std::uint64_t i = 0; i < size; ++i) ++times[offset + i];
  }
  /// Returns how often the most frequently read byte was read.
  int most() const {
    int most = 0;
    for (const auto& [path, times] : times_) {
      for (const int count : times) most = std::max(most, count);
    }
    return most;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<int>> times_;
};

/// Function that is called at each read of payload. It may throw, which makes the read fail.
using Read = void (*)(const std::string& path);
void succeeds(const std::string& /*path*/) {}
void fails(const std::string& path) { throw Error(Code::kIo, "the disk is gone", {.file = path}); }
void finds_no_memory(const std::string& /*path*/) { throw std::bad_alloc(); }

class CountingStore final : public PassingStore {
 public:
  CountingStore(Store& inner, Tally& tally, Read payload)
      : PassingStore(inner), tally_(tally), payload_(payload) {}
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return std::make_unique<File>(inner().open(path), path, *this);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, std::string path, CountingStore& store)
        : inner_(std::move(inner)), path_(std::move(path)), store_(store) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      if (path_.ends_with(".distcp")) store_.payload_(path_);
      store_.tally_.read(path_, offset, out.size());
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    std::string path_;
    CountingStore& store_;
  };

  Tally& tally_;
  Read payload_;
};

/// A device whose memory only its own copy operations can access. Knows which staging it gave.
class BesideDevice final : public Device {
 public:
  explicit BesideDevice(Device& inner) : inner_(inner) {}
  std::string name() const override { return inner_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return inner_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return inner_.scatter(copies);
  }
  void wait(DeviceEvent event) override { inner_.wait(event); }
  StagingMemory staging(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return given_.emplace_back(inner_.staging(bytes));
  }
  /// Returns how many others own memory that begins there; nothing if this device did not give it.
  std::optional<long> owners_of(const std::byte* memory) const {
    for (const auto& given : given_) {
      if (given.get() == memory) return given.use_count() - 1;
    }
    return std::nullopt;
  }

 private:
  Device& inner_;
  std::mutex mutex_;
  std::vector<StagingMemory> given_;
};

/// Runs work as late as possible: when somebody waits for it.
class LateTasks final : public Tasks {
 public:
  std::unique_ptr<Task> start(std::function<void()> work) override {
    return std::make_unique<Late>(std::move(work));
  }

 private:
  class Late final : public Task {
   public:
    explicit Late(std::function<void()> work) : work_(std::move(work)) {}
    ~Late() override {
      try {
        run();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody waited
      }
    }
    bool done() override { return !work_; }
    void wait() override { run(); }

   private:
    void run() {
      if (work_) std::exchange(work_, nullptr)();
    }
    std::function<void()> work_;
  };
};

/// Returns small, large and empty tensors. Some are held whole by all ranks; others are split along
/// one or two axes.
std::vector<TensorSpec> exchanged_specs() {
  return {{"rows", DType::kFloat32, {90, 50}, Placement({{"tp", 0}})},
          {"both", DType::kFloat64, {41}, Placement({{"tp", 0}, {"dp", 0}})},
          {"few", DType::kUInt8, {3, 2}, Placement({{"tp", 0}})},
          {"none", DType::kFloat32, {0, 4}, Placement({{"tp", 0}})},
          {"whole", DType::kBFloat16, {700}, {}},
          {"scalar", DType::kInt64, {}, {}}};
}

const std::vector<std::vector<Axis>> kMeshes = {{{"tp", 1}, {"dp", 1}},
                                                {{"tp", 1}, {"dp", 3}},
                                                {{"tp", 2}, {"dp", 2}},
                                                {{"tp", 4}, {"dp", 1}},
                                                {{"tp", 3}, {"dp", 2}}};

/// An object that is larger than the ends of records that are fetched from a device together.
std::string big_text() { return std::string(9000, 'x') + "end"; }

struct JobState {
  JobState(const std::vector<Axis>& axes, GlobalRank rank)
      : held(exchanged_specs(), mesh_of(axes), rank) {
    // Every rank holds a copy of these objects and loads them. The first rank saves one, and the
    // last rank the other.
    const std::int32_t from_last = (rank.value + 1) % mesh_of(axes)->size();
    held.state.objects = {{"all", {1}, {0}, rank.value, Value(std::int64_t{7})},
                          {"big", {1}, {0}, from_last, Value(big_text())}};
    held.state.common = Dict{{"iteration", Value(std::int64_t{3})}};
  }
  RankState held;
};

void save_under(const std::vector<Axis>& axes, const std::string& directory) {
  const auto size = mesh_of(axes)->size();
  run_ranks(size, directory, [&](const Ports& ports) {
    JobState job(axes, ports.fabric.rank());
    testing_job::fill(job.held.state);
    SaveOptions options;
    options.directory = "run";
    options.step = 3;
    Save::begin(ports, ports.fabric.communicator(Group::world(size)), job.held.state, options)
        .finish();
  });
}

/// Returns the number of elements in which at least one byte differs from `expected`.
std::size_t other_than(std::byte expected, const StateDict& state) {
  std::size_t count = 0;
  testing_job::each_element(state, [&](const TensorLeaf& leaf, const std::byte* element, auto) {
    const ByteSpan bytes(element, size_of(leaf.dtype));
    count +=
        std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == expected; }) ? 0 : 1;
  });
  return count;
}

enum class Memory : std::uint8_t {
  kHosts,
  kDevices,
  kLinkedDevices,  ///< devices with a data fabric between them
  kOneHost         ///< the same, but rank 0 has its tensors in memory of the host
};

struct LoadCase {
  std::vector<Axis> axes;
  LoadOptions options;
  Memory memory = Memory::kHosts;
  bool unequal = false;       ///< true if each rank has half the staging of the rank before
  bool broken = false;        ///< true if gathers on devices fail
  bool late = false;          ///< true if reads run as late as possible
  std::int32_t failing = -1;  ///< rank whose reads fail; -1 if none do
  Read how = fails;
  LoadSeams seams = {};  ///< used by the failing rank only
};

struct Loaded {
  std::size_t wrong = 0;
  std::size_t unpoisoned = 0;
  std::size_t touched = 0;
  std::vector<std::uint64_t> for_all;  ///< for each rank: bytes_for_all of its report
  std::vector<std::uint64_t> taken;    ///< for each rank: bytes_read of its report
  std::vector<std::string> errors;     ///< for each rank: its error
  std::uint64_t on_devices = 0;        ///< gathers on devices, over all ranks
  int most = 0;                        ///< how often the most frequently read byte was read
};

LoadResult load_job(const Ports& ports, test::DeviceFabric& between, const LoadCase& how,
                    StateDict& into) {
  BesideDevice device(ports.device);
  LateTasks late;
  const bool linked = how.memory == Memory::kLinkedDevices || how.memory == Memory::kOneHost;
  const bool near = how.memory == Memory::kHosts ||
                    (how.memory == Memory::kOneHost && ports.fabric.rank() == GlobalRank{0});
  const Ports own{ports.store,
                  ports.fabric,
                  near ? ports.device : device,
                  how.late ? late : ports.tasks,
                  ports.trace,
                  linked ? &between : nullptr};
  const auto group = own.fabric.communicator(Group::world(own.fabric.world_size()));
  const bool fails = own.fabric.rank().value == how.failing;
  LoadOptions options = how.options;
  if (how.unequal) options.staging_bytes = *options.staging_bytes >> own.fabric.rank().value;
  if (how.broken) between.break_gathers();
  LoadResult report;
  const auto error = error_of([&] {
    report = load(
        own, *group, options,
        [&into](const Candidate&) {
          return Wanted{&into, {}};
        },
        fails ? how.seams : LoadSeams{});
  });
  for (const auto* share : between.shares()) {
    EXPECT_EQ(device.owners_of(share), how.broken ? 1 : 0)
        << "a device copies from its staging alone, and may go on after a failure";
  }
  if (error) throw Error(*error);
  return report;
}

Loaded load_under(const LoadCase& how, const std::string& directory) {
  const auto size = mesh_of(how.axes)->size();
  Tally tally;
  std::mutex mutex;
  Loaded loaded;
  loaded.for_all.resize(static_cast<std::size_t>(size));
  loaded.taken.resize(static_cast<std::size_t>(size));
  loaded.errors.resize(static_cast<std::size_t>(size));
  run_ranks(
      size, directory,
      [&](const Ports& ports) {
        JobState job(how.axes, ports.fabric.rank());
        job.held.state.objects[0].value = Value();
        job.held.state.objects[1].value = Value();
        LoadResult report;
        test::DeviceFabric between(ports.fabric);
        const auto error =
            error_of([&] { report = load_job(ports, between, how, job.held.state); });
        const std::lock_guard lock(mutex);
        const auto rank = static_cast<std::size_t>(ports.fabric.rank().value);
        loaded.on_devices += between.shares().size();
        loaded.for_all[rank] = report.bytes_for_all;
        loaded.taken[rank] = report.bytes_read;
        loaded.errors[rank] = error ? error->what() : "";
        loaded.unpoisoned += other_than(std::byte{0xBD}, job.held.state);
        loaded.touched += other_than(std::byte{0}, job.held.state);
        if (error) return;
        loaded.wrong += testing_job::wrong_elements(job.held.state);
        loaded.wrong += job.held.state.objects[0].value == Value(std::int64_t{7}) ? 0 : 1;
        loaded.wrong += job.held.state.objects[1].value == Value(big_text()) ? 0 : 1;
        loaded.wrong += job.held.state.common.find("iteration") == nullptr ? 1 : 0;
        EXPECT_GE(report.bound_staging, report.peak_staging);
      },
      [&](Store& store, GlobalRank rank) {
        return std::make_unique<CountingStore>(store, tally,
                                               rank.value == how.failing ? how.how : succeeds);
      });
  loaded.most = tally.most();
  return loaded;
}

LoadOptions once_per_job() {
  LoadOptions options;
  options.directory = "run";
  options.reads = Reads::kOncePerJob;
  return options;
}

void expect_same_error(const Loaded& loaded, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_THAT(loaded.errors.front(), HasSubstr(word));
  EXPECT_EQ(loaded.errors, std::vector(loaded.errors.size(), loaded.errors.front()));
}

TEST(RecordExchange, every_pair_of_small_worlds_loads_with_each_byte_read_once) {
  for (const auto& saver : kMeshes) {
    const TemporaryDirectory directory;
    save_under(saver, directory.path());
    for (const auto& loader : kMeshes) {
      for (const std::uint64_t staging : {64U, 4096U, 1U << 20U}) {
        for (const auto checksums : {LoadChecksums::kIgnored, LoadChecksums::kVerified}) {
          for (const auto memory :
               {Memory::kHosts, Memory::kDevices, Memory::kLinkedDevices, Memory::kOneHost}) {
            LoadCase how{.axes = loader, .options = once_per_job(), .memory = memory};
            how.options.staging_bytes = staging;
            how.options.checksums = checksums;
            const Loaded once = load_under(how, directory.path());
            EXPECT_EQ(once.wrong, 0U);
            EXPECT_EQ(std::accumulate(once.errors.begin(), once.errors.end(), std::string()), "");
            EXPECT_EQ(once.most, 1) << "staging " << staging;
            const bool on_devices = memory == Memory::kLinkedDevices && loader != kMeshes[0] &&
                                    checksums == LoadChecksums::kIgnored;
            EXPECT_EQ(once.on_devices > 0, on_devices);
            how.options.reads = Reads::kByEach;
            EXPECT_EQ(once.taken, load_under(how, directory.path()).taken);
          }
        }
      }
    }
  }
}

TEST(RecordExchange, ranks_with_unequal_staging_run_the_same_rounds) {
  const TemporaryDirectory directory;
  save_under(kMeshes[0], directory.path());
  for (const auto& loader : kMeshes) {
    for (const auto memory : {Memory::kHosts, Memory::kLinkedDevices}) {
      LoadCase how{.axes = loader, .options = once_per_job(), .memory = memory, .unequal = true};
      how.options.staging_bytes = std::uint64_t{1} << 15U;
      const Loaded loaded = load_under(how, directory.path());
      EXPECT_EQ(loaded.wrong, 0U);
      EXPECT_EQ(std::accumulate(loaded.errors.begin(), loaded.errors.end(), std::string()), "");
      EXPECT_EQ(loaded.most, 1);
    }
  }
}

TEST(RecordExchange, what_a_failed_gather_may_still_send_is_not_used_again) {
  const TemporaryDirectory directory;
  save_under(kMeshes[0], directory.path());
  const Loaded loaded = load_under({.axes = kMeshes[1],
                                    .options = once_per_job(),
                                    .memory = Memory::kLinkedDevices,
                                    .broken = true},
                                   directory.path());
  EXPECT_EQ(loaded.on_devices, 3U);
  for (const auto& error : loaded.errors) EXPECT_THAT(error, HasSubstr("nobody came"));
}

TEST(RecordExchange, ranks_that_need_the_same_read_equal_shares__dp3) {
  const TemporaryDirectory directory;
  // One rank saves. Each of the three ranks that load needs every record.
  save_under(kMeshes[0], directory.path());
  for (const auto memory : {Memory::kHosts, Memory::kDevices, Memory::kLinkedDevices}) {
    LoadCase how{.axes = kMeshes[1], .options = once_per_job(), .memory = memory};
    const auto shares = load_under(how, directory.path()).for_all;
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    EXPECT_GT(*least, 5000U);
    EXPECT_LE(*most - *least, 4U) << "at most two bytes per round";
    how.options.reads = Reads::kByEach;
    EXPECT_EQ(load_under(how, directory.path()).most, 3);
  }
}

TEST(RecordExchange, a_failed_read_on_one_rank_fails_all_and_leaves_poison) {
  const TemporaryDirectory directory;
  save_under(kMeshes[3], directory.path());
  for (const auto& loader : kMeshes) {
    for (std::int32_t rank = 0; rank < mesh_of(loader)->size(); ++rank) {
      for (const Read read : {fails, finds_no_memory}) {
        LoadCase how{.axes = loader,
                     .options = once_per_job(),
                     .memory = read == fails ? Memory::kLinkedDevices : Memory::kHosts,
                     .failing = rank,
                     .how = read};
        how.options.staging_bytes = 4096;
        const Loaded loaded = load_under(how, directory.path());
        expect_same_error(loaded, {read == fails ? "the disk is gone" : "INTERNAL",
                                   "rank " + std::to_string(rank)});
        EXPECT_EQ(loaded.unpoisoned, 0U);
      }
    }
  }
}

/// Writes garbage over the pickle of the object "big".
void garble_big(const std::string& directory) {
  PosixStore store(directory);
  const Checkpoint checkpoint = Checkpoint::open(store, "run");
  for (const auto& object : checkpoint.catalog().objects) {
    if (!object.key.starts_with("big")) continue;
    const std::string path = checkpoint.path_of(object.file);
    Bytes bytes = read_all(store, path, 1U << 30U);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(object.range.offset), 1000,
                std::byte{0xFF});
    write_durably(store, path, bytes);
  }
}

TEST(RecordExchange, reads_on_their_way_end_before_a_round_whose_object_fails) {
  for (const auto memory : {Memory::kDevices, Memory::kLinkedDevices}) {
    const TemporaryDirectory directory;
    save_under(kMeshes[3], directory.path());  // tensors of other files come before the object
    garble_big(directory.path());
    LoadCase how{.axes = kMeshes[1], .options = once_per_job(), .memory = memory, .late = true};
    how.options.staging_bytes = 1U << 20U;
    const Loaded loaded = load_under(how, directory.path());
    expect_same_error(loaded, {"big"});
    EXPECT_EQ(loaded.most, 1) << "from memory, not from the file once more";
    EXPECT_EQ(loaded.unpoisoned, 0U);
  }
}

TEST(RecordExchange, a_rank_without_staging_fails_all_and_nothing_is_touched) {
  if (REPRISE_SANITIZED != 0)
    GTEST_SKIP() << "a sanitizer ends the program instead of throwing bad_alloc";
  const TemporaryDirectory directory;
  save_under(kMeshes[3], directory.path());
  for (const auto& loader : kMeshes) {
    for (std::int32_t rank = 0; rank < mesh_of(loader)->size(); ++rank) {
      LoadCase how{.axes = loader, .options = once_per_job(), .failing = rank, .how = succeeds};
      how.seams.staging = [](const StagingNeed&) { return UINT64_MAX; };
      const Loaded loaded = load_under(how, directory.path());
      expect_same_error(loaded, {"INTERNAL", "rank " + std::to_string(rank)});
      EXPECT_EQ(loaded.most, 1) << "only the common state, no payload";
      EXPECT_EQ(loaded.touched, 0U);
    }
  }
}

/// Makes the metadata say that a file's last item has `bytes` bytes. Does not change the file.
void claim(const std::string& directory, std::uint64_t bytes) {
  PosixStore store(directory);
  Metadata metadata = Checkpoint::open(store, "run").metadata();
  ByteRange* last = nullptr;
  for (auto& tensor : metadata.catalog.tensors) {
    for (auto& chunk : tensor.chunks) {
      if (chunk.file == 0 && (last == nullptr || chunk.range.offset > last->offset)) {
        last = &chunk.range;
      }
    }
  }
  for (auto& object : metadata.catalog.objects) {
    if (object.file == 0 && object.range.offset > last->offset) last = &object.range;
  }
  last->size = bytes;
  write_durably(store, "run/iter_0000003/.metadata", write_metadata(metadata));
}

TEST(RecordExchange, bytes_beyond_a_file_are_refused_before_memory_is_allocated) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20U, std::uint64_t{1} << 60U}) {
    const TemporaryDirectory directory;
    save_under(kMeshes[0], directory.path());
    claim(directory.path(), bytes);
    const Loaded loaded =
        load_under({.axes = kMeshes[2], .options = once_per_job()}, directory.path());
    expect_same_error(loaded, {"TORN_FILE", "__0_0.distcp"});
  }
}

}  // namespace
}  // namespace reprise
