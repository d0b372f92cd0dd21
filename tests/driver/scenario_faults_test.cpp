// Tests the scenario language for faults, re-runs, caches and groups. Valid scenarios are read and
// written back; invalid ones are refused.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/run_plan.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;

/// Builds a scenario from parts that a test can replace.
struct Text {
  std::string job = "";
  std::string checkpoint = "{keep: 2}";
  std::string first = "";    ///< steps before the restart
  std::string restart = "";  ///< such as "on: other_device"
  std::string last = "";     ///< steps after the restart
  std::string expect = "";
  std::string each = "";

  operator std::string() const {  // NOLINT: used in place of a text
    return (each.empty() ? "" : "each: " + each + "\n") + "proves: something\njob: {" + job +
           "model: gpt-tiny, layout: {tp: 2, dp: 2}, optimizer: {kind: adam, sharding: "
           "fully_reshardable}}\ncheckpoint: " +
           checkpoint + "\nsteps:\n  - train: 2\n  - save\n" + first +
           "  - restart: {layout: tp2 dp2" + (restart.empty() ? "" : ", ") + restart + "}\n" +
           last + "  - train: 1\nexpect: {max_delta: 0" + (expect.empty() ? "" : ", ") + expect +
           "}\n";
  }
};

Scenario parsed(const Text& text) { return parse_scenario(text, "x.yaml"); }

TEST(ScenarioFaults, each_step_is_what_it_says) {
  const Scenario scenario = parsed({
      .first = "  - save: {no_optim: true, no_rng: true, kind: weights, fails: NO_SPACE}\n"
               "  - bad_result: {kind: persistent_error, ranks: [1, 3], fatal: false, call: 1}\n"
               "  - fault: {kind: crash, rank: 1, phase: commit, step: tracker, moment: before, "
               "nth: 2, fires: maybe}\n"
               "  - exits: {code: 16, saves: yes}\n"
               "  - damage: {what: payload, rank: 1, step: 2, byte: -8, bit: 3}\n"
               "  - damage: {what: metadata, cut: 7}\n"
               "  - damage: {what: tracker, remove: true}\n"
               "  - damage: {what: payload, from: 1, keys: mimo.}\n"
               "  - own_metadata\n"
               "  - reshard: {ranks: 3, writers: 2, fails: CHECKSUM}\n"
               "  - diff: {step: 2, with: 1, ignore: [a, b], says: not all compared}\n"
               "  - diff: {says: same}\n",
  });
  const std::vector<Action> right = {
      TrainAction{2},
      SaveAction{},
      SaveAction{false, false, CheckpointKind::kWeights, {Failing::How::kBy, Code::kNoSpace}},
      BadResultAction{sim::ResultFault::kPersistentError, {1, 3}, false, {}, 1, 0},
      FaultAction{sim::FaultKind::kCrash,
                  1,
                  "commit",
                  "tracker",
                  sim::FaultMoment::kBefore,
                  2,
                  {},
                  0,
                  0,
                  Fires::kMaybe},
      ExitAction{16, true},
      DamageAction{sim::FileKind::kPayload, 1, 2, -8, 3, {}, false},
      DamageAction{sim::FileKind::kMetadata, 0, {}, 0, 0, 7, false},
      DamageAction{sim::FileKind::kTracker, 0, {}, 0, 0, {}, true},
      DamageAction{.from = 1, .keys = "mimo."},
      OwnMetadataAction{},
      ReshardAction{3, 2, Code::kChecksum},
      DiffAction{2, 1, {"a", "b"}, DiffOutcome::kNotAllCompared},
      DiffAction{}};
  EXPECT_EQ(scenario.lives[0].actions, right);
}

TEST(ScenarioFaults, what_a_restart_does_not_name_stays_but_for_what_is_its_own) {
  const Scenario scenario =
      parsed({.job = "rerun: validate_results, ranks: [2, 3, 6, 7], groups: half, "
                     "fallback: allowed, run: first, skips: true, ",
              .restart = "on: other_device, adopts: [zeroth], run: second, fails: IO",
              .last = "  - restart: {rerun: disabled, ranks: []}\n"});
  const auto& [first, second, third] =
      std::tie(scenario.lives[0], scenario.lives[1], scenario.lives[2]);
  EXPECT_EQ(first.world_size(), 8);
  EXPECT_EQ(second.ranks, first.ranks);
  EXPECT_EQ(second.rerun, sim::RerunMode::kValidateResults);
  EXPECT_TRUE(second.other_device && second.skips);
  EXPECT_EQ(second.adopts, std::vector<std::string>{"zeroth"});
  EXPECT_EQ(second.fails, Code::kIo);
  EXPECT_EQ(third.run, "second");
  EXPECT_EQ(third.rerun, sim::RerunMode::kDisabled);
  EXPECT_EQ(third.world_size(), 4);
  EXPECT_FALSE(third.other_device);
  EXPECT_TRUE(third.adopts.empty() && !third.fails);
}

TEST(ScenarioFaults, what_is_expected_is_what_it_says) {
  const Scenario scenario =
      parsed({.checkpoint = "{assume_constant_structure: true, fall_back: newest_whole, "
                            "checksums: verified, keep: 3}",
              .expect = "outcome: [refused, continued], loaded_step: 2, diagnosis: none, "
                        "replans: 4, skipped: [3, 5], log: [a, b]"});
  EXPECT_TRUE(scenario.checkpoint.keeps_plan);
  EXPECT_TRUE(scenario.checkpoint.falls_back && scenario.checkpoint.checks);
  EXPECT_EQ(scenario.checkpoint.keep, 3);
  EXPECT_EQ(scenario.expect.outcomes,
            (std::vector<Outcome>{Outcome::kContinued, Outcome::kRefused}));
  EXPECT_EQ(scenario.expect.loaded_step, 2);
  EXPECT_EQ(scenario.expect.diagnosis, sim::RerunDiagnosis::kNone);
  EXPECT_EQ(scenario.expect.replans, 4U);
  EXPECT_EQ(scenario.expect.skipped, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(scenario.expect.log, (std::vector<std::string>{"a", "b"}));
}

TEST(ScenarioFaults, what_is_written_is_read_again) {
  const std::vector<Text> texts = {
      {.first = "  - save: {no_rng: true, kind: weights, fails: maybe}\n"
                "  - bad_result: {kind: transient_error, rank: 2, run: 1}\n"
                "  - exits: 17\n  - damage: {what: common, byte: 4}\n"},
      {.job = "rerun: unknown, rerun_samples: 2, ranks: [5, 1, 0, 2], run: a, ",
       .restart =
           "on: other_device, adopts: [b], groups: fallback, fallback: allowed, skips: true, "
           "lacks: [ep_group, pp_group], forbids: tp_group",
       .last = "  - fault: {kind: lost, rank: 5, phase: plan, moment: after, delay_ms: 3, "
               "fires: no}\n  - fault: {kind: flip_read, file: payload, bit: 9, phase: read}\n"},
      {.checkpoint = "{assume_constant_structure: true, fall_back: newest_whole, keep: 1, "
                     "checksums: verified, strictness: log_all}",
       .restart = "fails: CHECKSUM",
       .last = "  - restart\n",
       .expect = "outcome: [fell_back], loaded_step: 0, diagnosis: correct_result, replans: 0, "
                 "skipped: [], log: x"},
  };
  for (const auto& text : texts) {
    const Scenario scenario = parsed(text);
    const std::string written = to_yaml(scenario);
    EXPECT_EQ(parse_scenario(written, "x.yaml"), scenario) << written;
    EXPECT_EQ(to_yaml(parse_scenario(written, "x.yaml")), written);
  }
}

TEST(ScenarioFaults, mistakes_are_refused_with_what_may_have_been_meant) {
  struct Row {
    Text text;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{.job = "rerun: validate_result, "}, "did you mean 'validate_results'?"},
      {{.job = "ranks: [0, 1, 1, 2], "}, "distinct ranks"},
      {{.job = "ranks: [0, 1, 2], "}, "has 3 ranks for a layout of 4"},
      {{.job = "ranks: [0, 1, x, 2], "}, "whole numbers"},
      {{.job = "groups: explict, "}, "did you mean 'explicit'?"},
      {{.job = "skips: perhaps, "}, "true or false"},
      {{.job = "rerun_sample: 2, "}, "did you mean 'rerun_samples'?"},
      {{.checkpoint = "{keep: 0}"}, "from 1 to"},
      {{.checkpoint = "{fall_back: newest}"}, "newest_whole"},
      {{.checkpoint = "{manifst: true}"}, "unknown key"},
      {{.restart = "on: another_device"}, "did you mean 'other_device'?"},
      {{.restart = "fails: OOPS"}, "unknown code OOPS"},
      {{.restart = "nodes: 2"}, "unknown key"},
      {{.restart = "layout: tp4"}, "'layout' twice"},
      {{.first = "  - save: {no_optimizer: true}\n"}, "did you mean 'no_optim'?"},
      {{.first = "  - save: {kind: weight}\n"}, "did you mean 'weights'?"},
      {{.first = "  - save: {kind: x}\n"},
       "has the unknown value 'x' under 'kind'; available: training, weights"},
      {{.expect = "diagnosis: x"},
       "available: none, correct_result, transient_error, persistent_error"},
      {{.job = "lacks: x, "},
       "no group 'x'; there are: tp_group, pp_group, dp_cp_group, dp_group, expt_dp_group"},
      {{.restart = "forbids: [tp_group, x]"}, "no group 'x'; there are: tp_group"},
      {{.first = "  - save: {fails: never}\n"}, "'any' or 'maybe'"},
      {{.first = "  - bad_result: {rank: 1}\n"}, "lacks 'kind'"},
      {{.first = "  - bad_result: {kind: transient_eror}\n"}, "did you mean 'transient_error'?"},
      {{.first = "  - bad_result: {kind: transient_error, rank: 4}\n"},
       "at rank 4, which is not a member of this life's job; its members are 0 to 3"},
      {{.first = "  - bad_result: {kind: transient_error, ranks: []}\n"}, "names no rank"},
      {{.first = "  - bad_result: {kind: transient_error, rank: 1, ranks: [1]}\n"}, "both"},
      {{.first = "  - exits: 300\n"}, "from 0 to 255"},
      {{.first = "  - exits: {saves: yes}\n"}, "lacks 'code'"},
      {{.first = "  - exits: 16\n  - train: 1\n"}, "after the job has exited"},
      {{.first = "  - fault: {kind: crsh}\n"}, "did you mean 'crash'?"},
      {{.first = "  - fault: {kind: crash, phase: comit}\n"}, "did you mean 'commit'?"},
      {{.first = "  - fault: {kind: crash, phase: commit, step: trackr}\n"}, "'tracker'?"},
      {{.first = "  - fault: {kind: crash, moment: midway}\n"}, "available: before, during"},
      {{.first = "  - bad_result: {kind: transient_error, ranks: [0, -1]}\n"}, "at rank -1"},
      {{.first = "  - fault: {kind: crash, rank: 9, phase: plan}\n"},
       "at rank 9, which is not a member"},
      {{.first = "  - fault: {kind: write_error, phase: plan, moment: before}\n"}, "can't be"},
      {{.first = "  - damage: {what: payload}\n  - save\n"}, "must be the last steps"},
      {{.first = "  - own_metadata\n  - save\n"}, "must be the last steps"},
      {{.first = "  - diff: {says: same}\n  - save\n"}, "must be the last steps"},
      {{.first = "  - diff: {with: 1}\n"}, "lacks 'says'"},
      {{.first = "  - diff: {says: equal}\n"}, "available: same, different, not all compared"},
      {{.first = "  - reshard: {ranks: 0}\n"}, "from 1 to 4096"},
      {{.first = "  - reshard: {rank: 3}\n"}, "did you mean 'ranks'?"},
      {{.first = "  - save: {checksums: off}\n"}, "available: written, none"},
      {{.first = "  - damage: {what: payload, from: 1, cut: 3}\n"}, "give one"},
      {{.first = "  - damage: {what: metadata, from: 1}\n"}, "only payload has tensors"},
      {{.first = "  - damage: {what: payload, keys: w}\n"}, "no checkpoint that their tensors"},
      {{.first = "  - damage: {what: paylod}\n"}, "did you mean 'payload'?"},
      {{.first = "  - damage: {what: payload, cut: 3, byte: 1}\n"}, "give one"},
      {{.last = "  - damage: {what: payload}\n"}, "must be the last steps"},
      {{.restart = "fails: IO"}, "whose load must fail"},
      {{.expect = "outcome: [continued, lost]"}, "has the unknown value 'lost'"},
      {{.expect = "diagnosis: transient"}, "available: none"},
      {{.expect = "skipped: x"}, "whole numbers"},
      {{.expect = "replan: 1"}, "did you mean 'replans'?"},
  };
  for (const auto& row : rows) {
    const auto error = error_of([&] { parsed(row.text); });
    ASSERT_TRUE(error) << row.says;
    EXPECT_EQ(error->code(), Code::kUsage) << error->what();
    EXPECT_NE(std::string(error->what()).find(row.says), std::string::npos)
        << "wanted: " << row.says << "\ngot: " << error->what();
  }
}

// --- scenarios with a table ---------------------------------------------------------------------

std::vector<Scenario> table(const std::string& each, const Text& text) {
  Text whole = text;
  whole.each = each;
  return parse_scenarios(whole, "t.yaml");
}

TEST(ScenarioTable, words_stand_for_ranks_moments_phases_and_steps) {
  const Text fault{.first = "  - fault: {kind: crash, rank: $rank, phase: $phase, moment: $m}\n"};
  EXPECT_EQ(table("{rank: all, phase: all_of_save, m: all_moments}", fault).size(), 4U * 7U * 3U);
  EXPECT_EQ(table("{rank: all_ranks, phase: all_of_load, m: [after]}", fault).size(), 4U * 6U);
  const Text step{.first = "  - fault: {kind: crash, phase: commit, step: $s, moment: $moment}\n"};
  EXPECT_EQ(table("{s: all_of_commit, moment: all}", step).size(), 12U * 3U);
}

TEST(ScenarioTable, ranks_are_those_of_the_rows_own_layout) {
  const std::string text =
      "each: {save: [tp2, dp3], rank: all}\nproves: something\njob: {model: gpt-tiny, layout: "
      "$save, optimizer: {kind: adam, sharding: fully_reshardable}}\nsteps: [{train: 1}, save, "
      "{fault: {kind: crash, rank: $rank, phase: plan}}, restart]\nexpect: {max_delta: 0}\n";
  EXPECT_EQ(parse_scenarios(text, "t.yaml").size(), 5U);
  std::string swapped = text;
  swapped.replace(0, text.find('\n'), "each: {rank: all, save: [tp2, dp3]}");
  const auto error = error_of([&] { parse_scenarios(swapped, "t.yaml"); });
  ASSERT_TRUE(error) << "the rank comes before the layout that it depends on";
  EXPECT_NE(std::string(error->what()).find("$save"), std::string::npos) << error->what();
}

TEST(ScenarioTable, each_of_all_orders_has_a_next_one_cyclically) {
  const Text orders{.restart = "ranks: []",
                    .last =
                        "  - restart: {layout: {order: $order, tp: 2, dp: 2}}\n"
                        "  - restart: {layout: {order: $order.next, tp: 2, dp: 2}}\n"};
  const auto rows = table("{order: all_orders}", orders);
  ASSERT_EQ(rows.size(), 120U);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    seen.insert(rows[i].lives[2].layout.order);
    EXPECT_EQ(rows[i].lives[3].layout.order, rows[(i + 1) % rows.size()].lives[2].layout.order);
  }
  EXPECT_EQ(seen.size(), 120U);
}

TEST(ScenarioTable, a_sample_is_of_the_combinations_and_its_seed_decides_which) {
  const Text orders{.restart = "ranks: []",
                    .last =
                        "  - restart: {layout: {order: $a, tp: 2, dp: 2}}\n"
                        "  - restart: {layout: {order: $b, tp: 2, dp: 2}}\n"};
  const auto names = [&](const std::string& sample) {
    std::vector<std::string> all;
    for (const auto& row : table("{a: all_orders, b: all_orders, " + sample + "}", orders)) {
      all.push_back(row.row);
    }
    return all;
  };
  const auto seventh = names("sample: 40, seed: 7");
  EXPECT_EQ(seventh.size(), 40U);
  EXPECT_EQ(std::set<std::string>(seventh.begin(), seventh.end()).size(), 40U);
  EXPECT_EQ(names("sample: 40, seed: 7"), seventh);
  EXPECT_NE(names("sample: 40, seed: 8"), seventh);
}

TEST(ScenarioTable, wrong_words_and_samples_are_refused) {
  const Text train{.last = "  - train: $k\n"};
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"{k: all}", "list of values for 'k'"}, {"{k: [1, 2], sample: 2}", "that is all of them"},
      {"{k: [1, 2], seed: 2}", "no sample"},  {"{k: [1, 2], sample: 0}", "from 1 to"},
      {"{k: all_order}", "all_orders"},       {"{k: [1], j: all_orders}", "'j' that nothing uses"},
  };
  for (const auto& [each, says] : rows) {
    const auto error = error_of([&, &text = each] { table(text, train); });
    ASSERT_TRUE(error) << each;
    EXPECT_NE(std::string(error->what()).find(says), std::string::npos) << error->what();
  }
}

TEST(ScenarioFaults, steps_at_a_rank_outside_the_job_are_refused_by_line_and_rank) {
  const auto text_with = [](const std::string& step) {
    return "proves: nothing\n"
           "job: {model: gpt-tiny, layout: dp2, ranks: [1, 3], optimizer: {kind: adam, sharding: "
           "fully_reshardable}}\n"
           "steps:\n  - train: 1\n  - save\n" +
           step + "  - restart\n  - train: 1\nexpect: {max_delta: 0, against: uninterrupted}\n";
  };
  for (const char* step : {"  - fault: {kind: crash, rank: 2, phase: plan}\n",
                           "  - bad_result: {kind: transient_error, ranks: [1, 2]}\n",
                           "  - bad_result: {kind: transient_error, rank: 2}\n"}) {
    try {
      parse_scenario(text_with(step), "gaps.yaml");
      ADD_FAILURE() << step;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_EQ(error.code(), Code::kUsage);
      EXPECT_NE(said.find("rank 2, which is not a member"), std::string::npos) << said;
      EXPECT_NE(said.find("its members are 1, 3"), std::string::npos) << said;
      EXPECT_NE(said.find("gaps.yaml:6"), std::string::npos) << said;
    }
  }
  EXPECT_NO_THROW(
      parse_scenario(text_with("  - fault: {kind: crash, rank: 3, phase: plan}\n"), ""));
}

TEST(ScenarioFaults, counted_by_time_on_real_processes_are_not_run_there) {
  struct Row {
    const char* fault;
    const char* checkpoint;
    bool countable;
  };
  for (const Row& row :
       {Row{"{kind: crash, rank: 0, nth: 3}", "{}", false},
        Row{"{kind: crash, rank: 0, nth: 0}", "{}", true},
        Row{"{kind: crash, rank: 0, nth: 3, fires: maybe}", "{}", true},
        Row{"{kind: crash, rank: 0, nth: 3, file: payload}", "{}", true},
        Row{"{kind: write_error, rank: 0, nth: 3}", "{}", true},
        Row{"{kind: crash, rank: 0, phase: write, nth: 3}", "{}", true},
        Row{"{kind: crash, rank: 0, phase: write, nth: 3}", "{async: true}", false},
        Row{"{kind: crash, rank: 0, phase: commit, nth: 3}", "{async: true}", true},
        Row{"{kind: late, rank: 0, phase: vote, nth: 1, delay_ms: 5}", "{async: true}", false},
        Row{"{kind: flip_write, rank: 0, phase: write, nth: 3}", "{async: true}", true}}) {
    const Scenario scenario = parse_scenario(
        "proves: something\njob:\n  model: gpt-tiny\n  layout: {dp: 2}\n"
        "  optimizer: {kind: adam, sharding: fully_reshardable}\ncheckpoint: " +
            std::string(row.checkpoint) + "\nsteps:\n  - train: 1\n  - fault: " + row.fault +
            "\n  - save\n  - restart\n  - train: 1\n"
            "expect: {max_delta: 0, against: uninterrupted}\n",
        "f.yaml");
    EXPECT_EQ(!why_not_countable(scenario), row.countable) << row.fault << row.checkpoint;
  }
}

}  // namespace
}  // namespace reprise::driver
