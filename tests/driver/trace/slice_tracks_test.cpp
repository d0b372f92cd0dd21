// Tests that the slices of a rank are put on tracks on which they nest.

#include "driver/trace/slice_tracks.hpp"

#include <gtest/gtest.h>

namespace reprise::driver {
namespace {

sim::Slice slice(const std::string& name, std::uint64_t begin, std::uint64_t end,
                 std::size_t fiber = 3) {
  return {.rank = GlobalRank{3}, .fiber = fiber, .name = name, .begin_ns = begin, .end_ns = end};
}

/// Returns each track as text: ": a b" or ", background 1: c".
std::vector<std::string> texts_of(const std::vector<sim::Slice>& slices) {
  std::vector<const sim::Slice*> pointers;
  for (const auto& one : slices) pointers.push_back(&one);
  std::vector<std::string> texts;
  for (const auto& track : tracks_of(pointers)) {
    std::string text = track.suffix + ":";
    for (const auto* one : track.slices) text += " " + one->name;
    texts.push_back(text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(SliceTracks, slices_that_nest_or_follow_share_the_ranks_own_track) {
  EXPECT_EQ(texts_of({}), Texts{":"});
  EXPECT_EQ(texts_of({slice("commit", 0, 10), slice("lock", 0, 4), slice("stat", 1, 2),
                      slice("swap", 4, 10), slice("empty", 10, 10), slice("next", 10, 12)}),
            Texts{": commit lock stat swap empty next"});
}

TEST(SliceTracks, a_slice_that_outlasts_its_parent_gets_another_track) {
  EXPECT_EQ(texts_of({slice("write 1", 0, 10), slice("write 2", 5, 20), slice("stat", 6, 7),
                      slice("write 3", 8, 30), slice("late", 25, 28)}),
            (Texts{": write 1 stat late", ", overlapping: write 2", ", overlapping 2: write 3"}));
}

TEST(SliceTracks, background_work_never_stands_within_slices_of_another_fiber) {
  EXPECT_EQ(
      texts_of({slice("write", 0, 100), slice("create", 1, 5, 9), slice("create", 2, 5, 10),
                slice("put 9", 5, 8, 9), slice("put 10", 6, 7, 10), slice("new", 20, 21, 11)}),
      (Texts{": write", ", background 1: create put 9 new", ", background 2: create put 10"}));
}

}  // namespace
}  // namespace reprise::driver
