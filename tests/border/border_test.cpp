// Checks that public headers and shared libraries expose nothing internal to an outside
// program.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/border/border_rules.hpp"
#include "tests/border/shell.hpp"

namespace reprise::border {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kRoot = REPRISE_SOURCE_DIR;
constexpr std::size_t kHeadersMax = 16;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> public_headers() {
  std::vector<fs::path> headers;
  for (const auto& entry : fs::directory_iterator(kRoot + "/include/reprise")) {
    if (entry.path().extension() == ".hpp") headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

TEST(Headers, are_few) {
  EXPECT_GE(public_headers().size(), 10U);
  EXPECT_LE(public_headers().size(), kHeadersMax);
}

TEST(Headers, hold_nothing_that_is_not_of_reprise_or_the_standard_library) {
  for (const fs::path& header : public_headers()) {
    SCOPED_TRACE(header);
    const std::string text = read_text(header);
    EXPECT_THAT(foreign_includes(text), IsEmpty());
    EXPECT_THAT(foreign_macros(text), IsEmpty());
    EXPECT_THAT(foreign_namespaces(text), IsEmpty());
    EXPECT_THAT(foreign_words(text), IsEmpty());
  }
}

/// Returns the codes that files of core report. `scope` is a namespace or enum that defines the
/// codes. Skips the file that lists all names and the file that declares the codes.
std::set<std::string> said_by_core(const std::string& scope) {
  std::set<std::string> said;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot + "/core")) {
    const std::string name = entry.path().lexically_relative(kRoot).generic_string();
    if (!entry.is_regular_file() || name.ends_with(".md")) continue;
    if (name == "core/base/error.cpp" || name == "core/base/codes.hpp") continue;
    said.merge(said_codes(read_text(entry.path()), scope));
  }
  return said;
}

TEST(Codes, that_are_public_are_all_said_by_the_library) {
  const auto codes = public_codes(read_text(kRoot + "/include/reprise/error.hpp"));
  EXPECT_GT(codes.size(), 25U);
  const auto said = said_by_core("Code");
  for (const auto& code : codes) {
    EXPECT_TRUE(said.contains(code)) << code << " is said by nobody in core: a program that waits "
                                     << "for it waits in vain";
  }
}

TEST(Codes, that_the_library_passes_on_are_not_said_by_it) {
  EXPECT_THAT(said_by_core("passed_on"), IsEmpty()) << "make it public";
}

/// Macros that other libraries define: loggers, test frameworks, and X11.
constexpr const char* kForeignMacros[] = {
    "CHECK(...)=@", "LOG(...)=@", "ASSERT(...)=@", "REQUIRE(...)=@", "None=0L",   "Status=int",
    "Bool=int",     "True=1",     "False=0",       "Success=0",      "Complex=0", "Always=2"};

/// Compiles each header alone, with the macros of kForeignMacros defined.
Said compile_each(const std::string& compiler) {
  std::string names;
  for (const fs::path& header : public_headers()) names += " " + header.filename().string();
  std::string macros;
  for (const std::string macro : kForeignMacros) macros += " \"-D" + macro + "\"";
  return shell("printf '%s\\n'" + names +
               " | xargs -P 2 -I NAME sh -c 'echo \"#include \\\"reprise/NAME\\\"\" | " + compiler +
               " -std=c++20 -I " + kRoot +
               "/include -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only" + macros +
               " -x c++ -'");
}

TEST(Headers, compile_alone_and_beside_macros_of_a_consumer) {
  const Said said = compile_each(REPRISE_CXX);
  EXPECT_TRUE(said.ok) << said;
}

TEST(Headers, compile_alone_beside_a_consumers_macros_with_clang) {
  const std::string clang = shell("command -v clang++-14").ok ? "clang++-14" : "clang++";
  if (!shell("command -v " + clang).ok) GTEST_SKIP() << "no clang";
  const Said said = compile_each(clang);
  EXPECT_TRUE(said.ok) << said;
}

TEST(Libraries, export_names_of_reprise_alone) {
  for (const std::string library : {REPRISE_LIBRARY_FILE, REPRISE_LIBRARY_MPI_FILE,
                                    REPRISE_LIBRARY_CUDA_FILE, REPRISE_LIBRARY_NCCL_FILE}) {
    if (library.empty()) continue;
    const Said listing = shell("nm -D --defined-only -C " + library);
    ASSERT_TRUE(listing.ok) << listing;
    EXPECT_THAT(listing.text, HasSubstr("reprise::")) << library;
    EXPECT_THAT(foreign_symbols(listing.text), IsEmpty()) << library;
  }
}

TEST(Libraries, keep_what_no_public_header_declares) {
  std::string headers;
  for (const fs::path& header : public_headers()) headers += read_text(header);
  const Said listing = shell(std::string("nm -D --defined-only -C ") + REPRISE_LIBRARY_FILE);
  EXPECT_THAT(listing.text, HasSubstr("T reprise::begin_save("));
  EXPECT_THAT(undeclared_symbols(listing.text, headers), IsEmpty());
}

TEST(Libraries, without_the_component_load_no_mpi) {
  const Said needed = shell(std::string("readelf -d ") + REPRISE_LIBRARY_FILE);
  ASSERT_TRUE(needed.ok) << needed;
  EXPECT_THAT(needed.text, HasSubstr("NEEDED"));
  EXPECT_THAT(needed.text, testing::Not(HasSubstr("libmpi")));
}

TEST(Libraries, do_not_have_the_names_of_the_judges_codes) {
  const std::string library = read_text(REPRISE_LIBRARY_FILE);
  EXPECT_NE(library.find("COVERAGE_GAP"), library.npos);
  EXPECT_EQ(library.find("BIT_MISMATCH"), library.npos);
  EXPECT_EQ(library.find("VALIDATOR_VACUOUS"), library.npos);
}

// ---------------------------------------------------------------- tests of the rules themselves

TEST(Rules, find_the_public_codes) {
  EXPECT_THAT(public_codes("enum class Other {\n  kNo,\n};\nenum class Code : std::uint32_t {\n"
                           "  kIo,   ///< a disk\n  kLimit = 4,\n};\n  kNeither,\n"),
              ElementsAre("Code::kIo", "Code::kLimit"));
}

TEST(Rules, find_who_says_a_code) {
  EXPECT_THAT(said_codes("throw Error(Code::kIo, text);\nreturn is ? Code::kLimit : it;\n", "Code"),
              ElementsAre("Code::kIo", "Code::kLimit"));
  EXPECT_THAT(said_codes("  case Code::kIo:\n  if (code ==\n      Code::kLimit) return;\n"
                         "  // Code::kUsage\n  Code code = Code::kHang;\n  Code::kLock != code\n",
                         "Code"),
              IsEmpty());
  EXPECT_THAT(said_codes("throw Error(passed_on::kHang, text);", "passed_on"),
              ElementsAre("passed_on::kHang"));
}

TEST(Rules, find_an_include_from_inside_or_of_a_third_party) {
  EXPECT_THAT(foreign_includes("#include <vector>\n#include \"reprise/error.hpp\"\n"), IsEmpty());
  EXPECT_THAT(foreign_includes("#include \"core/base/check.hpp\"\n # include <fmt/format.h>\n"),
              ElementsAre("\"core/base/check.hpp\"", "<fmt/format.h>"));
  EXPECT_THAT(foreign_includes("#include <mpi.h>\n"), ElementsAre("<mpi.h>"));
}

TEST(Rules, find_a_macro_without_the_prefix) {
  EXPECT_THAT(foreign_macros("#define REPRISE_API\n"), IsEmpty());
  EXPECT_THAT(foreign_macros("#define CHECK(x)\n#define  REPRISED\n"),
              ElementsAre("CHECK", "REPRISED"));
}

TEST(Rules, find_another_namespace) {
  EXPECT_THAT(foreign_namespaces("namespace reprise REPRISE_API {\n"), IsEmpty());
  EXPECT_THAT(foreign_namespaces("namespace sim {\n"), ElementsAre("sim"));
}

TEST(Rules, find_a_word_of_the_harness) {
  EXPECT_THAT(foreign_words("/// The planes of a tensor.\n  kDtypeDrift,\n"), IsEmpty());
  EXPECT_THAT(foreign_words("// A Mutant swaps it.\n// Judges say it.\n// a lane\n"),
              ElementsAre("Mutant", "Judge", "lane"));
}

TEST(Rules, find_a_symbol_that_is_not_of_reprise) {
  EXPECT_THAT(foreign_symbols("0000000000012340 T reprise::save(reprise::Job&)\n"
                              "0000000000012350 V typeinfo for reprise::Error\n"),
              IsEmpty());
  EXPECT_THAT(foreign_symbols("0000000000012340 W std::vector<int>::push_back(int)\n"
                              "0000000000012340 T XXH3_64bits\n"),
              ElementsAre("std::vector<int>::push_back(int)", "XXH3_64bits"));
}

TEST(Rules, find_a_symbol_that_no_header_declares) {
  EXPECT_THAT(
      undeclared_symbols("0000000000012340 T reprise::Job::Job(reprise::JobPorts)\n"
                         "0000000000012340 T reprise::JobAccess::in_flight(reprise::Flight)\n"
                         "0000000000012350 V vtable for reprise::Checkpoint\n",
                         "class Job { Job(); friend struct JobAccess; };  // in flight"),
      ElementsAre("JobAccess::in_flight", "Checkpoint"));
}

}  // namespace
}  // namespace reprise::border
