#pragma once
// Makes a report that uses every field and passes.

#include <limits>

#include "reports/report.hpp"

namespace reprise::reports {

inline const char* const kSampleCommit = "0123456789abcdef0123456789abcdef01234567";

/// Returns the result of a scenario with three ranks. The last rank owns nothing. If `cut_short` is
/// true, the last life has a fault.
inline ScenarioResult sample_scenario(const std::string& name, bool cut_short = false) {
  ScenarioResult result{.name = name,
                        .file = "scenarios/" + name + ".yaml",
                        .proves = "It \"proves\" something.\n",
                        .verdict = Verdict::kPass,
                        .code = "",
                        .reason = "",
                        .seconds = 0.1,
                        .event_hash = "00ff00ff00ff00ff",
                        .world = 4,
                        .layouts = {"tp2 dp2", "tp3"},
                        .peak_bytes = {.snapshot = 1, .stage = 2, .load = 3, .empty = 1},
                        .bound_bytes = BoundBytes{.stage = 2, .load = 4, .empty = 2},
                        .ranks = {},
                        .lives = {},
                        .replans = 4,
                        .diagnosis = "persistent_error",
                        .content_digest = "d1ge57",
                        .doubled = true,
                        .trajectory = {},
                        .first_difference = {},
                        .faults = {},
                        .replay = "reprise run " + name + ".yaml"};
  for (const std::int32_t rank : {0, 1}) {
    result.ranks.push_back({.rank = rank,
                            .loaded_step = 2,
                            .compared = cut_short ? 0U : 3U,
                            .elements = cut_short ? 0U : 100U});
  }
  result.ranks.push_back({.rank = 2, .loaded_step = 2, .owns = false});
  result.ranks[0].not_requested = {"optional"};
  result.ranks[0].not_stored = {"new"};
  result.ranks[0].excused = {"new", "optional"};
  result.lives = {{.layout = "tp2 dp2", .exit_code = 0, .first_step = 0, .last_step = 2},
                  {.layout = "tp3",
                   .outcome = cut_short ? LifeOutcome::kCutShort : LifeOutcome::kContinued,
                   .exit_code = cut_short ? 1 : 0,
                   .first_step = 2,
                   .last_step = 4}};
  result.trajectory = {{.step = 1,
                        .loss = 1.1,
                        .lr = 1e-3,
                        .loss_scale = 65536,
                        .uninterrupted_loss = 1.1,
                        .uninterrupted_lr = 1e-3,
                        .uninterrupted_loss_scale = 65536},
                       {.step = 2,
                        .loss = -0.0,
                        .lr = 0.1,
                        .loss_scale = 1,
                        .uninterrupted_loss = {},
                        .uninterrupted_lr = {}},
                       {.step = 3, .loss = 0.5, .lr = 0.1, .loss_scale = 1},
                       {.step = 4, .loss = 0.25, .lr = 0.1, .loss_scale = 1}};
  result.faults = {{.kind = "crash", .rank = 1, .armed = true, .reached = true, .fired = true}};
  return result;
}

inline void run_nothing_twice(Report& report) {
  for (auto& result : report.scenarios) result.doubled = false;
}

/// Makes the second run of a scenario take another course than the first.
inline void take_another_course(ScenarioResult& result) {
  result.doubled = true;
  result.verdict = Verdict::kFail;
  result.code = "NOT_DETERMINISTIC";
}

/// Returns the placement of a tensor of 6 x 4 that two ranks saved as rows and that four load as
/// columns.
inline TensorPlacement sample_placement(const std::string& key = "w",
                                        const std::string& layout = "tp2") {
  TensorCut saved{.life = 0, .layout = layout};
  for (const std::int32_t rank : {0, 1}) {
    saved.boxes.push_back({.offset = {3 * rank, 0}, .extent = {3, 4}, .ranks = {rank, rank + 2}});
  }
  TensorCut loaded{.life = 1, .layout = layout, .boxes_left_out = 1};
  for (const std::int32_t rank : {0, 1, 2}) {
    loaded.boxes.push_back({.offset = {0, rank}, .extent = {6, 1}, .ranks = {rank}});
  }
  return {
      .key = key, .shape = {6, 4}, .rank = 1, .index = {4, 1}, .saved = saved, .loaded = loaded};
}

/// Returns a report of four scenarios, two properties and two mutants. One scenario was skipped.
/// Everything else was run twice.
inline Report sample_report() {
  const ScenarioResult skipped{.name = "skipped",
                               .file = "scenarios/skipped.yaml",
                               .proves = "It proves something elsewhere.",
                               .verdict = Verdict::kNotRun,
                               .reason = "needs a GPU"};
  return {
      .project = {.commit = kSampleCommit, .dirty = false, .build = "Release GNU 12.2.0"},
      .lane = ReportLane::kSim,
      .machine = {.cpu = "a \xc3\xa9 cpu",
                  .memory = std::numeric_limits<std::uint64_t>::max(),
                  .gpus = {"one", "two"},
                  .mpi = "4.1",
                  .nccl = "2.2",
                  .cuda = "13"},
      .started = "2026-01-02T03:04:05Z",
      .seconds = 12.25,
      .verdict = Verdict::kPass,
      .scenarios = {sample_scenario("one"), sample_scenario("two"),
                    sample_scenario("cut-short", true), skipped},
      .planned = 4,
      .skipped = {{.scenario = "skipped", .reason = "needs a GPU"}},
      .properties = {{.name = "continuity",
                      .cases = 10,
                      .seed = std::numeric_limits<std::uint64_t>::max(),
                      .verdict = Verdict::kPass,
                      .counterexample = {},
                      .distribution = {{"dp", {{"1", 4}, {"2", 6}}}, {"tp", {{"1", 10}}}}},
                     {.name = "round-trip", .cases = 20, .verdict = Verdict::kPass}},
      .mutants = {{.name = "floor-vs-ceil-chunk",
                   .defect = "floor division",
                   .caught = true,
                   .caught_by = {{"one", "CHUNK_OVERLAP", "two ranks hold row 2"}}},
                  {.name = "stale-plan",
                   .defect = "a plan kept",
                   .caught = true,
                   .caught_by = {{"two", "ZERO_FILL", "zeros"},
                                 {.scenario = {},
                                  .verdict = "ZERO_FILL",
                                  .reason = "case 1 of seed 1: zeros",
                                  .property = "continuity"}},
                   .property_cases = 3}},
      .matrix = Matrix{.mutants = 2,
                       .scenarios = {"one", "two"},
                       .rows = {{.mutant = "floor-vs-ceil-chunk",
                                 .cells = "CC",
                                 .caught = {{"one", {"CHUNK_OVERLAP"}}, {"two", {"COVERAGE_GAP"}}}},
                                {.mutant = "stale-plan",
                                 .cells = "CC",
                                 .caught = {{"one", {"ZERO_FILL"}},
                                            {"two", {"BIT_MISMATCH", "ZERO_FILL"}}}}},
                       .left_out = {{"skipped", "not_run without a mutant: needs a GPU"}},
                       .codes = {"BIT_MISMATCH", "ZERO_FILL"}},
      .exhaustive = {Exhaustive{.model = "every-kind",
                                .sharding = "dp_reshardable",
                                .max_world = 2,
                                .layouts = 5,
                                .pairs = 25,
                                .of = 2,
                                .parts = {{.part = 1,
                                           .pairs = 15,
                                           .passed = 15,
                                           .refused = {{"LAYOUT_MISMATCH", 4}},
                                           .elements = 1000,
                                           .objects = 30,
                                           .seconds = 1.5},
                                          {.part = 2,
                                           .pairs = 10,
                                           .passed = 10,
                                           .elements = 900,
                                           .objects = 20,
                                           .seconds = 0.5}}},
                     Exhaustive{.model = "every-kind",
                                .sharding = "dp_reshardable",
                                .hsdp = true,
                                .max_world = 2,
                                .layouts = 6,
                                .pairs = 36,
                                .parts = {{.pairs = 36,
                                           .passed = 36,
                                           .elements = 500,
                                           .objects = 9,
                                           .seconds = 2}}}},
      .coverage = Coverage{.seed = 9,
                           .runs = 100,
                           .branches = 40,
                           .marks = {{"load: continued", 90}, {"load: refused", 2}},
                           .curve = {{10, 1, 4}, {100, 2, 30}},
                           .findings = {{.signature = "TORN_FILE: rank #",
                                         .code = "TORN_FILE",
                                         .reason = "rank 3",
                                         .count = 4,
                                         .at_run = 7,
                                         .recipe = "17/2:0:941",
                                         .file = "out/explored-1.yaml",
                                         .status = "resolved"}}},
      .not_claimed = {"lane gpu: not run here"}};
}

}  // namespace reprise::reports
