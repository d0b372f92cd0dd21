// Tests that metadata is parsed once, and again as soon as a byte of it is another.

#include "core/checkpoint/parsed_metadata.hpp"

#include <gtest/gtest.h>

#include "core/save/commit_protocol.hpp"
#include "reprise/error.hpp"
#include "sim/faults/at_rest.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Rig;

std::string directory_of(std::int64_t step) {
  return CommitTarget::iteration(kCheckpointRoot, Step{step}).directory;
}

class ParsedMetadataTest : public testing::Test {
 protected:
  ParsedMetadataTest() { rig_.run(0); }
  std::shared_ptr<const Metadata> read(std::int64_t step) {
    return parsed_.open(rig_.store(), directory_of(step)).shared_metadata();
  }

  Rig rig_{
      test::scenario_of({{"dp2", {TrainAction{1}, SaveAction{}, TrainAction{1}, SaveAction{}}}})};
  ParsedMetadata parsed_;
};

TEST_F(ParsedMetadataTest, each_checkpoint_is_parsed_once) {
  const auto first = read(1);
  EXPECT_FALSE(first->catalog.tensors.empty());
  EXPECT_NE(read(2), first);
  EXPECT_EQ(read(1), first);
}

TEST_F(ParsedMetadataTest, a_changed_byte_is_read_as_it_is) {
  const auto whole = read(1);
  const std::string file = directory_of(1) + "/.metadata";
  sim::flip_bit(rig_.store(), file, 0);
  EXPECT_THROW(read(1), Error);
  sim::flip_bit(rig_.store(), file, 0);
  EXPECT_EQ(read(1), whole);
}

TEST_F(ParsedMetadataTest, no_more_bytes_are_kept_than_the_bound) {
  const auto size_of = [&](std::int64_t step) {
    return rig_.store().open(directory_of(step) + "/.metadata")->size();
  };
  const auto read_again = [&](std::uint64_t bytes_max) {
    ParsedMetadata parsed(bytes_max);
    const auto first = parsed.open(rig_.store(), directory_of(1)).shared_metadata();
    parsed.open(rig_.store(), directory_of(2));
    return parsed.open(rig_.store(), directory_of(1)).shared_metadata() != first;
  };
  EXPECT_FALSE(read_again(size_of(1) + size_of(2)));
  EXPECT_TRUE(read_again(size_of(1) + size_of(2) - 1));

  ParsedMetadata none(size_of(1) - 1);
  const auto first = none.open(rig_.store(), directory_of(1)).shared_metadata();
  EXPECT_NE(none.open(rig_.store(), directory_of(1)).shared_metadata(), first);
}

}  // namespace
}  // namespace reprise::driver
