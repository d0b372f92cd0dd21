// Tests concurrent writers on a file system without locks. No writer may remove files that another
// writer is writing or has set aside. All saves must succeed, and a load must find the save that
// finished last.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/load/load.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/save.hpp"
#include "sim/world/world.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string kFirst = "run/iter_0000001";

void run(SimStore& store, const std::function<void(const Ports&)>& program) {
  World world({.seed = 5, .world_size = 1}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank) { program(ports); });
  for (const auto& rank : result.ranks) {
    ASSERT_EQ(rank.end, RankEnd::kReturned)
        << rank.message << (rank.error ? rank.error->what() : "");
  }
}

Save begin(const Ports& ports, std::int64_t generation, std::int64_t step,
           std::optional<std::int32_t> keep = {}) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), generation);
  SaveOptions options;
  options.directory = "run";
  options.step = step;
  options.keep = keep;
  return Save::begin(ports, all_ranks(ports), job.state, options);
}

class NoLocks : public testing::TestWithParam<bool> {
 protected:
  SimStore store_{"sim:", {.exchange = GetParam(), .locks = false}};
};

TEST_P(NoLocks, two_saves_of_one_place_both_end_well_and_the_last_one_stands) {
  run(store_, [](const Ports& ports) {
    begin(ports, 1, 1).finish();
    Save first = begin(ports, 2, 1);
    begin(ports, 3, 1).finish();
    EXPECT_EQ(loaded(ports, "run"), 3);
    const auto log = first.finish().log;
    EXPECT_THAT(log, Contains(HasSubstr("no locks")));
    EXPECT_EQ(loaded(ports, "run"), 2);
  });
  EXPECT_TRUE(asides_of(store_, kFirst).empty()) << "each writer must remove its own files";
}

TEST_P(NoLocks, what_others_set_aside_is_left_alone_and_named) {
  const std::string token = "fedcba9876543210";
  std::vector<std::string> others;
  run(store_, [&](const Ports& ports) {
    begin(ports, 1, 1).finish();
    for (const auto suffix : {kSavingSuffix, kReplacedSuffix, kRemovingSuffix}) {
      const auto path = others.emplace_back(aside_path(kFirst, suffix, token));
      ports.store.make_directory(path);
      const bool written = suffix == kSavingSuffix;
      const auto mark = written ? mark_of(token) : old_mark_of(token);
      write_durably(ports.store, join_path(path, mark), {});
      write_durably(ports.store, join_path(path, ".metadata"), as_bytes("x"));
    }
    const auto log = begin(ports, 2, 1).finish().log;
    for (const auto& path : others) {
      EXPECT_THAT(log, Contains(HasSubstr(ports.store.display(path)))) << path;
    }
    ports.store.remove(kFirst);
    begin(ports, 3, 1).finish();  // must not restore another writer's copy
    begin(ports, 4, 2, 1).finish();
    EXPECT_EQ(loaded(ports, "run"), 4);
  });
  for (const auto& path : others) {
    EXPECT_TRUE(store_.stat(join_path(path, ".metadata"))) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Exchange, NoLocks, testing::Bool());

}  // namespace
}  // namespace reprise::sim
