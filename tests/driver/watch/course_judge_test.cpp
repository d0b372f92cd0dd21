// Tests how a life is compared that resumes in the middle of an accumulation of gradients.
#include "driver/watch/course_judge.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace reprise::driver {
namespace {

/// Returns how many findings about data and about losses there are if the first step of a life
/// takes these inputs and losses, and the uninterrupted one took a, b, c and d.
std::pair<std::size_t, std::size_t> found(const std::vector<std::string>& inputs,
                                          const std::vector<std::string>& losses) {
  LifeRecording a;
  a.ranks[0].steps[8] = {.losses = {"0x1", "0x2", "0x3", "0x4"}, .inputs = {"a", "b", "c", "d"}};
  LifeRecording c;
  c.ranks[0].steps[1] = {.losses = losses, .inputs = inputs};
  const std::set<std::string> noise;
  const ResumedLife lives{.uninterrupted = a, .killed = a, .resumed = c, .noise = noise};
  const CourseLimits limits{.from = 7, .repeated_to = 9, .to_the_end = false, .leaf_noise = noise};
  WatchJudgement judgement;
  const CourseFindings course = compare_courses(lives, limits, judgement);
  return {course.data.size(), course.losses.size()};
}

TEST(Accumulation, rest_of_a_step_is_its_last_inputs) {
  using Found = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(found({"a", "b", "c", "d"}, {"0x1", "0x2", "0x3", "0x4"}), Found(0, 0));
  EXPECT_EQ(found({"c", "d"}, {"0x3", "0x4"}), Found(0, 0));
  EXPECT_EQ(found({"c", "d"}, {"0x3", "0x5"}), Found(0, 1));
  EXPECT_EQ(found({"a", "b"}, {"0x1", "0x2"}), Found(1, 1)) << "the first half again";
  EXPECT_EQ(found({}, {}), Found(1, 1));
}

}  // namespace
}  // namespace reprise::driver
