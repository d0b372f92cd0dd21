#include "core/plan/shared_reads.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/random.hpp"

namespace reprise {
namespace {

StoredRecord record(FileIndex file, std::uint64_t offset, std::uint64_t size) {
  return {file, {offset, size}};
}

std::vector<GroupRank> ranks(std::initializer_list<std::int32_t> numbers) {
  std::vector<GroupRank> all;
  for (const auto number : numbers) all.push_back({number});
  return all;
}

TEST(SharedReads, what_one_rank_alone_needs_is_in_no_round) {
  const std::vector<AlikeReaders> classes = {{ranks({0}), {record(0, 0, 5), record(0, 5, 7)}},
                                             {ranks({1}), {record(0, 5, 7), record(1, 0, 9)}}};
  const SharedReads plan = shared_reads(classes, 100);
  ASSERT_EQ(plan.groups.size(), 1U);
  EXPECT_EQ(plan.groups[0], ranks({0, 1}));
  ASSERT_EQ(plan.rounds.size(), 1U);
  EXPECT_EQ(plan.rounds[0].records, std::vector{record(0, 5, 7)});
  EXPECT_EQ(plan.rounds[0].bytes, 7U);
}

TEST(SharedReads, a_round_holds_what_there_is_room_for_or_one_record) {
  const std::vector<AlikeReaders> classes = {{ranks({0, 2}),
                                              {record(0, 0, 4), record(0, 4, 6), record(0, 10, 30),
                                               record(0, 40, 1), record(0, 41, UINT64_MAX)}}};
  const SharedReads plan = shared_reads(classes, 10);
  std::vector<std::uint64_t> bytes;
  for (const auto& round : plan.rounds) bytes.push_back(round.bytes);
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{10, 30, 1, UINT64_MAX}));
}

TEST(SharedReads, a_record_without_bytes_may_stand_where_another_begins) {
  const std::vector<StoredRecord> both = {record(0, 8, 0), record(0, 8, 5)};
  const std::vector<AlikeReaders> one = {{ranks({0}), both}};
  EXPECT_TRUE(shared_reads(one, 100).groups.empty());
  const std::vector<AlikeReaders> two = {{ranks({0}), both}, {ranks({1}), {record(0, 8, 5)}}};
  const SharedReads plan = shared_reads(two, 100);
  ASSERT_EQ(plan.groups.size(), 1U);
  EXPECT_EQ(plan.groups[0], ranks({0, 1}));
  ASSERT_EQ(plan.rounds.size(), 1U);
  EXPECT_EQ(plan.rounds[0].records, std::vector{record(0, 8, 5)});
}

TEST(SharedReads, shares_of_a_round_are_adjacent_and_equal_but_for_the_end) {
  constexpr std::uint64_t kLarge = std::uint64_t{64} << 10U;
  for (const std::uint64_t each : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100},
                                   kLarge - 1, kLarge, kLarge + 1, kLarge + 15, kLarge + 16}) {
    for (std::size_t members = 2; members <= 9; ++members) {
      for (std::uint64_t more = 0; more < members; ++more) {
        const std::uint64_t bytes = each * members + more;
        const std::uint64_t first = share_of_round(bytes, members, 0).size;
        const std::uint64_t unit = each < kLarge ? 1 : 16;
        EXPECT_EQ(first % unit, 0U) << "devices copy slowly to other places";
        EXPECT_LT(first * members, bytes + unit * members);
        std::uint64_t end = 0;
        for (std::size_t n = 0; n < members; ++n) {
          const ByteRange share = share_of_round(bytes, members, n);
          EXPECT_EQ(share.offset, std::min(bytes, n * first));
          EXPECT_EQ(share.offset, end);
          EXPECT_EQ(share.size, std::min(first, bytes - end));
          end += share.size;
        }
        EXPECT_EQ(end, bytes);
      }
    }
  }
}

/// Generates up to 5 classes of ranks with random needs. If several ranks need a record, exactly
/// these ranks must exchange it in one round. Each rank's rounds must be in the order of the plan.
TEST(SharedReads, each_shared_record_is_in_one_round_of_those_who_need_it) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Stream random = Stream(seed).split("needs");
    std::vector<AlikeReaders> classes(1 + random.below(5));
    std::map<std::uint64_t, std::vector<GroupRank>> needed;  // from offset to ranks
    std::int32_t next = 0;
    for (auto& readers : classes) {
      for (auto count = 1 + random.below(3); count > 0; --count) readers.ranks.push_back({next++});
      for (std::uint64_t r = 0; r < 12; ++r) {
        if (random.below(2) == 0) continue;
        readers.records.push_back(record(static_cast<FileIndex>(r / 6), 10 * r, 1 + r));
        auto& all = needed[10 * r];
        all.insert(all.end(), readers.ranks.begin(), readers.ranks.end());
      }
    }
    const SharedReads plan = shared_reads(classes, 1 + random.below(20));
    std::set<std::uint64_t> seen;
    for (const auto& round : plan.rounds) {
      std::uint64_t bytes = 0;
      for (const auto& one : round.records) {
        EXPECT_TRUE(seen.insert(one.range.offset).second);
        EXPECT_EQ(plan.groups.at(round.group), needed.at(one.range.offset));
        bytes += one.range.size;
      }
      EXPECT_EQ(bytes, round.bytes);
    }
    for (const auto& [offset, all] : needed) EXPECT_EQ(seen.contains(offset), all.size() > 1);
  }
}

}  // namespace
}  // namespace reprise
