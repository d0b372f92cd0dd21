#pragma once
// Describes a timeline: a seed, and the points from which other seeds decide.
//
//   17                      every life of the job, its faults and its schedule come from seed 17
//   17/2:0:941              the same lives 0 and 1; from life 2 on everything comes from seed 941
//   17/2:350:941            the same lives 0, 1 and 2, but from decision 350 of life 2 on the
//                           schedule comes from seed 941, and so does all of life 3 and later
//   17p/2:350:941p          the same with schedules by priority instead of uniform ones
//
// A timeline is a function of its recipe, so a branch needs no copy of a running world: its first
// part is run again. That costs the time of that part.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fibers/fiber_chooser.hpp"

namespace reprise::driver {

struct Split {
  std::size_t life = 0;
  std::uint64_t decision = 0;  ///< 0: the whole life is drawn anew, not only its schedule
  std::uint64_t seed = 0;
  sim::Choosing choosing = sim::Choosing::kUniform;

  friend bool operator==(const Split&, const Split&) = default;
};

struct Recipe {
  std::uint64_t seed = 1;
  sim::Choosing choosing = sim::Choosing::kUniform;
  std::vector<Split> splits = {};  ///< by life and decision

  /// Returns the recipe that is the same up to the split and follows the split's seed from there.
  /// Later splits of this recipe have no effect on such a timeline and are dropped.
  Recipe branch(const Split& split) const;
  /// Returns the recipe that is the same up to the life and follows the other recipe from there.
  Recipe cross(std::size_t life, const Recipe& other) const;
  /// Returns the seed that decides about the plan of a life: its layout, steps and faults.
  std::uint64_t seed_of_life(std::size_t life) const;
  /// Returns the schedule of a life: from decision 0 on it comes from seed_of_life().
  sim::SchedulePlan schedule_of(std::size_t life) const;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

std::string to_string(const Recipe& recipe);
/// Reads the output of to_string(). Throws USAGE for any other text.
Recipe parse_recipe(const std::string& text);

}  // namespace reprise::driver
