// Tests the C interface: the numbers of errors, what the library exports and needs, and a program
// in C that uses it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "core/c/codes.hpp"
#include "reprise/c.h"
#include "tests/border/shell.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::c {
namespace {

using border::Said;
using border::shell;
using testing::HasSubstr;
using testing::Not;

const std::string kLibrary = REPRISE_LIBRARY_C_FILE;
const std::string kCudaFile = REPRISE_LIBRARY_C_CUDA_FILE;
const std::string kFolder = REPRISE_SOURCE_DIR "/tests/c_abi";
const std::string kWarnings =
    " -Wall -Wextra -Wpedantic -Werror -I " REPRISE_SOURCE_DIR "/include ";

struct Row {
  std::int32_t number;
  const char* name;
};

// These numbers are frozen: programs that were compiled with them are in use. Add at the end.
constexpr Row kFrozen[] = {
    {1, "USAGE"},
    {2, "NOT_FOUND"},
    {3, "IO"},
    {4, "NO_SPACE"},
    {5, "LOCKED"},
    {6, "UNSUPPORTED"},
    {7, "TORN_FILE"},
    {8, "REFUSED_NAME"},
    {9, "PATH_ESCAPE"},
    {10, "LIMIT"},
    {11, "COVERAGE_GAP"},
    {12, "CHUNK_OVERLAP"},
    {13, "NO_WRITER"},
    {14, "MULTI_WRITER"},
    {15, "INTERRUPTED"},
    {16, "NOT_STORED"},
    {17, "NOT_REQUESTED"},
    {18, "SHAPE_DRIFT"},
    {19, "DTYPE_DRIFT"},
    {20, "EXTENT_MISMATCH"},
    {21, "COMMON_STATE_DIVERGES"},
    {22, "LAYOUT_MISMATCH"},
    {23, "STALE_PLAN"},
    {24, "STALE_DISTRIBUTION"},
    {25, "STALE_METADATA"},
    {26, "CACHE_POISONED"},
    {27, "LOAD_REJECTED"},
    {28, "TRACKER_DANGLING"},
    {29, "INCOMPLETE_SELECTED"},
    {30, "CHECKSUM"},
    {31, "PEER_FAILED"},
    {32, "DEADLINE"},
    {33, "COLLECTIVE_MISMATCH"},
    {34, "INTERNAL"},
};

TEST(Codes, have_the_numbers_that_programs_were_compiled_with) {
  for (const Row& row : kFrozen) EXPECT_STREQ(rp_code_name(row.number), row.name);
}

TEST(Codes, of_the_public_enumeration_all_have_a_number_of_their_own) {
  std::set<std::int32_t> numbers;
  for (std::uint32_t at = 0; at <= static_cast<std::uint32_t>(Code::kInternal); ++at) {
    const std::int32_t number = number_of(Code{at});
    const auto back = code_numbered(number);
    ASSERT_TRUE(back) << number;
    // Codes that only the harness uses are INTERNAL.
    EXPECT_TRUE(*back == Code{at} || number == RP_INTERNAL) << name_of(Code{at});
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), std::size(kFrozen));
}

TEST(Codes, without_a_name_are_printed_as_numbers) {
  EXPECT_STREQ(rp_code_name(0), "OK");
  EXPECT_STREQ(rp_code_name(9999), "UNKNOWN_9999");
  EXPECT_STREQ(rp_code_name(-5), "UNKNOWN_-5");
}

TEST(Header, is_also_valid_cpp) {
  const Said said =
      shell(REPRISE_CXX " -x c++ -std=c++11 -fsyntax-only" + kWarnings +
            REPRISE_SOURCE_DIR "/include/reprise/c.h -Wno-pragma-once-outside-header");
  EXPECT_TRUE(said.ok) << said;
}

TEST(Library, exports_the_names_of_the_header_alone) {
  const Said said = shell("nm -D --defined-only " + kLibrary + " | grep -v ' rp_'");
  EXPECT_FALSE(said.ok) << said;  // grep found nothing else
  const Said own = shell("nm -D --defined-only " + kLibrary);
  EXPECT_THAT(own.text, HasSubstr(" T rp_save_finish"));
}

TEST(Library, needs_no_other_library_of_reprise_and_no_runtime_of_cpp) {
  const Said needed = shell("readelf -d " + kLibrary + " | grep NEEDED");
  ASSERT_TRUE(needed.ok) << needed;
  EXPECT_THAT(needed.text, Not(HasSubstr("reprise")));
  EXPECT_THAT(needed.text, Not(HasSubstr("stdc++")));
}

TEST(CudaFile, exports_one_function_and_needs_no_driver_or_runtime) {
  if (kCudaFile.empty()) GTEST_SKIP() << "built without CUDA";
  const Said names = shell("nm -D --defined-only " + kCudaFile);
  EXPECT_THAT(names.text, testing::EndsWith(" T reprise_c_cuda_table\n"));
  EXPECT_EQ(std::count(names.text.begin(), names.text.end(), '\n'), 1) << names;
  const Said needed = shell("readelf -d " + kCudaFile + " | grep NEEDED");
  ASSERT_TRUE(needed.ok) << needed;
  for (const char* other : {"cuda", "cudart", "reprise", "stdc++", "crypto", "xxhash"}) {
    EXPECT_THAT(needed.text, Not(HasSubstr(other)));
  }
}

TEST(CudaFile, is_at_most_3_mib) {
  if (kCudaFile.empty()) GTEST_SKIP() << "built without CUDA";
  EXPECT_LT(std::filesystem::file_size(kCudaFile), 3U << 20U) << "is its code compressed?";
}

TEST(Program, in_c99_saves_and_loads) {
  const contracts::TemporaryDirectory directory;
  const std::string program = directory.path() + "/program";
  const Said built = shell(REPRISE_CC " -std=c99 -D_POSIX_C_SOURCE=200809L" + kWarnings + kFolder +
                           "/program.c -o " + program + " " + kLibrary + " -Wl,-rpath,$(dirname " +
                           kLibrary + ")");
  ASSERT_TRUE(built.ok) << built;
  const Said ran = shell("cd " + directory.path() + " && " + program);
  EXPECT_TRUE(ran.ok) << ran;
}

}  // namespace
}  // namespace reprise::c
