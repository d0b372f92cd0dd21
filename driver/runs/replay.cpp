#include "driver/runs/replay.hpp"

#include "core/base/print.hpp"

namespace reprise::driver {
namespace {

void compare_text(const std::string& what, const std::string& then, const std::string& now,
                  std::vector<std::string>& found) {
  if (then == now) return;
  found.push_back(what + " was '" + then + "' and is '" + now + "'");
}

std::string text_of(const std::optional<RecordedDifference>& first) {
  if (!first) return "none";
  return "rank " + std::to_string(first->rank) + " " + first->key + "[" + join(first->index, ", ") +
         "] saved " + first->saved + ", loaded " + first->loaded;
}

}  // namespace

Recorded record_of(const reports::ScenarioResult& result, const LaneOptions& options,
                   const BuildInfo& build) {
  Recorded recorded;
  recorded.verdict = reports::name_of(result.verdict);
  recorded.code = result.code;
  if (result.first_difference) {
    const reports::FirstDifference& first = *result.first_difference;
    recorded.first_difference =
        RecordedDifference{first.rank, first.key, first.index, first.saved, first.loaded};
  }
  recorded.event_hash = result.event_hash;
  recorded.commit = std::string(build.commit) + (build.dirty ? "+" : "");
  recorded.build = std::string(build.build);
  recorded.mutant = options.mutant;
  recorded.seed = options.seed;
  return recorded;
}

ReplayFinding compare_replay(const Recorded& then, const Recorded& now) {
  ReplayFinding finding;
  compare_text("the verdict", then.verdict, now.verdict, finding.outcome);
  compare_text("the code", then.code, now.code, finding.outcome);
  compare_text("the first difference", text_of(then.first_difference),
               text_of(now.first_difference), finding.outcome);
  // A '+' marks a program built with uncommitted changes. Its commit does not identify it, so its
  // hashes can't be compared.
  finding.course_compared = !then.event_hash.empty() && !now.event_hash.empty() &&
                            then.commit == now.commit && then.build == now.build &&
                            !now.commit.ends_with('+');
  if (finding.course_compared && then.event_hash != now.event_hash) {
    finding.course = "the event hash was " + then.event_hash + " and is " + now.event_hash;
  }
  return finding;
}

}  // namespace reprise::driver
