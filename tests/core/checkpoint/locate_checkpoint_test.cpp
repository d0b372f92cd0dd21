// Tests what is said of a directory that is no checkpoint itself.
#include "core/checkpoint/locate_checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/memory_store.hpp"

namespace reprise {
namespace {

TEST(LocateCheckpoint, those_below_are_named_the_highest_number_first) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  for (const std::string name : {"a-2", "b-1", "b-10", "b-9", "b-009-x"}) {
    store.make_directory("runs/" + name);
    write_durably(store, "runs/" + name + "/.metadata", as_bytes("x"));
  }
  const auto error = contracts::error_of([&] { Checkpoint::open(store, "runs"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kNotFound);
  EXPECT_THAT(error->message(),
              testing::HasSubstr("checkpoints: b-10, b-009-x, b-9, b-1, a-2; name"));
}

TEST(LocateCheckpoint, metadata_that_is_gone_when_it_is_read_is_not_found) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  store.make_directory("run/iter_0000001");
  const auto error = contracts::error_of([&] { read_metadata_files(store, "run/iter_0000001"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kNotFound);
  EXPECT_THAT(error->place().file, testing::HasSubstr("iter_0000001"));
}

std::optional<Error> refusal_of(Store& store, const std::string& path) {
  return contracts::error_of([&] { locate(store, path); });
}

TEST(LocateCheckpoint, a_root_of_verl_is_named_and_not_called_damaged) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  store.make_directory("root/global_step_10/actor/huggingface");
  write_durably(store, "root/latest_checkpointed_iteration.txt", as_bytes("10"));
  write_durably(store, "root/global_step_10/data.pt", as_bytes("x"));
  write_durably(store, "root/global_step_10/actor/model_world_size_4_rank_0.pt", as_bytes("x"));
  const auto by_rank = refusal_of(store, "root");
  ASSERT_TRUE(by_rank);
  EXPECT_EQ(by_rank->code(), Code::kUnsupported);
  EXPECT_THAT(by_rank->message(), testing::HasSubstr("verl"));
  for (const std::string part : {"actor", "critic"}) {
    store.make_directory("root/global_step_10/" + part + "/dist_ckpt");
    write_durably(store, "root/global_step_10/" + part + "/dist_ckpt/.metadata", as_bytes("x"));
  }
  const auto by_megatron = refusal_of(store, "root");
  ASSERT_TRUE(by_megatron);
  EXPECT_EQ(by_megatron->code(), Code::kNotFound);
  EXPECT_THAT(by_megatron->message(),
              testing::AllOf(testing::HasSubstr("verl"), testing::HasSubstr("critic/dist_ckpt"),
                             testing::HasSubstr("root/global_step_10/actor/dist_ckpt")));
  EXPECT_EQ(locate(store, "root/global_step_10/actor/dist_ckpt").directory,
            "root/global_step_10/actor/dist_ckpt");
  write_durably(store, "root/latest_checkpointed_iteration.txt", as_bytes("20"));
  EXPECT_EQ(refusal_of(store, "root")->code(), Code::kTrackerDangling);
}

TEST(LocateCheckpoint, a_tracker_without_a_name_lists_the_existing_iterations) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  write_durably(store, "latest_checkpointed_iteration.txt", as_bytes("30"));
  EXPECT_THAT(
      refusal_of(store, "")->message(),
      testing::HasSubstr("iter_0000030, which does not exist; there is no other iteration"));
  for (const std::string name : {"iter_0000010", "iter_0000020", "release", "other"}) {
    store.make_directory(name);
    write_durably(store, name + "/.metadata", as_bytes("x"));
  }
  store.make_directory("iter_0000030");
  store.make_directory("iter_0000040");
  EXPECT_THAT(
      refusal_of(store, "")->message(),
      testing::HasSubstr("has no .metadata; available: release, iter_0000020, iter_0000010; name"));
}

TEST(LocateCheckpoint, it_looks_as_far_below_a_job_as_trainers_save_or_says_how_far) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  for (const std::string below :
       {"outputs/checkpoint/step-10", "exp/default/2026-11-27/checkpoints/last/weights",
        "lightning_logs/version_0/checkpoints/last.ckpt", "results/grpo/step_10/policy/weights"}) {
    const std::string job = "job-" + below.substr(0, 3);
    store.make_directory(job + "/" + below);
    write_durably(store, job + "/" + below + "/.metadata", as_bytes("x"));
    const auto error = refusal_of(store, job);
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message(), testing::HasSubstr("it contains these checkpoints: " + below))
        << below;
  }
  store.make_directory("deep/1/2/3/4/5/6/7");
  write_durably(store, "deep/1/2/3/4/5/6/7/.metadata", as_bytes("x"));
  EXPECT_THAT(refusal_of(store, "deep")->message(),
              testing::HasSubstr("none in the 6 directories up to 6 levels below it; deeper "
                                 "directories were not searched"));
  store.make_directory("flat/1/2");
  EXPECT_THAT(refusal_of(store, "flat")->message(), testing::HasSubstr("and none below it"));
}

TEST(LocateCheckpoint, one_without_metadata_is_damaged_whatever_else_is_there) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  write_durably(store, "latest_checkpointed_iteration.txt", as_bytes("4"));
  store.make_directory("iter_0000004");
  const auto code = [&] { return contracts::code_of([&] { locate(store, ""); }); };
  write_durably(store, "iter_0000004/model.safetensors", as_bytes("x"));
  EXPECT_EQ(code(), Code::kUnsupported) << "another program's checkpoint";
  write_durably(store, "iter_0000004/__0_0.distcp", as_bytes("x"));
  EXPECT_EQ(code(), Code::kTrackerDangling) << "ours, and a load may fall back";
}

TEST(LocateCheckpoint, a_foreign_file_is_recognized_by_its_first_bytes) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  const std::string first("\2\0\0\0\0\0\0\0{}", 10);
  write_durably(store, "weights", as_bytes(first));
  const auto error = contracts::error_of([&] { locate(store, "weights"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
  EXPECT_THAT(error->message(), testing::HasSubstr("a safetensors file"));
  write_durably(store, "notes", as_bytes("hello"));
  EXPECT_EQ(contracts::code_of([&] { locate(store, "notes"); }), Code::kNotFound);
}

TEST(Checkpoint, an_object_of_2_gib_is_taken_and_a_larger_one_is_not) {
  test::MemoryStore store;
  store.files["f"] = std::make_shared<test::MemoryStore::File>();
  Metadata metadata;
  metadata.catalog.files = {"f"};
  Checkpoint checkpoint(store, {}, metadata);
  const auto code_of = [&](std::uint64_t bytes) {
    return contracts::code_of([&] { checkpoint.object_bytes({"o", 0, {0, bytes}}); });
  };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31U;
  EXPECT_EQ(code_of(kMost), Code::kTornFile) << "the file is too short for it";
  EXPECT_EQ(code_of(kMost + 1), Code::kUnsupported);
}

}  // namespace
}  // namespace reprise
