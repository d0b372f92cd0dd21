// Tests the file of a trace: its order, and that it has its name only when it is complete.

#include "driver/trace/trace_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using contracts::code_of;
using contracts::TemporaryDirectory;

std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const TemporaryDirectory& directory) {
  const std::filesystem::directory_iterator begin(directory.path());
  return static_cast<std::size_t>(std::distance(begin, {}));
}

TEST(TraceFile, scenarios_are_in_order_whichever_ends_first) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.pftrace";
  TraceFile file(path);
  file.add(2, "cc");
  file.add(0, "a");
  file.add(1, "");
  file.add(3, "d");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.finish();
  EXPECT_EQ(content_of(path), "accd");
  EXPECT_EQ(files_in(directory), 1U);
}

TEST(TraceFile, an_error_leaves_the_earlier_trace_and_nothing_else) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.pftrace";
  std::ofstream(path) << "earlier";
  {
    TraceFile file(path);
    file.add(0, "new");
    EXPECT_EQ(files_in(directory), 2U);
  }
  EXPECT_EQ(content_of(path), "earlier");
  EXPECT_EQ(files_in(directory), 1U);
}

TEST(TraceFile, a_place_where_no_file_can_be_is_refused_at_once) {
  const TemporaryDirectory directory;
  const auto refused = [](const std::string& path) {
    return code_of([&] { TraceFile file(path); });
  };
  EXPECT_EQ(refused(directory.path()), Code::kUsage);
  EXPECT_EQ(refused(directory.path() + "/"), Code::kUsage);
  EXPECT_EQ(refused("/dev/null"), Code::kUsage);
  const std::string nowhere = directory.path() + "/none/t.pftrace";
  const auto error = contracts::error_of([&] { TraceFile file(nowhere); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().file, nowhere);
  EXPECT_EQ(files_in(directory), 0U);
}

}  // namespace
}  // namespace reprise::driver
