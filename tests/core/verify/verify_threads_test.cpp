// Tests that verify finds the same, in the same order, whatever the number of threads, also if they
// share one file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"
#include "core/verify/payload_visits.hpp"
#include "core/verify/verify.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise::test::verify_threads_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kTensors = 2500;  // several runs
constexpr std::int64_t kWide = 24;       // numbers of each

/// Returns numbers whose sums depend on the order in which they are added.
Bytes numbers(std::int64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kWide; ++i) {
    values.push_back(1.0F / static_cast<float>(seed * kWide + i + 3));
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// A file that can't be read in its middle.
class BadSectors final : public ReadFile {
 public:
  BadSectors(std::unique_ptr<ReadFile> inner, ByteRange bad)
      : inner_(std::move(inner)), bad_(bad) {}

  std::uint64_t size() const override { return inner_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (offset < bad_.offset + bad_.size && bad_.offset < offset + out.size()) {
      throw Error(Code::kIo, "read: Input/output error at " + std::to_string(offset));
    }
    inner_->read_at(offset, out);
  }

 private:
  std::unique_ptr<ReadFile> inner_;
  ByteRange bad_;
};

class BadDisk final : public PassingStore {
 public:
  BadDisk(Store& inner, ByteRange bad) : PassingStore(inner), bad_(bad) {}
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = PassingStore::open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<BadSectors>(std::move(file), bad_);
  }

 private:
  ByteRange bad_;
};

/// Checks that progress never goes back and ends where it said it would.
class Rising final : public Progress {
 public:
  void advance(std::string_view /*what*/, std::uint64_t done, std::uint64_t total) override {
    EXPECT_GE(done, done_);
    EXPECT_LE(done, total);
    done_ = done;
    total_ = total;
  }
  bool is_done() const { return done_ == total_; }

 private:
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 1;
};

std::string words_of(const VerifyReport& report) {
  std::ostringstream out;
  out << report.records_checked << '\n';
  for (const Finding& finding : report.findings) out << finding << '\n';
  for (const std::string& key : report.opaque) out << "opaque " << key << '\n';
  if (!report.health) return out.str();
  for (const Finding& finding : report.health->findings) out << finding << '\n';
  out << std::hexfloat;
  for (const auto& [key, stats] : report.health->stats) {
    out << key << ' ' << stats.numbers << ' ' << stats.sum << ' ' << stats.squares << '\n';
  }
  return out.str();
}

std::string verified(Store& store, int threads) {
  ThreadTasks tasks(threads);
  HostDevice device("host", 0);
  Rising progress;
  const HealthRequest health{{}, device};
  const VerifyReport report =
      verify(store, "ckpt", PayloadCheck::kRead, {tasks, progress}, &health);
  EXPECT_TRUE(progress.is_done());
  return words_of(report);
}

class VerifyThreads : public ::testing::Test {
 protected:
  VerifyThreads() {
    for (std::int64_t t = 0; t < kTensors; ++t) {
      std::string key = "layers." + std::to_string(t) + ".weight";
      written_.tensor(key, DType::kFloat32, {2, kWide / 2}, numbers(t));
    }
    std::vector<std::pair<Box, Bytes>> rows;
    for (std::int64_t row = 0; row < kTensors; ++row) {
      rows.emplace_back(Box{{row, 0}, {1, kWide}}, numbers(row));
    }
    written_.chunks("tall", DType::kFloat32, {kTensors, kWide}, rows);
    store_ = &written_.store();
  }

  /// Returns what one thread finds, after comparing with several.
  std::string same_for_all(Store& store) {
    const std::string one = verified(store, 1);
    for (const int threads : {2, 7}) EXPECT_EQ(verified(store, threads), one) << threads;
    return one;
  }
  ByteRange range_of(const std::string& key) {
    return Checkpoint::open(*store_, "ckpt").catalog().tensor(key)->chunks[0].range;
  }

  WrittenCheckpoint written_;
  Store* store_ = nullptr;
};

TEST_F(VerifyThreads, sums_do_not_depend_on_the_threads) {
  EXPECT_THAT(same_for_all(*store_), HasSubstr("tall " + std::to_string(60000)));
}

TEST_F(VerifyThreads, findings_keep_their_order) {
  Bytes payload = read_all(*store_, "ckpt/__0_0.distcp", std::uint64_t{1} << 30U);
  for (const std::int64_t t : {2400, 3, 1300, 1301}) {
    const ByteRange item = range_of("layers." + std::to_string(t) + ".weight");
    const Bytes content = numbers(t);
    const auto begin = payload.begin() + static_cast<std::ptrdiff_t>(item.offset);
    const auto end = begin + static_cast<std::ptrdiff_t>(item.size);
    *std::search(begin, end, content.begin(), content.end()) ^= std::byte{4};
  }
  for (const std::int64_t t : {2300, 7}) {  // what is no archive
    payload[range_of("layers." + std::to_string(t) + ".weight").offset] ^= std::byte{1};
  }
  written_.write("ckpt/__0_0.distcp", payload);
  const std::string words = same_for_all(*store_);
  EXPECT_THAT(words, HasSubstr("layers.7.weight"));
  EXPECT_THAT(words, HasSubstr("layers.2300.weight"));
  EXPECT_THAT(words, HasSubstr("layers.2400.weight"));
}

TEST_F(VerifyThreads, a_file_that_ends_to_be_readable_is_told_once) {
  BadDisk store(*store_, {range_of("layers.1300.weight").offset + 100, 1});
  const std::string words = same_for_all(store);
  EXPECT_THAT(words, HasSubstr("; 3,700 items of this file were not checked"));
}

TEST_F(VerifyThreads, runs_cover_all_visits_and_none_spans_files) {
  Checkpoint checkpoint = Checkpoint::open(*store_, "ckpt");
  const std::uint64_t size = checkpoint.file(0).size();
  const std::vector<StoredFile> files{{"__0_0.distcp", size, std::nullopt}};
  const PayloadVisits visits = payload_visits(checkpoint.catalog(), files);
  EXPECT_EQ(visits.visits.size(), static_cast<std::size_t>(2 * kTensors));
  EXPECT_GT(visits.runs.size(), 4U);
  const Visit* next = visits.visits.data();
  for (const auto run : visits.runs) {
    EXPECT_EQ(run.data(), next);
    next = run.data() + run.size();
    for (const Visit& visit : run) EXPECT_EQ(visit.file, run.front().file);
  }
  EXPECT_EQ(next, visits.visits.data() + visits.visits.size());
}

}  // namespace
}  // namespace reprise::test::verify_threads_test
