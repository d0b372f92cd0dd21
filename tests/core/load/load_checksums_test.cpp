// Tests loads with and without verification of the stored checksums. The loads read real
// checkpoints, and files with one changed byte, into host memory or device memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "core/format/zip/archive.hpp"
#include "core/format/zip/zip_layout.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using contracts::error_of;
using contracts::run_ranks;
using contracts::TemporaryDirectory;
using testing_job::mesh_of;
using testing_job::RankState;
using testing_job::TensorSpec;

constexpr auto kIgnored = LoadChecksums::kIgnored;
constexpr auto kVerified = LoadChecksums::kVerified;

/// Memory that only the device can access, like a GPU's.
class FarDevice final : public Device {
 public:
  std::string name() const override { return "far:0"; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return near_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return near_.scatter(copies);
  }
  void wait(DeviceEvent event) override { near_.wait(event); }

 private:
  HostDevice near_{"far", 0};
};

enum class Memory { kHost, kFar };

/// Returns `ports` unchanged or, for Memory::kFar, with `far` as the device.
Ports with_memory(const Ports& ports, Memory memory, Device& far) {
  return {ports.store, ports.fabric, memory == Memory::kFar ? far : ports.device, ports.tasks,
          ports.trace};
}

// --- checkpoints that torch and Megatron wrote ---------------------------------------------------

/// The state of one rank that has all tensors of a checkpoint unsplit.
class WholeState {
 public:
  explicit WholeState(const Catalog& catalog) {
    for (const StoredTensor& stored : catalog.tensors) {
      TensorLeaf leaf;
      leaf.key = stored.key;
      leaf.dtype = stored.dtype;
      leaf.shape = logical_shape(stored);
      leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
      buffers.emplace_back(static_cast<std::size_t>(volume(leaf.shape)) * size_of(leaf.dtype));
      leaf.data = buffers.back().data();
      state.tensors.push_back(std::move(leaf));
    }
  }

  StateDict state;
  std::vector<Bytes> buffers;
};

struct Loaded {
  std::vector<Bytes> buffers;
  LoadResult report;
};

Loaded load_whole(const std::string& directory, const std::string& path, Memory memory,
                  LoadChecksums checksums) {
  Loaded loaded;
  run_ranks(1, directory, [&](const Ports& near) {
    FarDevice far;
    const Ports ports = with_memory(near, memory, far);
    WholeState whole(Checkpoint::open(ports.store, path).catalog());
    const auto group = ports.fabric.communicator(Group::world(1));
    loaded.report = load(ports, *group, whole.state,
                         {.directory = path,
                          .strictness = Strictness::kIgnoreAll,
                          .excused = {},
                          .checksums = checksums});
    loaded.buffers = std::move(whole.buffers);
  });
  return loaded;
}

TEST(LoadChecksums, of_real_checkpoints_match_and_all_ways_to_read_agree) {
  std::size_t checkpoints = 0;
  for (const char* family : {"", "torch_2.15.0", "torch_2.9.1", "torch_2.4.1"}) {
    const auto folder = std::filesystem::path(REPRISE_TEST_DATA) / family;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path().lexically_relative(REPRISE_TEST_DATA).string();
      PosixStore& store = test::data_store();
      if (!entry.is_directory() || error_of([&] { locate(store, path); })) continue;
      // Each rank wrote its own metadata.
      if (Checkpoint::open(store, path).metadata().ranks.size() > 1) {
        const auto error =
            error_of([&] { load_whole(REPRISE_TEST_DATA, path, Memory::kHost, kIgnored); });
        ASSERT_TRUE(error) << path;
        EXPECT_EQ(error->code(), Code::kUnsupported) << path;
        continue;
      }
      const Loaded plain = load_whole(REPRISE_TEST_DATA, path, Memory::kFar, kIgnored);
      EXPECT_EQ(plain.report.records_verified, 0U);
      for (const auto memory : {Memory::kHost, Memory::kFar}) {
        const Loaded again = load_whole(REPRISE_TEST_DATA, path, memory, kIgnored);
        EXPECT_TRUE(again.buffers == plain.buffers) << path;
        const Loaded verified = load_whole(REPRISE_TEST_DATA, path, memory, kVerified);
        EXPECT_TRUE(verified.buffers == plain.buffers) << path;
        EXPECT_GT(verified.report.records_verified, 0U) << path;
      }
      ++checkpoints;
    }
  }
  EXPECT_GT(checkpoints, 15U);
}

// --- files with one changed byte ----------------------------------------------------------------

struct Saved {
  TemporaryDirectory directory;

  explicit Saved(const std::vector<TensorSpec>& specs, std::int32_t ranks = 1,
                 Checksums checksums = Checksums::kCrc32) {
    run_ranks(ranks, directory.path(), [&](const Ports& ports) {
      RankState rank(specs, mesh_of({{"tp", ranks}}), ports.fabric.rank());
      testing_job::fill(rank.state);
      rank.state.common = Dict{{"iteration", Value(3)}};
      rank.state.objects = {{"o", {1}, {0}, 0, Value(std::int64_t{7})}};
      if (ports.fabric.rank() != GlobalRank{0}) rank.state.objects.clear();
      Save::begin(ports, ports.fabric.communicator(Group::world(ranks)), rank.state,
                  {.directory = "ckpt", .checksums = checksums})
          .finish();
    });
  }

  std::string path(const std::string& name) const { return directory.path() + "/ckpt/" + name; }
};

Bytes content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return to_bytes(text);
}

void put(const std::string& path, const Bytes& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << as_text(content);
}

/// Result of a load on one rank.
struct RankLoad {
  std::optional<Error> failed;
  std::size_t wrong = 0;     ///< number of elements with wrong bits
  std::size_t poisoned = 0;  ///< number of elements whose first byte is the poison
  LoadResult report;
};

std::vector<RankLoad> load_by(const Saved& saved, const std::vector<TensorSpec>& specs,
                              std::int32_t ranks, Memory memory = Memory::kHost) {
  std::vector<RankLoad> outcomes(static_cast<std::size_t>(ranks));
  run_ranks(ranks, saved.directory.path(), [&](const Ports& near) {
    FarDevice far;
    const Ports ports = with_memory(near, memory, far);
    RankState rank(specs, mesh_of({{"tp", ranks}}), ports.fabric.rank());
    if (ports.fabric.rank() == GlobalRank{0}) {
      rank.state.objects = {{"o", {1}, {0}, 0, Value(std::int64_t{0})}};
    }
    const auto group = ports.fabric.communicator(Group::world(ranks));
    RankLoad& outcome = outcomes[static_cast<std::size_t>(ports.fabric.rank().value)];
    outcome.failed = error_of([&] {
      outcome.report = load(ports, *group, rank.state,
                            {.directory = "ckpt", .checksums = kVerified, .staging_bytes = 64});
    });
    outcome.wrong = testing_job::wrong_elements(rank.state);
    testing_job::each_element(rank.state,
                              [&](const TensorLeaf&, const std::byte* element, std::uint64_t) {
                                outcome.poisoned += *element == std::byte{0xBD} ? 1 : 0;
                              });
  });
  return outcomes;
}

const std::vector<TensorSpec> kFew = {{"rows", DType::kFloat32, {6, 4}, Placement({{"tp", 0}})},
                                      {"columns", DType::kInt16, {3, 8}, Placement({{"tp", 1}})}};

TEST(LoadChecksums, every_7th_changed_byte_is_refused_or_harmless) {
  constexpr std::size_t kEach = 7;
  const Saved saved(kFew);
  const std::size_t elements = 24 + 24;
  for (const auto memory : {Memory::kHost, Memory::kFar}) {
    for (const char* name : {"__0_0.distcp", "common.pt"}) {
      const Bytes right = content_of(saved.path(name));
      std::size_t refused = 0;
      Bytes content = right;
      for (std::size_t at = 0; at < right.size(); at += kEach) {
        content[at] = right[at] ^ static_cast<std::byte>(1U << (at % 8));
        put(saved.path(name), content);
        content[at] = right[at];
        const RankLoad outcome = load_by(saved, kFew, 1, memory)[0];
        if (outcome.failed) {
          ++refused;
          EXPECT_EQ(outcome.poisoned, elements) << at;
        } else {
          EXPECT_EQ(outcome.wrong, 0U) << name << ' ' << at;
        }
      }
      put(saved.path(name), right);
      EXPECT_GT(refused, right.size() / kEach / 3) << name;
    }
  }
}

TEST(LoadChecksums, a_changed_element_is_one_error_with_rank_key_file_and_offset) {
  for (const std::int32_t savers : {1, 2, 4}) {
    for (const std::int32_t loaders : {1, 2, 3}) {
      const Saved saved(kFew, savers);
      const std::string file = "__" + std::to_string(savers - 1) + "_0.distcp";
      const Bytes right = content_of(saved.path(file));
      PosixStore store(saved.directory.path());
      Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
      const StoredTensor& tensor = *checkpoint.catalog().tensor("columns");
      for (const StoredChunk& chunk : tensor.chunks) {
        if (checkpoint.catalog().files[chunk.file] != file) continue;
        const TensorItem item = checkpoint.tensor_item(tensor, chunk);
        const std::uint64_t record = chunk.range.offset + item.data_offset;
        Bytes content = right;
        content[record + item.data_bytes - 1] ^= std::byte{0x40};
        put(saved.path(file), content);
        const auto outcomes = load_by(saved, kFew, loaders);
        for (const RankLoad& outcome : outcomes) {
          ASSERT_TRUE(outcome.failed) << savers << " to " << loaders;
          EXPECT_EQ(outcome.failed->code(), Code::kChecksum) << outcome.failed->what();
          EXPECT_STREQ(outcome.failed->what(), outcomes[0].failed->what());
          EXPECT_TRUE(outcome.failed->place().rank);
          EXPECT_EQ(outcome.failed->place().key, "columns");
          EXPECT_NE(outcome.failed->place().file.find(file), std::string::npos);
          EXPECT_EQ(outcome.failed->place().offset, record);
          EXPECT_GT(outcome.poisoned, 0U);
        }
        put(saved.path(file), right);
      }
      for (const RankLoad& outcome : load_by(saved, kFew, loaders)) {
        ASSERT_FALSE(outcome.failed) << outcome.failed->what();
        EXPECT_EQ(outcome.wrong, 0U);
        EXPECT_GT(outcome.report.records_verified, 0U);
      }
    }
  }
}

TEST(LoadChecksums, a_changed_identity_of_an_item_is_an_error_too) {
  const Saved saved(kFew, 1);
  const Bytes right = content_of(saved.path("__0_0.distcp"));
  PosixStore store(saved.directory.path());
  Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    const StoredChunk& chunk = tensor.chunks.front();
    const auto slice = checkpoint.slice(tensor.key, chunk.file, chunk.range);
    Archive archive(*slice);
    const auto* record = archive.find(".data/serialization_id");
    ASSERT_NE(record, nullptr);
    Bytes content = right;
    content[chunk.range.offset + archive.content_range(*record).offset] ^= std::byte{1};
    put(saved.path("__0_0.distcp"), content);
    for (const RankLoad& outcome : load_by(saved, kFew, 1)) {
      ASSERT_TRUE(outcome.failed) << tensor.key;
      EXPECT_EQ(outcome.failed->code(), Code::kChecksum) << outcome.failed->what();
      EXPECT_EQ(outcome.failed->place().key, tensor.key);
    }
  }
}

// --- files of a writer without checksums --------------------------------------------------------

/// Sets the checksums of all records to 0 in the central directories of the archives.
void clear_checksums(Bytes& content) {
  for (std::size_t at = 0; at + zip::kCentralBytes <= content.size(); ++at) {
    const auto signature = load_le<std::uint32_t>(ByteSpan(content).subspan(at));
    if (signature == zip::kCentralSignature) std::fill_n(content.begin() + at + 16, 4, std::byte{});
  }
}

TEST(LoadChecksums, that_are_all_switched_off_are_mentioned_and_not_refused) {
  const Saved saved(kFew, 2);
  for (const char* name : {"__0_0.distcp", "__1_0.distcp", "common.pt"}) {
    Bytes content = content_of(saved.path(name));
    clear_checksums(content);
    put(saved.path(name), content);
  }
  for (const auto memory : {Memory::kHost, Memory::kFar}) {
    for (const RankLoad& outcome : load_by(saved, kFew, 2, memory)) {
      ASSERT_FALSE(outcome.failed) << outcome.failed->what();
      EXPECT_EQ(outcome.wrong, 0U);
      EXPECT_EQ(outcome.report.records_verified, 0U);
      ASSERT_EQ(outcome.report.log.size(), 1U);
      EXPECT_NE(outcome.report.log[0].find("switched"), std::string::npos);
    }
  }
}

Findings findings_of(const Saved& saved) {
  PosixStore store(saved.directory.path());
  NoProgress progress;
  return verify(store, "ckpt", PayloadCheck::kRead, progress).findings;
}

/// If our writer omits checksums, its files have the checksum 0 for elements, but correct checksums
/// for the bytes around the elements.
TEST(LoadChecksums, left_out_by_a_save_are_not_missed_and_the_others_are_checked) {
  const std::vector<TensorSpec> one = {kFew[0]};
  for (const auto& [specs, ranks] : {std::pair(kFew, 2), std::pair(kFew, 1), std::pair(one, 1)}) {
    const Saved saved(specs, ranks, Checksums::kNone);
    const Findings findings = findings_of(saved);
    ASSERT_EQ(findings.size(), 1U) << findings[0] << '\n' << findings.back();
    EXPECT_EQ(findings[0].severity, Severity::kNote);
    EXPECT_NE(findings[0].message.find("records of elements have 0"), std::string::npos)
        << findings[0];
    for (const auto memory : {Memory::kHost, Memory::kFar}) {
      for (const RankLoad& outcome : load_by(saved, specs, ranks, memory)) {
        ASSERT_FALSE(outcome.failed) << outcome.failed->what();
        EXPECT_EQ(outcome.wrong, 0U);
        EXPECT_EQ(outcome.report.records_verified, 0U);
        ASSERT_EQ(outcome.report.log.size(), 1U);
        EXPECT_NE(outcome.report.log[0].find("switched"), std::string::npos);
      }
    }
    Bytes content = content_of(saved.path("__0_0.distcp"));
    const auto digits = std::search_n(content.begin(), content.end(), 40, 0, [](std::byte b, int) {
      return std::isdigit(static_cast<int>(b)) != 0;
    });
    ASSERT_NE(digits, content.end());
    *digits ^= std::byte{1};  // changes a digit of a serialization id
    put(saved.path("__0_0.distcp"), content);
    EXPECT_GT(count_of(findings_of(saved), Severity::kError), 0U);
    for (const auto memory : {Memory::kHost, Memory::kFar}) {
      for (const RankLoad& outcome : load_by(saved, specs, ranks, memory)) {
        ASSERT_TRUE(outcome.failed);
        EXPECT_EQ(outcome.failed->code(), Code::kChecksum) << outcome.failed->what();
      }
    }
  }
}

/// One rank's writer may leave out checksums while the other rank's writer does not.
TEST(LoadChecksums, that_are_0_in_one_rank_s_file_alone_were_switched_off_there) {
  const Saved saved(kFew, 2);
  Bytes content = content_of(saved.path("__1_0.distcp"));
  clear_checksums(content);
  put(saved.path("__1_0.distcp"), content);
  for (const RankLoad& outcome : load_by(saved, kFew, 2)) {
    ASSERT_FALSE(outcome.failed) << outcome.failed->what();
    EXPECT_EQ(outcome.wrong, 0U);
    ASSERT_EQ(outcome.report.log.size(), 1U);
    EXPECT_NE(outcome.report.log[0].find("switched"), std::string::npos);
  }
  Bytes other = content_of(saved.path("__0_0.distcp"));
  const auto at = std::search_n(other.begin(), other.end(), 40, 0, [](std::byte b, int) {
    return std::isdigit(static_cast<int>(b)) != 0;
  });
  ASSERT_NE(at, other.end());
  *at ^= std::byte{1};
  put(saved.path("__0_0.distcp"), other);
  const auto outcomes = load_by(saved, kFew, 2);
  for (const RankLoad& outcome : outcomes) {
    ASSERT_TRUE(outcome.failed) << "the other file has checksums";
    EXPECT_EQ(outcome.failed->code(), Code::kChecksum) << outcome.failed->what();
    EXPECT_STREQ(outcome.failed->what(), outcomes[0].failed->what());
    EXPECT_GT(outcome.poisoned, 0U);
  }
}

}  // namespace
}  // namespace reprise
