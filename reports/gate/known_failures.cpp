#include "reports/gate/known_failures.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include "properties/finding_code.hpp"

namespace reprise::reports {
namespace {

using Kind = KnownFailure::Kind;

constexpr const char* kRemoveEntry = "remove the entry from the policy";

/// The state in which the report shows what an entry names.
struct Shown {
  std::size_t times = 0;
  Verdict verdict = Verdict::kNotRun;
  std::string code;
};

/// Returns the code of a property that failed. In reports of versions that did not write it, the
/// smallest case is a scenario that proves "Once CODE: what must hold."; empty if it does not say
/// so.
std::string code_of(const PropertyResult& property) {
  if (!property.code.empty()) return property.code;
  const std::string text = property.counterexample.value_or("");
  const std::string before = "Once ";
  const auto proves = text.find("proves:");
  const auto begin = proves == std::string::npos ? proves : text.find(before, proves);
  if (begin == std::string::npos) return "";
  const std::string rest = text.substr(begin + before.size());
  std::string code = rest.substr(0, rest.find(':'));
  return finding_code_named(code) ? code : "";
}

Shown shown_of(const KnownFailure& known, const Report& report) {
  Shown shown;
  const auto add = [&](const std::string& name, Verdict verdict, const std::string& code) {
    if (name == known.name) shown = {shown.times + 1, verdict, code};
  };
  switch (known.kind) {
    case Kind::kScenario:
      for (const auto& one : report.scenarios) add(one.name, one.verdict, one.code);
      break;
    case Kind::kProperty:
      for (const auto& one : report.properties) add(one.name, one.verdict, code_of(one));
      break;
    case Kind::kMutant: {
      const std::string code = judge_mutants(report.mutants).code;
      for (const auto& one : report.mutants) {
        const bool caught = one.caught || !one.caught_by.empty();
        add(one.name, caught ? Verdict::kPass : Verdict::kFail, code);
      }
      break;
    }
  }
  return shown;
}

struct Objection {
  std::string reason;
  std::string fix;
};

/// Returns why the entry is not accepted; empty if it is.
std::optional<Objection> objection_to(const KnownFailure& known, const Shown& shown, Date today) {
  if (shown.times == 0) {
    return Objection{"matches nothing: the report of lane " + name_of(known.lane) +
                         " has no such " + name_of(known.kind),
                     "correct the name, or " + std::string(kRemoveEntry)};
  }
  if (shown.times > 1) {
    return Objection{"occurs in the report " + std::to_string(shown.times) + " times",
                     "write the report again by a run"};
  }
  if (shown.verdict == Verdict::kPass) return Objection{"passes now", kRemoveEntry};
  if (shown.verdict == Verdict::kNotRun) {
    return Objection{"was not run, so it is unknown whether it still fails",
                     "run it, or " + std::string(kRemoveEntry)};
  }
  if (shown.code != known.code) {
    return Objection{"fails with " + (shown.code.empty() ? "no code" : shown.code) +
                         ", but the known code is " + known.code,
                     "investigate it: this is a different failure"};
  }
  if (today > known.expires) {
    return Objection{"expired on " + to_text(known.expires) + ", and today is " + to_text(today),
                     "repair it, or let its owner (" + known.owner + ") set another date"};
  }
  return std::nullopt;
}

void lower(std::uint64_t& count) {
  if (count > 0) --count;
}

/// Takes what is known to fail out of the demand. A scenario goes together with its doubled run.
void take_out(const KnownFailure& known, LaneFloor& floor) {
  switch (known.kind) {
    case Kind::kScenario:
      if (floor.scenarios.empty()) {
        lower(floor.unnamed.scenarios);
      } else if (floor.scenarios.erase(known.name) == 0) {
        break;
      }
      lower(floor.runs_doubled);
      break;
    case Kind::kProperty:
      floor.properties.erase(known.name);
      break;
    case Kind::kMutant:
      floor.mutants.erase(known.name);
      break;
  }
}

void take_out(const KnownFailure& known, Report& report) {
  switch (known.kind) {
    case Kind::kScenario:
      std::erase_if(report.scenarios, [&known](const auto& one) { return one.name == known.name; });
      lower(report.planned);
      break;
    case Kind::kProperty:
      // Stays in the report without its failure, so that its counts are still checked.
      for (auto& property : report.properties) {
        if (property.name != known.name) continue;
        property.verdict = Verdict::kPass;
        property.counterexample.reset();
        property.code.clear();
      }
      break;
    case Kind::kMutant:
      std::erase_if(report.mutants, [&known](const auto& one) { return one.name == known.name; });
      break;
  }
}

/// Settles the entries of one lane.
class LaneFailures {
 public:
  LaneFailures(std::span<const KnownFailure> failures, Date today, KnownFailuresApplied& applied)
      : failures_(failures), today_(today), applied_(applied) {}

  void apply(ReportLane lane) {
    auto& submissions = applied_.submissions;
    const auto submission = std::find_if(
        submissions.begin(), submissions.end(),
        [lane](const Submission& one) { return one.report && one.report->lane == lane; });
    if (submission == submissions.end()) {
      // A report that can't be read is one reason already, and may be of this lane.
      if (std::any_of(submissions.begin(), submissions.end(),
                      [](const Submission& one) { return !one.report; })) {
        return;
      }
      for (const auto& known : failures_) {
        if (known.lane != lane) continue;
        refuse(known, {"matches nothing: no report of lane " + name_of(lane) + " was given",
                       "give one, or " + std::string(kRemoveEntry)});
      }
      return;
    }
    const Report original = *submission->report;
    const bool consistent = original.verdict == overall(original);
    std::set<std::pair<Kind, std::string>> subjects;
    for (const auto& known : failures_) {
      if (known.lane != lane) continue;
      const bool first = subjects.insert({known.kind, known.name}).second;
      const auto objection =
          first ? objection_to(known, shown_of(known, original), today_)
                : std::optional(Objection{"is already covered by an earlier entry", kRemoveEntry});
      if (objection) refuse(known, *objection);
      if (objection || !consistent) continue;
      take_out(known, *submission->report);
      for (auto& demand : applied_.demands) {
        const auto floor = demand.lanes.find(lane);
        if (floor != demand.lanes.end()) take_out(known, floor->second);
      }
      applied_.accepted.push_back({submission->file, known});
    }
    if (consistent) submission->report->verdict = overall(*submission->report);
  }

 private:
  void refuse(const KnownFailure& known, const Objection& objection) {
    const std::string kind = known.kind == Kind::kScenario ? "" : name_of(known.kind) + " ";
    applied_.refusals.push_back(
        {known.place, "known failure " + kind + known.name, objection.reason, objection.fix});
  }

  std::span<const KnownFailure> failures_;
  Date today_;
  KnownFailuresApplied& applied_;
};

}  // namespace

std::optional<Date> date_named(std::string_view text) {
  // Written as YYYY-MM-DD, every digit of it.
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto number = [text](std::size_t begin, std::size_t size) {
    unsigned value = 0;
    const char* const end = text.data() + begin + size;
    const auto read = std::from_chars(text.data() + begin, end, value);
    return read.ptr == end && read.ec == std::errc{} ? std::optional(value) : std::nullopt;
  };
  const auto year = number(0, 4);
  const auto month = number(5, 2);
  const auto day = number(8, 2);
  if (!year || !month || !day) return std::nullopt;
  const Date date(std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month),
                  std::chrono::day(*day));
  return date.ok() ? std::optional(date) : std::nullopt;
}

std::string to_text(Date date) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text.data();
}

Words words_of(KnownFailure::Kind) {
  static constexpr std::array<std::string_view, 3> kWords = {"scenario", "property", "mutant"};
  return {"a kind of known failure", "kinds", kWords};
}

KnownFailuresApplied apply_known_failures(std::span<const Submission> submissions,
                                          std::span<const Demand> demands, Date today) {
  KnownFailuresApplied applied{.submissions = {submissions.begin(), submissions.end()},
                               .demands = {demands.begin(), demands.end()},
                               .accepted = {},
                               .refusals = {}};
  std::vector<KnownFailure> failures;
  for (const auto& demand : demands) {
    failures.insert(failures.end(), demand.known_failures.begin(), demand.known_failures.end());
  }
  std::set<ReportLane> lanes;
  for (const auto& known : failures) lanes.insert(known.lane);
  for (const ReportLane lane : lanes) LaneFailures(failures, today, applied).apply(lane);
  return applied;
}

}  // namespace reprise::reports
