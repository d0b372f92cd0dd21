// In every build, replays the seeds and former findings of the fuzz targets.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

std::map<std::string, const Target*> targets() {
  std::map<std::string, const Target*> all;
  for (const Target* target = Target::first(); target != nullptr; target = target->next()) {
    all[target->name()] = target;
  }
  return all;
}

TEST(Replay, every_target_takes_real_files_and_keeps_its_promises) {
  const auto all = targets();
  EXPECT_EQ(all.size(), 9U);
  for (const auto& [name, target] : all) {
    std::size_t accepted = 0;
    const auto seeds = target->seeds();
    EXPECT_GE(seeds.size(), 5U) << name;
    for (const Seed& seed : seeds) {
      SCOPED_TRACE(name + ": " + seed.name);
      Acceptance outcome = Acceptance::kRefused;
      EXPECT_NO_THROW(outcome = target->run(seed.bytes));
      if (outcome == Acceptance::kAccepted) ++accepted;
    }
    EXPECT_GE(accepted, seeds.size() * 9 / 10) << name;
  }
}

TEST(Replay, what_was_found_once_stays_mended) {
  const auto all = targets();
  const std::string folder = "tests/fuzz/regress";
  for (const Seed& found : files_below(folder, "")) {
    const std::string name = std::filesystem::path(found.name).parent_path().filename().string();
    SCOPED_TRACE(found.name);
    ASSERT_TRUE(all.contains(name)) << "no target for this folder";
    EXPECT_NO_THROW(all.at(name)->run(found.bytes));
  }
}

}  // namespace
}  // namespace reprise::fuzz
