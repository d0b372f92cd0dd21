// Tests that ranks which share a process parse the metadata of a checkpoint once, and that what
// they share never stands for other bytes.

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "core/load/load_seamed.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

constexpr std::int32_t kRanks = 3;

class SharedMetadata : public testing::Test {
 protected:
  SharedMetadata() {
    one_.tensor("w", DType::kUInt8, kOneShape, Bytes(8)).store();
    other_.tensor("w", DType::kUInt8, kOtherShape, Bytes(8)).store();
  }

  /// Loads on each rank. Returns the catalogs that the ranks saw at the same time.
  std::set<const Catalog*> load_on_all(const Dims& shape, ParsedMetadata* parsed) {
    std::set<const Catalog*> seen;
    std::mutex mutex;
    contracts::run_ranks(kRanks, one_.path(), [&](const Ports& ports) {
      StateDict nothing;
      const auto ask = [&](const Candidate& candidate) {
        EXPECT_EQ(candidate.catalog.tensor("w")->shape, shape);
        const std::scoped_lock lock(mutex);
        seen.insert(&candidate.catalog);
        return Wanted{&nothing, {}};
      };
      LoadOptions options;
      options.directory = "ckpt";
      options.strictness = Strictness::kIgnoreAll;
      auto group = ports.fabric.communicator(Group::world(kRanks));
      load(ports, *group, options, ask, {}, nullptr, parsed);
    });
    return seen;
  }

  static inline const Dims kOneShape = {4, 2};
  static inline const Dims kOtherShape = {2, 4};
  test::WrittenCheckpoint one_;
  test::WrittenCheckpoint other_;
};

TEST_F(SharedMetadata, ranks_of_one_process_parse_it_once) {
  EXPECT_EQ(load_on_all(kOneShape, nullptr).size(), std::size_t{kRanks});
  ParsedMetadata parsed;
  const auto first = load_on_all(kOneShape, &parsed);
  const auto later = load_on_all(kOneShape, &parsed);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_TRUE(first.contains(*later.begin()));
}

TEST_F(SharedMetadata, other_bytes_of_the_same_name_are_read_anew) {
  const Bytes before = read_all(one_.store(), "ckpt/.metadata", 1U << 20U);
  const Bytes after = read_all(other_.store(), "ckpt/.metadata", 1U << 20U);
  ParsedMetadata parsed;
  load_on_all(kOneShape, &parsed);
  one_.write("ckpt/.metadata", after);
  load_on_all(kOtherShape, &parsed);
  one_.write("ckpt/.metadata", before);
  load_on_all(kOneShape, &parsed);
}

}  // namespace
}  // namespace reprise
