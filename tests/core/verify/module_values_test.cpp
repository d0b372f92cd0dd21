// Tests what verify says of the small values that the optimizers of a job's modules store.

#include "core/verify/module_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <variant>
#include <vector>

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
  EXPECT_THAT(findings[0].message, HasSubstr("module a: its param_groups: it is not a list"));
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

TEST(ModuleValues, of_a_mebibyte_are_checked_and_larger_ones_only_noted) {
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

/// A rank stores its "step" as an object, or as a tensor of one element.
using OwnStep = std::variant<Value, std::int64_t, float>;

/// Writes a checkpoint in which each rank has metadata of its own, and returns what is said of it.
Findings progress_of(const std::vector<OwnStep>& ranks) {
  WrittenCheckpoint written;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string name = "__" + std::to_string(rank);
    Metadata metadata;
    metadata.catalog.files = {name + "_0.distcp"};
    Bytes payload;
    const auto add_tensor = [&](DType dtype, ByteSpan element) {
      const TensorItemLayout layout(dtype, {});
      append(payload, layout.head());
      append(payload, element);
      append(payload, layout.tail(crc32_of(element)));
      metadata.catalog.tensors = {{.key = "step",
                                   .dtype = dtype,
                                   .shape = {},
                                   .chunks = {{Box::whole({}), 0, {0, payload.size()}}}}};
    };
    if (const auto* object = std::get_if<Value>(&ranks[rank])) {
      payload = write_bytes_item(*object);
      metadata.catalog.objects = {{"step", 0, {0, payload.size()}}};
    } else if (const auto* integer = std::get_if<std::int64_t>(&ranks[rank])) {
      add_tensor(DType::kInt64, std::as_bytes(std::span(integer, 1)));
    } else {
      add_tensor(DType::kFloat32, std::as_bytes(std::span(&std::get<float>(ranks[rank]), 1)));
    }
    written.write("ckpt/" + name + "_0.distcp", payload);
    written.write("ckpt/" + name + ".metadata", write_metadata(metadata));
  }
  PosixStore store(written.path());
  Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
  return check_progress_of_ranks(checkpoint);
}

TEST(ProgressOfRanks, that_differs_is_named_with_both_steps_however_it_is_stored) {
  constexpr float kFloat = 100;
  const auto object = [](std::int64_t step) { return OwnStep(Value(step)); };
  for (const OwnStep& first : {object(100), OwnStep(std::int64_t{100}), OwnStep(kFloat)}) {
    EXPECT_TRUE(progress_of({first, first, first}).empty());
    const OwnStep other = first.index() == 0   ? object(99)
                          : first.index() == 1 ? OwnStep(std::int64_t{99})
                                               : OwnStep(kFloat - 1);
    const Findings findings = progress_of({first, other});
    ASSERT_EQ(findings.size(), 1U) << first.index();
    EXPECT_EQ(findings[0].severity, Severity::kWarning);
    EXPECT_EQ(findings[0].key, "step");
    EXPECT_THAT(findings[0].message, HasSubstr("step@rank0 is 100"));
    EXPECT_THAT(findings[0].message, HasSubstr("step@rank1 is 99"));
  }
}

}  // namespace
}  // namespace reprise
