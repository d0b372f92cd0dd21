// Lets one rank fail at each of its calls to the store, with an exception other than Error. The
// worlds have two or three ranks, and the operations are a save and a load that may fall back to an
// older checkpoint. No other rank may wait for the failed rank. All ranks must succeed, or all must
// end with the same error.

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <optional>
#include <set>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/world.hpp"
#include "tests/sim/world/mortal_ports.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim {
namespace {

struct Saved {
  std::int64_t step = 1;
  std::optional<std::int32_t> keep = {};
};

void save(const Ports& ports, const Saved& what) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), what.step);
  SaveOptions options;
  options.directory = "run";
  options.step = what.step;
  options.keep = what.keep;
  Save::begin(ports, all_ranks(ports), job.state, options).finish();
}

void load(const Ports& ports) {
  TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), 0);
  LoadOptions options;
  options.directory = "run";
  options.fallback = reprise::Fallback::kNewestWhole;
  reprise::load(ports, *all_ranks(ports), job.state, options);
}

/// Returns how the ranks ended: "well" or the name of an error. If they did not all end in the same
/// way, returns each of their endings.
std::string ending_of(const RunResult& result) {
  std::set<std::string> endings;
  for (const RankOutcome& rank : result.ranks) {
    std::string ending{name_of(rank.end)};
    if (rank.end == RankEnd::kReturned) ending = "well";
    if (rank.end == RankEnd::kFailed) ending = name_of(rank.error->code());
    endings.insert(ending);
  }
  std::string text;
  for (const auto& ending : endings) text += (text.empty() ? "" : " and ") + ending;
  return text;
}

bool is_call(const MortalPlace& place) { return place.what != "begins" && place.what != "ends"; }

class OneRankFails : public testing::TestWithParam<std::int32_t> {
 protected:
  OneRankFails() {
    for (const std::int64_t step : {1, 2}) {
      World world({.seed = 3, .world_size = GetParam()}, before_);
      const auto result = world.run([step](Ports& ports, GlobalRank) { save(ports, {step}); });
      EXPECT_EQ(ending_of(result), "well");
    }
  }

  struct Run {
    std::string ending;
    std::optional<MortalPlace> met;
  };

  /// Runs `program` on all ranks. On the rank `victim`, the store call with the index `nth` throws.
  Run run(GlobalRank victim, std::size_t nth, const std::function<void(const Ports&)>& program) {
    SimStore store("sim:");
    copy_tree({before_}, {store});
    Run run;
    std::size_t calls = 0;
    World world({.seed = 3, .world_size = GetParam()}, store);
    const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
      const auto pass = [&, rank](const MortalPlace& place) {
        if (rank != victim || !is_call(place) || calls++ != nth) return Deed::kDone;
        run.met = place;
        throw std::bad_alloc();
      };
      program(MortalPorts(ports, pass, true).ports());
    });
    run.ending = ending_of(result);
    return run;
  }

  /// Makes each rank fail at each of its store calls, one call per run. Counts how the runs ended.
  std::map<std::string, int> run_all(const std::function<void(const Ports&)>& program) {
    std::map<std::string, int> endings;
    for (std::int32_t victim = 0; victim < GetParam(); ++victim) {
      for (std::size_t nth = 0;; ++nth) {
        const Run one = run({victim}, nth, program);
        if (!one.met) break;
        ++endings[one.ending];
        EXPECT_TRUE(one.ending == "well" || one.ending == "INTERNAL")
            << "rank " << victim << ", " << one.met->text() << ": " << one.ending;
      }
    }
    return endings;
  }

  SimStore before_ = SimStore("sim:");
};

TEST_P(OneRankFails, in_a_save_and_all_end_alike) {
  const auto endings = run_all([](const Ports& ports) { save(ports, {3, 1}); });
  EXPECT_GT(endings.at("INTERNAL"), 20);
  EXPECT_GT(endings.at("well"), 5) << "a failed removal must not fail the save";
}

TEST_P(OneRankFails, in_a_load_that_may_fall_back_and_all_end_alike) {
  const auto endings = run_all([](const Ports& ports) { load(ports); });
  EXPECT_GT(endings.at("INTERNAL"), 10);
}

TEST_P(OneRankFails, by_what_it_was_told_to_keep_and_all_refuse) {
  for (const std::int32_t wrong : {0, -1, 3}) {
    for (std::int32_t victim = 0; victim < GetParam(); ++victim) {
      const Run one = run({0}, std::size_t{1} << 30U, [&](const Ports& ports) {
        const bool is_victim = ports.fabric.rank() == GlobalRank{victim};
        save(ports, {3, is_victim ? wrong : 1});
      });
      EXPECT_EQ(one.ending, "USAGE") << "rank " << victim << " keeps " << wrong;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, OneRankFails, testing::Values(2, 3));

}  // namespace
}  // namespace reprise::sim
