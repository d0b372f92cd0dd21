// Tests loads that search for module keys in one form while the checkpoint's keys have the other
// form.

#include <gtest/gtest.h>

#include "sim/mutants/mutants.hpp"
#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

TEST(BareKeys, are_missed_by_loads_that_expect_prefixes_or_only_settings) {
  for (const char* mutant : {"mimo-bare-keys", "mimo-bare-keys/settings-alone"}) {
    SimStore store;
    const JobConfig config = job_of({module_on("eyes", "audio-tiny", "tp2"),
                                     module_on("language", "language-moe", "tp2 ep2 dp2")});
    JobConfig bare = config;
    bare.checkpoint.keys = KeyForm::kBare;
    saved_on(store, bare, 1);
    Policies policies;
    mutant_named(mutant).apply(policies);
    const Life life = live_on(
        store, config, [](const Seat& seat) { seat.load(); }, model_space, policies.job);
    for (const auto& error : life.errors) {
      ASSERT_TRUE(error.has_value()) << mutant;
      EXPECT_EQ(error->code(), Code::kNotStored);
    }
  }
}

}  // namespace
}  // namespace reprise::sim
