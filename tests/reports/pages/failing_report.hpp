#pragma once
// Makes a report that fails in every way that a page shows, with a text of the caller's choice in
// every field that holds text.

#include <limits>

#include "reports/report.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {

/// A life in which rank 1 dies in a commit, and rank 0 waits for it. Rank 2 is left out.
inline Timeline failing_timeline(const std::string& text) {
  using enum TimelineKind;
  return {.life = 1,
          .ranks = {{0, text}, {1, text}},
          .ranks_left_out = 1,
          .events =
              {{.kind = kPhase, .name = text, .ranks = {{0, 1000}}, .end_ns = 9000},
               {.kind = kStep, .name = text, .detail = text, .ranks = {{0, 2000}}, .end_ns = 4000},
               {.kind = kStore, .name = text, .detail = text, .ranks = {{1, 2000}}, .end_ns = 5000},
               {.kind = kCollective, .name = text, .ranks = {{0, 5000}, {1, 6000}}, .end_ns = 7000},
               {.kind = kCommit, .name = text, .ranks = {{0, 8000}}, .end_ns = 8000},
               {.kind = kFault, .name = text, .detail = text, .ranks = {{1, 8500}}, .end_ns = 8500},
               {.kind = kEnd, .name = text, .detail = text, .ranks = {{1, 8500}}, .end_ns = 8500},
               {.kind = kCollective,
                .name = text,
                .detail = text,
                .ranks = {{0, 9000}},
                .end_ns = 60'000'009'000,
                .missing = {1},
                .cut = true}},
          .events_left_out = 5};
}

inline ScenarioResult failing_scenario(const std::string& text, Verdict verdict) {
  RankResult good{.rank = 0, .loaded_step = 2, .compared = 3, .elements = 10};
  RankResult bad{.rank = 1,
                 .loaded_step = 2,
                 .compared = 3,
                 .elements = 10,
                 .max_delta = 0.5,
                 .bit_mismatches = 7,
                 .not_stored = {text, text + " excused"},
                 .not_requested = {text},
                 .excused = {text + " excused"},
                 .shape_mismatches = {text},
                 .dtype_mismatches = {text}};
  return {
      .name = text,
      .file = text,
      .proves = text,
      .verdict = verdict,
      .code = text,
      .reason = text,
      .seconds = 0.5,
      .event_hash = text,
      .world = 2,
      .layouts = {text, text},
      .ranks = {good, bad},
      .lives = {{.layout = text, .last_step = 2},
                {.layout = text,
                 .outcome = LifeOutcome::kFailed,
                 .code = text,
                 .exit_code = 1,
                 .first_step = 2,
                 .last_step = 4}},
      .diagnosis = text,
      .content_digest = text,
      .trajectory = {{.step = 1, .loss = 2, .uninterrupted_loss = 2},
                     {.step = 2, .loss = 2.5, .uninterrupted_loss = 2.25},
                     {.step = 3,
                      .loss = std::numeric_limits<double>::quiet_NaN(),
                      .uninterrupted_loss = 2.125}},
      .first_difference = FirstDifference{.rank = 1,
                                          .key = text,
                                          .index = {2, 3},
                                          .saved = text,
                                          .loaded = text,
                                          .comes_from = text},
      .failure = Failure{.cause = text,
                         .life = 1,
                         .layout = text,
                         .step = 3,
                         .phase = text,
                         .rank = 1,
                         .coordinates = text,
                         .key = text,
                         .index = {2, 3},
                         .saved = text,
                         .loaded = text,
                         .comes_from = text,
                         .consequences = {{.life = 1, .ranks = {0}, .code = text, .text = text}},
                         .consequences_left_out = 2,
                         .wrong_keys = WrongKeys{.life = 1,
                                                 .keys = {{text, text, {0, 1}}, {text, "B", {1}}},
                                                 .left_out = 3},
                         .placement = sample_placement(text, text),
                         .timeline = failing_timeline(text)},
      .generations = {{.step = 2, .life = 0, .state = "kept", .loaded_by = {1}},
                      {.step = 4, .life = 0, .state = "damaged", .skipped_by = {1}}},
      .faults = {{.kind = text, .rank = 1, .armed = true, .reached = true, .fired = true},
                 {.kind = text, .rank = 0}},
      .replay = text};
}

/// Returns a report whose texts are all equal, so names that should differ do not.
inline Report failing_report(const std::string& text) {
  ScenarioResult not_run{.name = text, .file = text, .verdict = Verdict::kNotRun, .reason = text};
  return {
      .project = {.commit = text, .dirty = true, .build = text},
      .lane = ReportLane::kSim,
      .machine = {.cpu = text, .gpus = {text}, .mpi = text, .nccl = text, .cuda = text},
      .started = text,
      .seconds = 3,
      .mutant = text,
      .interrupted = true,
      .verdict = Verdict::kFail,
      .scenarios = {failing_scenario(text, Verdict::kInconclusive),
                    failing_scenario(text, Verdict::kFail), not_run},
      .planned = 3,
      .skipped = {{.scenario = text, .reason = text}},
      .properties = {{.name = text, .verdict = Verdict::kFail, .counterexample = text}},
      .mutants = {{.name = text, .defect = text},
                  {.name = text,
                   .defect = text,
                   .caught = true,
                   .caught_by = {{.scenario = text, .verdict = text, .reason = text},
                                 {.verdict = text, .reason = text, .property = text}}}},
      .matrix = Matrix{.mutants = 2,
                       .scenarios = {"a/" + text, "b/" + text},
                       .rows = {{.mutant = text, .cells = "Cp", .caught = {{"a/" + text, {text}}}},
                                {.mutant = text, .cells = "np"}},
                       .left_out = {{text, text}},
                       .codes = {text}},
      .exhaustive = {Exhaustive{.model = text,
                                .sharding = text,
                                .max_world = 2,
                                .layouts = 2,
                                .pairs = 4,
                                .parts = {{.pairs = 4,
                                           .passed = 3,
                                           .refused = {{text, 1}},
                                           .wrong = 1,
                                           .first_wrong = text}}}},
      .coverage = Coverage{.runs = 20,
                           .marks = {{text, 20}, {text, 2}, {text, 0}},
                           .curve = {{1, 1, 2}, {20, 2, 9}},
                           .findings = {{.signature = text,
                                         .code = text,
                                         .reason = text,
                                         .count = 1,
                                         .at_run = 3,
                                         .recipe = text,
                                         .file = text,
                                         .status = text}}},
      .not_claimed = {text}};
}

/// What a key of a checkpoint may look like if somebody means harm.
inline const char* const kAwkward =
    "<b onclick=\"x\">'&|`*_[a](b)\\ ::error::\r%0A ]]> --> </script></svg>{{x}}~#@~$1$\x1b\xff";

}  // namespace reprise::reports
