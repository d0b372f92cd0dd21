// Tests that if a load or save of a job of modules is refused, all ranks get the same refusal, and
// it gives the cause.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/codes.hpp"
#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim::modules_refused_test {
namespace {

using testing::HasSubstr;

const std::vector<ModuleConfig>& two() {
  static const std::vector<ModuleConfig> all = {module_on("a", "audio-tiny", "tp2"),
                                                module_on("b", "language-tiny", "tp2")};
  return all;
}

// --- refusals -----------------------------------------------------------------------------------

void expect_refused(const Life& life, Code code, const std::vector<std::string>& says) {
  ASSERT_TRUE(life.errors[0].has_value());
  for (const auto& error : life.errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), code) << error->what();
    EXPECT_EQ(error->message(), life.errors[0]->message()) << "must be the same on all ranks";
  }
  for (const auto& words : says) EXPECT_THAT(life.errors[0]->message(), HasSubstr(words));
}

struct Refusal {
  std::string what;
  std::vector<ModuleConfig> from;
  JobConfig to;
  Code code;
  std::vector<std::string> says;
};

JobConfig another_run(JobConfig config) {
  config.identity.run = "another";
  return config;
}

JobConfig one_model(const std::string& model) {
  JobConfig config;
  config.makeup.model = model;
  config.makeup.layout = parse_layout("tp2");
  return config;
}

TEST(ModulesRefused, a_table_of_loads_that_are_refused_alike_on_all_ranks) {
  const std::string dp = "dp_reshardable";
  const auto a = [&](const char* layout) { return module_on("a", "audio-tiny", layout, {}, dp); };
  const auto b = [&](const char* layout) {
    return module_on("b", "language-tiny", layout, {}, dp);
  };
  const std::vector<Refusal> rows = {
      {"buckets of the first under another tp",
       {a("tp2"), b("tp2")},
       job_of({a("tp1"), b("tp2 dp2")}),
       Code::kLayoutMismatch,
       {"of module a is dp_reshardable", "saved under tp2", "this job is tp1"}},
      {"buckets of the second under another tp",
       {a("tp2"), b("tp2")},
       job_of({a("tp2"), b("dp2")}),
       Code::kLayoutMismatch,
       {"of module b is dp_reshardable"}},
      {"under another pp",
       {a("tp2"), b("pp2")},
       job_of({a("tp2"), b("pp4")}),
       Code::kLayoutMismatch,
       {"of module b is dp_reshardable", "saved under pp2", "this job is pp4"}},
      {"the checkpoint's sharding decides, not the job's",
       {a("tp2"), b("tp2")},
       job_of({a("tp2"), module_on("b", "language-tiny", "dp2")}),
       Code::kLayoutMismatch,
       {"of module b is dp_reshardable"}},
      {"a module that the checkpoint lacks",
       {two()[0]},
       job_of(two()),
       Code::kNotStored,
       {"the checkpoint has no module b, it has a", "name it among those that are added"}},
      {"a module that the job lacks",
       two(),
       job_of({two()[1]}),
       Code::kNotRequested,
       {"the checkpoint has a module a, this job has b", "name it among those that are dropped"}},
      {"a module of another model",
       two(),
       job_of({two()[0], module_on("b", "hybrid-tiny", "tp2")}),
       passed_on::kForeignCheckpoint,
       {"of the modules a (audio-tiny), b (language-tiny)", "b (hybrid-tiny)"}},
      {"another run's",
       two(),
       another_run(job_of(two())),
       passed_on::kForeignCheckpoint,
       {"of run 'run'", "this job is run 'another'"}},
      {"a job that is one model",
       two(),
       one_model("audio-tiny"),
       passed_on::kForeignCheckpoint,
       {}},
      {"one module with a name for a job that is one model",
       {two()[0]},
       one_model("audio-tiny"),
       passed_on::kForeignCheckpoint,
       {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    SimStore store;
    saved_on(store, job_of(row.from), 1);
    expect_refused(resumed_on(store, row.to, 0), row.code, row.says);
  }
}

TEST(ModulesRefused, a_stored_vocabulary_shorter_than_the_words_is_refused) {
  static std::int64_t rows = 0;
  JobPolicy policy;  // shortens tensors of 65 rows to `rows` rows before a save
  policy.saved = [](StateDict state) {
    for (auto& leaf : state.tensors) {
      if (leaf.shape.size() == 0 || leaf.shape[0] != 65) continue;
      leaf.shape[0] = rows;
      leaf.placed.reset();
      for (auto& piece : leaf.pieces) piece.box.extent[0] = rows;
    }
    return state;
  };
  const JobConfig config = job_of({module_on("lm", "language-tiny", "tp1")});
  for (const auto& [kept, taken] :
       {std::pair<std::int64_t, bool>{65, true}, {63, true}, {61, true}, {60, false}, {5, false}}) {
    for (const char* layout : {"tp1", "tp2"}) {
      SCOPED_TRACE(std::to_string(kept) + " rows, " + layout);
      rows = kept;
      SimStore store;
      const Life saved = saved_on(store, config, 2, {}, policy);
      ASSERT_TRUE(saved.ended_well()) << saved.why();
      const Life now = resumed_on(store, job_of({module_on("lm", "language-tiny", layout)}, 99), 0);
      EXPECT_EQ(now.ended_well(), taken);
      EXPECT_EQ(taken ? first_difference(now.state, saved.state) : "", "");
      for (const auto& error : now.errors) {
        ASSERT_EQ(error.has_value(), !taken);
        EXPECT_THAT(error ? error->what() : "mimo.lm.", HasSubstr("mimo.lm."));
      }
    }
  }
}

/// Follows the keys through nested dicts. Returns the entry found under the last key.
Value& entry_in(Value& root, const std::vector<std::string>& keys) {
  Value* value = &root;
  for (const auto& key : keys) {
    Dict& dict = *value->as<Dict>();
    value = &std::find_if(dict.begin(), dict.end(), [&](const auto& entry) {
               return entry.first == Value(key);
             })->second;
  }
  return *value;
}

TEST(ModulesRefused, shardings_in_the_common_state_are_read_and_cross_checked) {
  struct Row {
    std::string what;
    std::vector<std::string> entry;
    Value value;
    Code code;
    std::string says;
  };
  const std::vector<std::string> of_a = {"args", "modules", "a", "distrib_optim_sharding_type"};
  const std::vector<std::string> of_b = {"args", "modules", "b", "distrib_optim_sharding_type"};
  const std::vector<Row> rows = {
      {"one that the field has given up", of_b, "dp_zero_gather_scatter", Code::kUnsupported,
       "dp_zero_gather_scatter"},
      {"another", of_b, "fully_sharded_bucket_space", Code::kUnsupported,
       "fully_sharded_bucket_space"},
      {"one that nobody has", of_b, "fully_reshardible", Code::kUsage, "fully_reshardable"},
      {"none", of_b, NoneType{}, Code::kNotStored, "['b']"},
      {"the first module's is not that of the metadata", of_a, "fully_sharded_model_space",
       Code::kUnsupported, "names two shardings"},
      {"the metadata's is not the first module's",
       {"content_metadata", "distrib_optim_sharding_type"},
       "fsdp_dtensor",
       Code::kUnsupported,
       "names two shardings"},
      {"the second's is not that of its optimizer state", of_b, "fully_sharded_model_space",
       Code::kLayoutMismatch, "module b's optimizer state says that it is fully_reshardable"},
      {"no grid", {"args", "modules", "b", "ranks"}, 3, Code::kNotStored, "['b']"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    SimStore store;
    const JobConfig config = job_of(two());
    saved_on(store, config, 1);
    const Life now = live_on(store, config, [&row](const Seat& seat) {
      Value seen;
      LoadRequest request;
      const LoadOptions options{.directory = "run"};
      load(seat.ports, seat.job.world(), options, [&](const Candidate& offered) {
        seen = *offered.common;
        entry_in(seen, row.entry) = row.value;
        request = seat.job.load_request({.common = &seen, .catalog = &offered.catalog});
        return Wanted{&request.wanted, request.excused};
      });
      entry_in(request.wanted.common, row.entry) = row.value;
      seat.job.take(request.wanted);
    });
    ASSERT_TRUE(now.errors[0].has_value());
    for (const auto& error : now.errors) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->code(), row.code) << error->what();
    }
    EXPECT_THAT(now.errors[0]->message(), HasSubstr(row.says));
  }
}

TEST(ModulesRefused, a_rank_with_another_idea_of_a_modules_group_fails_all) {
  const JobConfig config =
      job_of({module_on("a", "audio-tiny", "tp2"), module_on("b", "audio-tiny", "tp2 dp2")});
  for (std::int32_t odd = 0; odd < 6; ++odd) {
    SCOPED_TRACE(odd);
    SimStore store;
    const Life life = live_on(store, config, [odd](const Seat& seat) {
      JobGroups given = seat.job.own_groups();
      if (seat.job.rank().value == odd) {
        auto members = given.front().tp->members();
        std::reverse(members.begin(), members.end());
        given.front().tp = Group(members);
      }
      seat.job.state(given);
    });
    expect_refused(life, Code::kLayoutMismatch, {odd < 2 ? "mimo.a.tp_group" : "mimo.b.tp_group"});
  }
}

TEST(ModulesRefused, groups_of_one_module_half_given_are_refused_by_all) {
  const JobConfig config = job_of(
      {module_on("a", "audio-tiny", "tp2", {0, 1}), module_on("b", "audio-tiny", "dp2", {0, 1})});
  SimStore store;
  const Life life = live_on(store, config, [](const Seat& seat) {
    JobGroups given = seat.job.own_groups();
    given[1].pp.reset();
    seat.job.state(given);
  });
  expect_refused(life, Code::kUsage, {"pp_group"});
}

}  // namespace
}  // namespace reprise::sim::modules_refused_test
