// Reads the elements that two ranks wrote out at a save and after its load.
#include "driver/programs/element_mismatch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/hash.hpp"
#include "driver/programs/program_life.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using Words = std::vector<std::uint64_t>;

/// Writes what a rank tells of its two elements of the tensor "w".
void write(const std::string& work, std::size_t life, std::size_t rank, const std::string& when,
           const Words& words) {
  const std::string file = witness_file(work, life, rank, "-values.jsonl");
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(witness_file(work, life, rank, ".jsonl"));
  std::ofstream(file) << R"({"when":")" << when << R"(","step":2,"key":"w","dtype":"int32","at":[)"
                      << 2 * rank << R"(],"size":[2],"bits":[")" << hex(words[0]) << R"(",")"
                      << hex(words[1]) << "\"]}\n";
}

/// Returns the first element that a load of step 2 made wrong.
std::optional<ElementMismatch> mismatch_in(const std::string& work) {
  return first_mismatch(
      work, 2, {.key = "w", .life = 1, .step = 2, .phase = "load", .other_elements = true});
}

/// Returns the first wrong element if the ranks saved 1, 2 and 3, 4, and rank 0 loaded this.
std::optional<ElementMismatch> mismatch_of(const Words& loaded) {
  const contracts::TemporaryDirectory work;
  write(work.path(), 0, 0, "save", {1, 2});
  write(work.path(), 0, 1, "save", {3, 4});
  write(work.path(), 1, 0, "loaded", loaded);
  write(work.path(), 1, 1, "loaded", {3, 4});
  return mismatch_in(work.path());
}

TEST(ElementMismatch, TellsWhereAWrongElementComesFrom) {
  EXPECT_FALSE(mismatch_of({1, 2}));
  const auto unknown = mismatch_of({1, 7});
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->code, judged::kBitMismatch);
  EXPECT_EQ(unknown->first.index, std::vector<std::int64_t>{1});
  EXPECT_EQ(unknown->elements, 1U);
  const auto own = mismatch_of({2, 2});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->code, judged::kShiftedBytes) << own->first.comes_from;
  const auto others = mismatch_of({4, 2});
  ASSERT_TRUE(others);
  EXPECT_EQ(others->code, judged::kWrongOwner);
  EXPECT_EQ(others->first.comes_from, "element [3] of the same tensor, which rank 1 held");
}

TEST(ElementMismatch, what_no_rank_told_at_the_save_is_not_compared) {
  const contracts::TemporaryDirectory work;
  write(work.path(), 0, 0, "end", {1, 2});
  write(work.path(), 0, 1, "save", {3, 4});
  write(work.path(), 1, 0, "loaded", {5, 6});
  write(work.path(), 1, 1, "loaded", {3, 4});
  EXPECT_FALSE(mismatch_in(work.path()));
}

}  // namespace
}  // namespace reprise::driver
