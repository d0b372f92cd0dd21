// If the ranks of a job see different trackers, the job must continue from the newest iteration
// that any of these trackers names.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/format/tracker.hpp"
#include "core/load/load_open.hpp"
#include "core/ports/whole_file.hpp"
#include "core/seams/load_seams.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"

namespace reprise {
namespace {

constexpr std::nullopt_t kNone = std::nullopt;

TEST(NewestTracked, is_the_newest_that_any_rank_names_whoever_leads) {
  struct Row {
    TrackedSteps tracked;
    std::optional<Step> newest;
  };
  const std::vector<Row> rows = {{{Step{3}}, Step{3}},
                                 {{Step{3}, Step{3}}, Step{3}},
                                 {{Step{3}, Step{5}, Step{4}}, Step{5}},
                                 {{Step{5}, Step{3}}, Step{5}},
                                 {{kNone, Step{0}}, Step{0}},
                                 {{Step{2}, kNone}, Step{2}},
                                 {{kNone, kNone}, kNone}};
  for (const Row& row : rows) {
    for (std::size_t leader = 0; leader < row.tracked.size(); ++leader) {
      EXPECT_EQ(newest_tracked(row.tracked, {static_cast<std::int32_t>(leader)}), row.newest);
    }
  }
}

/// Both ranks' stores hold the iterations 1 to 3. The tracker of rank r names tracked[r]. Returns
/// the iterations that a load tries, in order. All ranks must return the same.
std::string tried(const std::vector<int>& tracked, Fallback fallback) {
  std::vector<std::string> found(tracked.size());
  const contracts::TemporaryDirectory directory;
  contracts::run_ranks(
      static_cast<std::int32_t>(tracked.size()), directory.path(), [&](const Ports& ports) {
        const auto rank = static_cast<std::size_t>(ports.fabric.rank().value);
        const contracts::TemporaryDirectory own;
        PosixStore store(own.path());
        for (int step = 1; step <= 3; ++step) {
          const std::string iteration = "run/iter_000000" + std::to_string(step);
          store.make_directory(iteration);
          write_durably(store, iteration + "/.metadata", {});
        }
        write_durably(store, "run/" + std::string(kTrackerFile),
                      as_bytes(std::to_string(tracked[rank])));
        const auto group =
            ports.fabric.communicator(Group::world(static_cast<std::int32_t>(tracked.size())));
        const LoadOptions settings{.directory = "run", .fallback = fallback};
        for (const auto& location : candidates_for_all(store, *group, settings, {}).locations) {
          EXPECT_EQ(location.directory, "run/iter_000000" + std::to_string(location.step->value));
          found[rank] += std::to_string(location.step->value);
        }
      });
  EXPECT_EQ(found.front(), found.back());
  return found.front();
}

TEST(NewestTracked, is_tried_alone_or_with_fallback_before_all_older_ones) {
  for (const auto& tracked : {std::vector{2, 3}, {3, 2}, {1, 3}, {3, 3}}) {
    EXPECT_EQ(tried(tracked, Fallback::kNone), "3") << tracked[0] << tracked[1];
  }
  EXPECT_EQ(tried({2, 3}, Fallback::kNewestWhole), "321");
  EXPECT_EQ(tried({3, 2}, Fallback::kNewestWhole), "321");
  EXPECT_EQ(tried({2, 1}, Fallback::kNewestWhole), "21");
}

}  // namespace
}  // namespace reprise
