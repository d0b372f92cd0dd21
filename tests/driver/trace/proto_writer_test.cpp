// Tests the bytes of protobuf messages against examples of the encoding's documentation, and
// against a reader of its own.

#include "driver/trace/proto_writer.hpp"

#include <gtest/gtest.h>

#include "tests/fixtures/perfetto_reader.hpp"

namespace reprise::driver {
namespace {

// The examples are those of https://protobuf.dev/programming-guides/encoding.
TEST(ProtoWriter, writes_the_bytes_of_the_documented_examples) {
  EXPECT_EQ(ProtoWriter().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoWriter().message(3, ProtoWriter().number(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
}

TEST(ProtoWriter, writes_what_a_reader_reads) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                    std::uint64_t{1} << 32U, ~std::uint64_t{0}}) {
    const auto fields =
        test::read_message(ProtoWriter().number(1, value).fixed64(47, value).text(300, "").bytes());
    ASSERT_EQ(fields.size(), 3U);
    EXPECT_EQ(fields[0].number, 1U);
    EXPECT_EQ(fields[0].value, value);
    EXPECT_EQ(fields[1].number, 47U);
    EXPECT_EQ(fields[1].value, value);
    EXPECT_EQ(fields[2].number, 300U);
    EXPECT_EQ(fields[2].bytes, "");
  }
}

}  // namespace
}  // namespace reprise::driver
