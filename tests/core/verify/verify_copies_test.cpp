// Tests which tensors of safetensors are told to hold the same bytes.

#include "core/verify/verify_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/verify/verify.hpp"
#include "tests/fixtures/safetensors_file.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise::test::verify_copies_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Returns a tensor's elements: `last` behind a stretch of one value.
std::string elements(std::size_t bytes, char value, const std::string& last) {
  return std::string(bytes - last.size(), value) + last;
}

struct Row {
  const char* what;
  const char* shape;
  std::string first;
  std::string second;
  bool found;
};

TEST(VerifyCopies, equal_tensors_are_told_unless_by_chance) {
  const std::size_t large = (std::size_t{1} << 21U) + 64;  // three steps of reading
  const Row rows[] = {
      {"equal", "8,8", elements(64, 'a', "bc"), elements(64, 'a', "bc"), true},
      {"another element", "8,8", elements(64, 'a', "bc"), elements(64, 'a', "bd"), false},
      {"all of one value", "8,8", elements(64, 'a', ""), elements(64, 'a', ""), false},
      {"one dimension", "64", elements(64, 'a', "bc"), elements(64, 'a', "bc"), false},
      {"few elements", "3,3", elements(9, 'a', "bc"), elements(9, 'a', "bc"), false},
      {"several steps", "2097216,1", elements(large, 'a', "b"), elements(large, 'a', "b"), true},
      {"another step", "2097216,1", elements(large, 'a', "z"), elements(large, 'b', "z"), false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const std::size_t bytes = row.first.size();
    const std::string header = "{" + safetensors_entry("a.w", "U8", row.shape, 0, bytes) + "," +
                               safetensors_entry("b.w", "U8", row.shape, bytes, 2 * bytes) + "}";
    const contracts::TemporaryDirectory directory;
    std::ofstream(std::filesystem::path(directory.path()) / "model.safetensors", std::ios::binary)
        << safetensors_file(header, row.first + row.second);
    PosixStore store(directory.path());
    NoProgress progress;
    const auto report = verify(store, "model.safetensors", PayloadCheck::kRead, progress);
    EXPECT_TRUE(report.whole());
    std::string told;
    for (const auto& finding : report.findings) {
      if (finding.code == Code::kLoadRejected) told += finding.message;
    }
    if (row.found) {
      EXPECT_THAT(told, HasSubstr("b.w = a.w"));
    } else {
      EXPECT_THAT(told, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace reprise::test::verify_copies_test
