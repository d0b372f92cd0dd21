// Tests what is taken of an object's bytes into memory.
#include <gtest/gtest.h>

#include "core/checkpoint/checkpoint.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

TEST(ObjectBytes, are_those_of_its_item_and_too_many_are_refused_unread) {
  test::WrittenCheckpoint written;
  Checkpoint checkpoint = Checkpoint::open(written.object("o", 1).store(), "ckpt");
  StoredObject object = *checkpoint.catalog().object("o");
  EXPECT_EQ(read_bytes_item(checkpoint.object_bytes(object)).value, Value(1));
  object.range.size = kBytesItemMax + 1;
  const auto error = contracts::error_of([&] { checkpoint.object_bytes(object); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
  EXPECT_EQ(error->place().key, "o");
}

}  // namespace
}  // namespace reprise
