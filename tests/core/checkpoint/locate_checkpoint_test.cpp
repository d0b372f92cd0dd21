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
  EXPECT_THAT(error->message(), testing::HasSubstr("are: b-10, b-009-x, b-9, b-1, a-2; name"));
}

TEST(LocateCheckpoint, one_that_lost_its_metadata_is_damaged_whatever_lies_beside_its_payload) {
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

TEST(LocateCheckpoint, a_file_of_another_program_is_named_by_its_first_bytes_whatever_its_name) {
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
