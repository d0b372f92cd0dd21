// reshard: every fixture under several cuts holds the same content afterwards, judged by diff; the
// bytes that are not interpreted are the same bytes.

#include "core/engine/reshard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/engine/diff.hpp"
#include "core/engine/verify.hpp"
#include "core/plan/cover.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/core/engine/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::IsEmpty;

CutRule over_ranks(std::int64_t ranks) {
  return [ranks](const std::string&, const Dims& shape) -> std::optional<Cut> {
    return shape.empty() ? std::nullopt : std::optional(Cut{0, ranks});
  };
}

CutRule last_dimension(std::int64_t parts) {
  return [parts](const std::string&, const Dims& shape) -> std::optional<Cut> {
    return shape.empty() ? std::nullopt : std::optional(Cut{shape.size() - 1, parts});
  };
}

class Reshard : public ::testing::Test {
 protected:
  ReshardReport run(const std::string& fixture, const ReshardOptions& options) {
    Checkpoint source = Checkpoint::open(test::data_store(), fixture);
    return reshard(source, {"out"}, options, {store_, device_, tasks_, trace_, progress_});
  }

  DiffReport against(const std::string& fixture) {
    Checkpoint a = Checkpoint::open(test::data_store(), fixture);
    Checkpoint b = Checkpoint::open(store_, "out");
    return diff(a, b, device_, {}, progress_);
  }

  contracts::TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
  HostDevice device_{"test", 0};
  ThreadTasks tasks_{1};
  test::NoTrace trace_;
  test::NoProgress progress_;
};

TEST_F(Reshard, KeepsTheContentOfEveryFixtureUnderEveryCut) {
  const ImageOptions small{.staging_bytes_max = 16384, .batch_bytes = 4096};
  struct Row {
    const char* what;
    ReshardOptions options;
  };
  const std::vector<Row> rows = {
      {"rows over 3", {.rule = over_ranks(3), .writers = 3, .image = small}},
      {"rows over 64 in 2 files", {.rule = over_ranks(64), .writers = 2, .image = small}},
      {"last dimension in 2", {.rule = last_dimension(2), .writers = 2, .image = small}},
      {"as it was, one file", {.rule = {}, .writers = 1, .image = small}},
  };
  for (const auto* fixture :
       {"torch_2.15.0/plain", "torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/sd_view_strided",
        "torch_2.15.0/fsdp2_uneven", "mcore_0.16.1_gpt_tp2_pp2", "vectors/ck_p2"}) {
    for (const auto& row : rows) {
      const auto report = run(fixture, row.options);
      const auto verdict = against(fixture);
      EXPECT_EQ(verdict.different(), 0U) << fixture << ", " << row.what;
      EXPECT_EQ(verdict.elements, report.elements) << fixture << ", " << row.what;
      const auto whole = verify(store_, "out", PayloadCheck::kRead, progress_);
      EXPECT_TRUE(whole.whole()) << fixture << ", " << row.what << ": " << whole.findings[0];
      EXPECT_EQ(count_of(whole.findings, Severity::kWarning), 0U) << fixture;
    }
  }
}

TEST_F(Reshard, CopiesObjectsByteForByte) {
  run("mcore_0.16.1_gpt_tp2_pp2", {.rule = over_ranks(2), .writers = 2});
  Checkpoint before = Checkpoint::open(test::data_store(), "mcore_0.16.1_gpt_tp2_pp2");
  Checkpoint after = Checkpoint::open(store_, "out");
  ASSERT_FALSE(before.catalog().objects.empty());
  for (const auto& object : before.catalog().objects) {
    EXPECT_EQ(before.object_bytes(object), after.object_bytes(*after.catalog().object(object.key)))
        << object.key;
  }
}

TEST_F(Reshard, KeepsThePathsOfTheNestedStateDict) {
  run("torch_2.15.0/plain", {.rule = over_ranks(2), .writers = 2});
  const auto paths_of = [](const Checkpoint& checkpoint) {
    std::map<std::string, std::vector<PathStep>> paths;
    for (const auto& entry : checkpoint.metadata().planner_data) paths[entry.key] = entry.path;
    return paths;
  };
  const auto before = paths_of(Checkpoint::open(test::data_store(), "torch_2.15.0/plain"));
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(before, paths_of(Checkpoint::open(store_, "out")));
}

TEST_F(Reshard, ReplacesWhatIsThereAsAWhole) {
  run("torch_2.15.0/plain", {.rule = over_ranks(5), .writers = 5});
  run("torch_2.15.0/same_content_a", {.rule = over_ranks(2), .writers = 2});
  const auto report = verify(store_, "out", PayloadCheck::kRead, progress_);
  EXPECT_TRUE(report.whole());
  EXPECT_THAT(report.findings, IsEmpty()) << report.findings[0];
  EXPECT_EQ(against("torch_2.15.0/same_content_a").different(), 0U);
}

TEST_F(Reshard, RefusesToWriteDamageAnew) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  const StoredTensor& tensor = *source.catalog().tensor("embedding");
  const StoredChunk& chunk = tensor.chunks.at(0);
  const auto at = chunk.range.offset + source.tensor_item(tensor, chunk).data_offset;
  const auto file = copy.path("ckpt") / source.catalog().files[chunk.file];
  {
    PosixStore raw(file.parent_path().string());
    Bytes bytes = read_all(raw, file.filename().string(), 1U << 30U);
    bytes[at] ^= std::byte{1};
    const auto out = raw.create(file.filename().string());
    out->write_at(0, bytes);
    out->close();
  }
  const auto error = contracts::error_of([&] {
    reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress_});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum);
  EXPECT_FALSE(store_.stat("out"));
}

TEST(PlanReshard, TilesEachTensorAndSpreadsWholeOnes) {
  Catalog catalog{.files = {"f"}};
  for (const char* key : {"a", "b", "c"}) {
    StoredTensor tensor{.key = key, .shape = {7, 3}};
    tensor.chunks.push_back({Box::whole(tensor.shape), 0, {}});
    catalog.tensors.push_back(tensor);
  }
  for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
    std::vector<std::vector<Box>> boxes(catalog.tensors.size());
    for (const auto& share : plan_reshard(catalog, over_ranks(ranks), 2)) {
      for (const auto& part : share.parts) boxes[part.tensor].push_back(part.box);
    }
    for (const auto& of_tensor : boxes) EXPECT_FALSE(prove_cover({7, 3}, of_tensor)) << ranks;
  }
  const auto whole = plan_reshard(catalog, {}, 3);
  for (const auto& share : whole) EXPECT_EQ(share.parts.size(), 1U);
}

TEST(PlanReshard, RefusesWhatHasNoMeaning) {
  Catalog catalog{.files = {"f"}};
  catalog.tensors.push_back({.key = "w", .shape = {4}, .chunks = {{{{0}, {4}}, 0, {}}}});
  EXPECT_EQ(contracts::code_of([&] { plan_reshard(catalog, {}, 0); }), Code::kUsage);
  const CutRule second = [](const std::string&, const Dims&) { return Cut{1, 2}; };
  EXPECT_EQ(contracts::code_of([&] { plan_reshard(catalog, second, 1); }), Code::kUsage);
}

}  // namespace
}  // namespace reprise
