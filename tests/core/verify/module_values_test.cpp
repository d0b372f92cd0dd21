// Tests what verify says of the small values that the optimizers of a job's modules store.

#include "core/verify/module_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ModuleValues, of_a_checkpoint_of_one_model_are_not_looked_at) {
  WrittenCheckpoint written;
  written.bytes("w", 3, 1).object("optimizer.param_groups/shard_0_1", Value(3));
  EXPECT_TRUE(read_values(written).empty());
}

}  // namespace
}  // namespace reprise
