// Tests jobs with several threads: what they store and load, and that an error of any thread is
// told once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/passing_store.hpp"
#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kTensors = 40;
constexpr std::int64_t kRows = 1000;
constexpr std::int64_t kColumns = 512;  // 2 MiB each, 80 in all

/// Tensors, of which some are transposed and one is large, and bytes.
struct Model {
  explicit Model(std::int32_t seed) {
    for (int i = 0; i < kTensors; ++i) {
      std::vector<std::int32_t>& values = tensors.emplace_back(kRows * kColumns);
      std::iota(values.begin(), values.end(), seed * 1'000'000 * (i + 1));
    }
    small.assign(3, seed);
    add(state);
  }

  void add(State& to) {
    for (int i = 0; i < kTensors; ++i) {
      const TensorPart part{
          .offset = {0, 0},
          .extent = {kRows, kColumns},
          .data = tensors[i].data(),
          .strides = i % 3 == 0 ? Dims{1, kRows} : Dims{},
      };
      to.add("layer." + std::to_string(100 + i), DType::kInt32, {kRows, kColumns}, {{part}});
    }
    to.add("small", DType::kInt32, {3},
           {{TensorPart{.offset = {0}, .extent = {3}, .data = small.data()}}});
    to.add_bytes("bytes", Bytes(5, std::byte{7}));
  }

  bool operator==(const Model& other) const {
    return tensors == other.tensors && small == other.small;
  }

  std::vector<std::vector<std::int32_t>> tensors;
  std::vector<std::int32_t> small;
  State state;
};

SaveOptions save_options(Checksums checksums = Checksums::kCrc32) {
  SaveOptions options;
  options.directory = "run";
  options.checksums = checksums;
  return options;
}

LoadOptions load_options(bool verify = true) {
  LoadOptions options;
  options.directory = "run";
  if (verify) options.checksums = LoadChecksums::kVerified;
  return options;
}

/// The content of the files of elements, by name.
std::vector<std::pair<std::string, std::string>> payload_in(const fs::path& directory) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".distcp") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().filename(),
                       std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Threads : public testing::Test {
 protected:
  Job job(int threads) const { return local_job(directory.path(), {.threads = threads}); }
  fs::path run() const { return fs::path(directory.path()) / "run"; }

  /// Returns the error of a load with so many threads; OK if there is none.
  Error error_of_load(int threads) {
    Job loading = job(threads);
    Model loaded(2);
    try {
      load(loading, loaded.state, load_options());
    } catch (const Error& error) {
      return error;
    }
    return Error(Code::kUsage, "no error");
  }

  contracts::TemporaryDirectory directory;
};

TEST_F(Threads, are_by_default_as_many_as_the_process_may_use) {
  const auto threads = [&] { return local_ports(directory.path()).tasks->threads(); };
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(threads(), std::min(CPU_COUNT(&before), 8));
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST_F(Threads, each_writes_a_file_and_all_loads_find_the_same) {
  const Model saved(1);
  for (const int writers : {1, 2, 4}) {
    for (const auto checksums : {Checksums::kCrc32, Checksums::kNone}) {
      Job saving = job(writers);
      const SaveResult result = save(saving, saved.state, save_options(checksums));
      EXPECT_TRUE(result.waited_for_staging || writers == 1);
      EXPECT_LE(result.staging_bytes, result.bound_staging);
      const auto files = payload_in(run());
      ASSERT_EQ(files.size(), static_cast<std::size_t>(writers));
      std::uint64_t bytes = 0;
      for (const auto& [name, content] : files) {
        bytes += content.size();
        EXPECT_LT(content.size(), (90U << 20U) / static_cast<unsigned>(writers)) << name;
      }
      EXPECT_EQ(bytes, result.bytes);
      for (const int readers : {1, 3}) {
        for (const bool verify : {true, false}) {
          Job loading = job(readers);
          Model loaded(2);
          const LoadResult found = load(loading, loaded.state, load_options(verify));
          EXPECT_TRUE(loaded == saved) << writers << " writers, " << readers << " readers";
          EXPECT_LE(found.peak_staging, found.bound_staging);
          EXPECT_EQ(found.tensors, static_cast<std::uint64_t>(kTensors + 1));
        }
      }
    }
  }
}

TEST_F(Threads, write_the_same_bytes_each_time) {
  const Model saved(1);
  Job saving = job(3);
  save(saving, saved.state, save_options());
  const auto once = payload_in(run());
  save(saving, saved.state, save_options());
  EXPECT_TRUE(payload_in(run()) == once);
}

TEST_F(Threads, do_not_make_more_files_than_there_is_to_write) {
  Job saving = job(4);
  State small;
  std::vector<std::int32_t> values(9U << 20U);  // 36 MiB in one tensor, and another
  const auto part = [&](std::int64_t count) {
    return TensorPart{.offset = {0}, .extent = {count}, .data = values.data()};
  };
  small.add("one", DType::kInt32, {9 << 20}, {{part(9 << 20)}});
  save(saving, small, save_options());
  EXPECT_EQ(payload_in(run()).size(), 1U);
  small.add("two", DType::kInt32, {3}, {{part(3)}});
  save(saving, small, save_options());
  EXPECT_EQ(payload_in(run()).size(), 2U);
}

TEST_F(Threads, write_at_once_only_within_staging_of_a_blocking_save) {
  struct Written {
    std::uint64_t staging;
    std::size_t files;
  };
  const Model saved(1);
  Job saving = job(4);
  for (const auto& [staging, files] :
       {Written{1U << 20U, 1}, Written{2U << 20U, 2}, Written{8U << 20U, 4},
        Written{16U << 20U, 1}}) {  // the last lets the job go on before
    SaveOptions options = save_options();
    options.staging_bytes = staging;
    const SaveResult result = save(saving, saved.state, options);
    EXPECT_EQ(payload_in(run()).size(), files) << staging;
    EXPECT_LE(result.bound_staging, staging + (1U << 20U)) << files;
  }
}

TEST_F(Threads, that_read_a_changed_element_tell_its_place_once) {
  const Model saved(1);
  Job saving = job(2);
  save(saving, saved.state, save_options());
  const fs::path file = run() / "__0_1.distcp";
  {
    std::fstream changed(file, std::ios::in | std::ios::out | std::ios::binary);
    changed.seekp(5'000'000);
    changed.put('\x55');
    changed.seekp(7'000'000);
    changed.put('\x55');
  }
  const Error alone = error_of_load(1);
  EXPECT_EQ(alone.code(), Code::kChecksum);
  for (int turn = 0; turn < 5; ++turn) {
    const Error error = error_of_load(4);
    EXPECT_STREQ(error.what(), alone.what());
  }
}

TEST_F(Threads, that_read_a_file_cut_short_tell_so) {
  const Model saved(1);
  Job saving = job(2);
  save(saving, saved.state, save_options());
  fs::resize_file(run() / "__0_1.distcp", 20'000'000);
  const Error alone = error_of_load(1);
  EXPECT_EQ(alone.code(), Code::kTornFile);
  EXPECT_STREQ(error_of_load(4).what(), alone.what());
}

/// A store in which nothing can be written to some files.
class FullStore final : public PassingStore {
 public:
  FullStore(std::shared_ptr<Store> inner, std::string end)
      : PassingStore(*inner), owned_(std::move(inner)), end_(std::move(end)) {}

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    auto file = PassingStore::create(path);
    if (!path.ends_with(end_)) return file;
    return std::make_unique<Full>(std::move(file), path);
  }

 private:
  class Full final : public WriteFile {
   public:
    Full(std::unique_ptr<WriteFile> file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      if (offset > 10'000'000) {
        throw Error(Code::kNoSpace, "no space is left", {.file = path_, .offset = offset});
      }
      file_->write_at(offset, bytes);
    }
    void sync() override { file_->sync(); }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<WriteFile> file_;
    std::string path_;
  };

  std::shared_ptr<Store> owned_;
  std::string end_;
};

TEST_F(Threads, a_failed_write_fails_the_save_and_keeps_the_old_checkpoint) {
  const Model old(1);
  Job before = job(2);
  save(before, old.state, save_options());
  for (const std::string end : {"_0.distcp", "_2.distcp", ".distcp"}) {
    JobPorts ports = local_ports(directory.path(), {.threads = 4});
    ports.store = std::make_shared<FullStore>(ports.store, end);
    Job saving(std::move(ports));
    const Model next(5);
    try {
      save(saving, next.state, save_options());
      FAIL() << "it can't be written";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kNoSpace);
      EXPECT_TRUE(error.place().file.ends_with(end == ".distcp" ? "__0_0.distcp" : end))
          << error.what();
    }
    Job loading = job(2);
    Model loaded(2);
    load(loading, loaded.state, load_options());
    EXPECT_TRUE(loaded == old);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
  }
}

}  // namespace
}  // namespace reprise
