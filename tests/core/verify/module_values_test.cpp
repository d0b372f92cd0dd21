// Tests what verify says of the small values that the optimizers of a job's modules store.

#include "core/verify/module_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using test::WrittenCheckpoint;
using ::testing::HasSubstr;

constexpr const char* kWeights = "mimo.a.optimizer.mimo.a.optimizer.state.exp_avg.w";
constexpr const char* kGroups = "mimo.a.optimizer.mimo.a.param_groups/shard_0_1";
constexpr const char* kType = "mimo.a.optimizer.mimo.a.param_state_sharding_type/shard_0_1";

Findings read_values(WrittenCheckpoint& written, StoredModules* read = nullptr) {
  Checkpoint checkpoint = Checkpoint::open(written.store(), "ckpt");
  StoredModules modules = modules_of(checkpoint.catalog(), nullptr);
  Findings findings = read_module_values(checkpoint, modules);
  if (read != nullptr) *read = std::move(modules);
  return findings;
}

TEST(ModuleValues, that_no_load_could_use_are_errors_of_their_module) {
  WrittenCheckpoint written;
  written.bytes(kWeights, 3, 1).object(kGroups, Value(3));
  const Findings findings = read_values(written);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[0].code, Code::kLoadRejected);
  EXPECT_EQ(findings[0].key, kGroups);
  EXPECT_THAT(findings[0].message, HasSubstr("module a: its param_groups: it is no list"));
}

TEST(ModuleValues, that_are_right_say_nothing_and_give_the_sharding_type) {
  WrittenCheckpoint written;
  written.bytes(kWeights, 3, 1)
      .object(kGroups, List{Value(Dict{{"lr", 0.5}})})
      .object(kType, "fully_reshardable");
  StoredModules modules;
  EXPECT_TRUE(read_values(written, &modules).empty());
  ASSERT_EQ(modules.modules.size(), 1U);
  EXPECT_EQ(modules.modules[0].chain.at(0).sharding_type, "fully_reshardable");
}

/// Returns an item of this size. Its value is a number, which no part of a module is.
Bytes wrong_item(std::size_t bytes) {
  const auto with = [](std::size_t filling) {
    ArchiveWriter writer("archive");
    writer.add("data.pkl", encode_value(Value(3), nullptr));
    writer.add("version", as_bytes("3\n"));
    writer.add("filling", Bytes(filling));
    writer.finish();
    return writer.take();
  };
  return with(bytes - with(1).size() + 1);
}

std::string groups_of(int module) {
  const std::string name = std::string("mimo.m") + std::to_string(module);
  return name + ".optimizer." + name + ".param_groups/shard_0_1";
}

TEST(ModuleValues, of_a_mebibyte_are_looked_at_and_larger_ones_are_counted_in_a_note) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  for (const std::size_t bytes : {kMost, kMost + 1}) {
    const Bytes item = wrong_item(bytes);
    ASSERT_EQ(item.size(), bytes);
    WrittenCheckpoint written;
    const Findings findings = read_values(written.bytes(kWeights, 3, 1).item(kGroups, item));
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].severity, bytes == kMost ? Severity::kError : Severity::kNote);
  }
}

TEST(ModuleValues, are_looked_at_up_to_16_mebibytes_in_all) {
  constexpr int kLookedAt = 16;
  const Bytes item = wrong_item(std::size_t{1} << 20U);
  WrittenCheckpoint written;
  written.bytes(kWeights, 3, 1);
  for (int module = 0; module < kLookedAt; ++module) written.item(groups_of(module), item);
  EXPECT_EQ(read_values(written).size(), static_cast<std::size_t>(kLookedAt));
  written.object(groups_of(kLookedAt), Value(3));
  const Findings findings = read_values(written);
  ASSERT_EQ(findings.size(), static_cast<std::size_t>(kLookedAt) + 1);
  EXPECT_EQ(findings.back().severity, Severity::kNote);
  EXPECT_THAT(findings.back().message, HasSubstr("the values of 1 param groups"));
}

TEST(ModuleValues, of_a_checkpoint_of_one_model_are_not_looked_at) {
  WrittenCheckpoint written;
  written.bytes("w", 3, 1).object("optimizer.param_groups/shard_0_1", Value(3));
  EXPECT_TRUE(read_values(written).empty());
}

}  // namespace
}  // namespace reprise
