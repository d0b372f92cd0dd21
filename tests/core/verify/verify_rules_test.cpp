// Tests the findings that verify derives from a catalog and the common state alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_objects.hpp"

namespace reprise {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StoredTensor tensor(std::string key, Dims shape, const std::vector<StoredChunk>& chunks) {
  return {.key = std::move(key), .shape = shape, .chunks = chunks};
}

Catalog objects(std::vector<std::string> keys) {
  Catalog catalog{.files = {"f"}};
  std::sort(keys.begin(), keys.end());
  for (auto& key : keys) catalog.objects.push_back({std::move(key), 0, {0, 0}});
  return catalog;
}

/// Two ranks' copies of a tensor in two parts, whose records have these checksums.
Catalog replicas_with(std::uint32_t first, std::uint32_t second, std::int64_t extent = 2) {
  Catalog catalog;
  catalog.files = {"a.pt", "b.pt"};
  for (const std::int32_t rank : {0, 2}) {
    const auto view = [&](std::uint32_t crc) {
      StoredView made{.strides = {1}};
      made.record = std::make_shared<const SharedRecord>("data/0", ByteRange{64, 8}, crc);
      return std::make_shared<const StoredView>(std::move(made));
    };
    StoredTensor tensor{.key = "model.w" + own_suffix(rank), .shape = {extent}};
    tensor.known_by = {.ranks = {rank}, .own = true};
    for (std::int64_t at = 0; at < extent; at += 2) {
      tensor.chunks.push_back({{{at}, {2}},
                               rank == 0 ? 0U : 1U,
                               {64, 8},
                               ItemForm::kView,
                               view(rank == 0 ? first : second)});
    }
    catalog.tensors.push_back(std::move(tensor));
  }
  return catalog;
}

TEST(VerifyRules, replicas_with_other_checksums_are_a_warning) {
  const auto none = [](std::string_view) { return false; };
  const auto all = [](std::string_view) { return true; };
  const Findings parts = check_replicas(replicas_with(5, 6, 4), none);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].severity, Severity::kWarning);
  EXPECT_EQ(parts[0].key, "model.w");
  EXPECT_THAT(parts[0].message, HasSubstr("the copy of rank 0 and that of rank 2"));
  EXPECT_THAT(check_replicas(replicas_with(5, 5, 4), none), IsEmpty());
  EXPECT_THAT(check_replicas(replicas_with(5, 0, 4), none), IsEmpty()) << "0 is no checksum";
  EXPECT_THAT(check_replicas(replicas_with(5, 6), none), IsEmpty()) << "each rank's own";
  EXPECT_EQ(check_replicas(replicas_with(5, 6), all).size(), 1U);
  Catalog shared = replicas_with(5, 6, 4);
  for (StoredTensor& tensor : shared.tensors) {
    for (StoredChunk& chunk : tensor.chunks) chunk.range = {64, 4};
  }
  EXPECT_THAT(check_replicas(shared, none), IsEmpty()) << "the record has other tensors, too";
}

TEST(CheckCover, ChunksThatTileSayNothing) {
  Catalog catalog{.files = {"f"}};
  catalog.tensors = {tensor("w", {4, 2}, {{{{2, 0}, {2, 2}}, 0, {}}, {{{0, 0}, {2, 2}}, 0, {}}})};
  EXPECT_THAT(check_cover(catalog), IsEmpty());
}

TEST(CheckCover, GapOverlapAndChunkOutsideAreErrorsOfTheirKind) {
  struct Row {
    const char* what;
    std::vector<StoredChunk> chunks;
    Code code;
  };
  const std::vector<Row> rows = {
      {"gap", {{{{0}, {2}}, 0, {}}}, Code::kCoverageGap},
      {"overlap", {{{{0}, {3}}, 0, {}}, {{{2}, {2}}, 0, {}}}, Code::kChunkOverlap},
      {"outside", {{{{0}, {4}}, 0, {}}, {{{4}, {1}}, 0, {}}}, Code::kExtentMismatch},
  };
  for (const auto& row : rows) {
    Catalog catalog{.files = {"f"}};
    catalog.tensors = {tensor("w", {4}, row.chunks)};
    const auto findings = check_cover(catalog);
    ASSERT_EQ(findings.size(), 1U) << row.what;
    EXPECT_EQ(findings[0].code, row.code) << row.what;
    EXPECT_EQ(findings[0].key, "w");
  }
}

TEST(CheckCover, AnOverlapHidesNoGap) {
  Catalog catalog{.files = {"f"}};
  catalog.tensors = {
      tensor("w", {6}, {{{{0}, {2}}, 0, {}}, {{{1}, {2}}, 0, {}}, {{{5}, {1}}, 0, {}}}),
      tensor("x", {4}, {{{{0}, {3}}, 0, {}}, {{{1}, {3}}, 0, {}}})};
  const Findings found = check_cover(catalog);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].code, Code::kChunkOverlap);
  EXPECT_EQ(found[1].code, Code::kCoverageGap);
  EXPECT_EQ(found[1].key, "w");
  EXPECT_THAT(found[1].message, HasSubstr("elements [3:5] of shape [6]"));
  EXPECT_EQ(found[2].code, Code::kChunkOverlap) << "x has no gap";
}

TEST(CheckCover, AnItemWithoutStorageIsAGap) {
  Catalog catalog;
  catalog.tensors = {tensor("w", {2}, {{{{0}, {2}}, kNoFile, {}}})};
  const auto findings = check_cover(catalog);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, Code::kCoverageGap);
  EXPECT_EQ(findings[0].message, "the metadata lists it but names no bytes for it");
  catalog.tensors = {tensor("w", {2}, {{{{0}, {1}}, kNoFile, {}}, {{{1}, {1}}, kNoFile, {}}})};
  EXPECT_EQ(check_cover(catalog).at(0).message,
            "the metadata lists 2 of its chunks but names no bytes for them");
}

TEST(CheckStorage, FilesAreThereAndItemsLieInThemWithoutOverlap) {
  struct Row {
    const char* what;
    std::optional<std::uint64_t> size;
    ByteRange first;
    ByteRange second;
    const char* says;  // part of the finding; empty if there is none
  };
  const std::uint64_t far = ~std::uint64_t{0};
  const std::vector<Row> rows = {
      {"fits exactly", 20, {0, 10}, {10, 10}, ""},
      {"gap between items", 30, {0, 10}, {20, 10}, ""},
      {"empty file", 0, {0, 10}, {10, 10}, "the file ends at 0; and 1 more items"},
      {"one byte short",
       19,
       {0, 10},
       {10, 10},
       "claims 10 bytes from here, but the file ends at 19"},
      {"offset beyond all numbers", 20, {0, 10}, {far, far}, "the file ends at 20"},
      {"no file", std::nullopt, {0, 10}, {10, 10}, "contains 2 items"},
      {"overlap by one byte", 20, {0, 11}, {10, 10}, "overlap those of a"},
      {"same bytes twice", 20, {0, 10}, {0, 10}, "overlap"},
  };
  for (const auto& row : rows) {
    Catalog catalog{.files = {"f"}};
    catalog.objects = {{"a", 0, row.first}, {"b", 0, row.second}};
    const std::vector<StoredFile> files = {{"dir/f", row.size}};
    const auto findings = check_storage(catalog, files);
    if (*row.says == '\0') {
      EXPECT_THAT(findings, IsEmpty()) << row.what;
      continue;
    }
    ASSERT_EQ(findings.size(), 1U) << row.what;
    EXPECT_THAT(findings[0].message, HasSubstr(row.says)) << row.what;
    EXPECT_EQ(findings[0].file, "dir/f");
  }
}

TEST(CheckGrids, MissingShardsAreNamedByCoordinate) {
  const auto findings =
      check_grids(objects({"rng_state/shard_0.0_2.2", "rng_state/shard_1.1_2.2"}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, Code::kCoverageGap);
  EXPECT_THAT(findings[0].message, HasSubstr("2 of 4 shards are missing"));
  EXPECT_THAT(findings[0].message, HasSubstr("[0, 1] [1, 0]"));
}

TEST(CheckGrids, TheFirstShardIsNamedOnce) {
  const auto findings = check_grids(objects({"o/shard_1_3"}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].message, EndsWith("missing [0] [2]"));
}

TEST(CheckGrids, AClaimedGridCostsNothing) {
  const auto findings = check_grids(objects({"o/shard_0.0.0_4000000000.4000000000.4000000000"}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].message, HasSubstr("..."));
}

TEST(CheckGrids, WholeGridsAndOtherKeysSayNothing) {
  EXPECT_THAT(check_grids(objects({"a/shard_0_2", "a/shard_1_2", "args.lr", "b/c/shard_0_2"})),
              IsEmpty());
}

TEST(CheckGrids, TwoGridsOfOneKeyAndACoordinateOutsideAreErrors) {
  EXPECT_EQ(check_grids(objects({"a/shard_0_2", "a/shard_1_3"})).at(0).code, Code::kLayoutMismatch);
  EXPECT_EQ(check_grids(objects({"a/shard_2_2", "a/shard_0_2"})).at(0).code, Code::kExtentMismatch);
}

Value machine(Value state) {
  return Dict{{"rerun_state_machine", Dict{{"mode", "validate_results"}, {"state", state}}}};
}

Value enum_by_call(std::int64_t number) {
  return Object{.type = {"megatron.core.rerun_state_machine", "RerunState"},
                .how = Object::How::kCall,
                .args = {Value(number)}};
}

Value enum_by_name(const char* name) {
  return Object{.type = {"builtins", "getattr"},
                .how = Object::How::kCall,
                .args = {Name{"megatron.core.rerun_state_machine", "RerunState"}, Value(name)}};
}

TEST(CheckRerun, APendingFaultNeedsItsShards) {
  const Catalog without = objects({"rng_state/shard_0_1"});
  const Catalog with = objects({"rerun_state_machine_state/shard_0_1"});
  struct Row {
    const char* what;
    Value common;
    bool pending;
  };
  const std::vector<Row> rows = {
      {"number", machine(3), true},
      {"enum object", machine(enum_by_call(3)), true},
      {"enum by name", machine(enum_by_name("WILL_RERUN_FROM_CHECKPOINT")), true},
      {"steady", machine(enum_by_call(0)), false},
      {"steady by name", machine(enum_by_name("NOT_RUNNING_YET")), false},
      {"no machine", Dict{{"iteration", 3}}, false},
      {"not even a dict", 3, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(check_rerun(row.common, without).size(), row.pending ? 1U : 0U) << row.what;
    EXPECT_THAT(check_rerun(row.common, with), IsEmpty()) << row.what;
  }
}

}  // namespace
}  // namespace reprise
