#include "reports/compare/comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "reports/document.hpp"
#include "reports/evidence.hpp"
#include "reports/gate/demand.hpp"

namespace reprise::reports {
namespace {

/// A scenario, property or mutant, as far as its ending is concerned.
struct Ending {
  Verdict verdict = Verdict::kNotRun;
  std::string code = {};

  std::string text() const { return name_of(verdict) + (code.empty() ? "" : " " + code); }
};
using Endings = std::map<std::string, Ending>;

Endings endings_of_scenarios(const Report& report) {
  Endings endings;
  for (const auto& one : report.skipped) endings[one.scenario] = {};
  for (const auto& one : report.scenarios) endings[one.name] = {one.verdict, one.code};
  return endings;
}

Endings endings_of_properties(const Report& report) {
  Endings endings;
  for (const auto& one : report.properties) {
    endings["property " + one.name] = {one.verdict, {}};
  }
  return endings;
}

Endings endings_of_mutants(const Report& report) {
  Endings endings;
  for (const auto& one : report.mutants) {
    endings["mutant " + one.name] = {one.caught ? Verdict::kPass : Verdict::kFail, {}};
  }
  return endings;
}

/// Orders verdicts: the higher, the worse.
int badness(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return 0;
    case Verdict::kNotRun:
      return 1;
    case Verdict::kInconclusive:
      return 2;
    case Verdict::kFail:
      return 3;
  }
  return 3;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

/// Returns how much slower the machine was between the reports: the median ratio of the times of
/// scenarios that passed in both, if nearly all ratios are near it. Returns 1 if not.
double slowdown_of(const Report& before, const Report& now) {
  constexpr std::size_t kFewest = 10;       // fewer show no common factor
  constexpr double kShortest = 0.05;        // seconds; shorter times are noise
  constexpr double kLeast = 1.2;            // a smaller factor needs no explanation
  constexpr double kSpread = 1.5;           // how far from the median is near
  constexpr std::size_t kNearPercent = 85;  // how many are nearly all
  std::map<std::string, double> earlier;
  for (const auto& was : before.scenarios) {
    const bool counts = was.verdict == Verdict::kPass && was.seconds >= kShortest;
    if (counts) earlier[was.name] = was.seconds;
  }
  std::vector<double> ratios;
  for (const auto& is : now.scenarios) {
    const auto at = earlier.find(is.name);
    if (is.verdict != Verdict::kPass || at == earlier.end()) continue;
    ratios.push_back(is.seconds / at->second);
  }
  if (ratios.size() < kFewest) return 1;
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  const auto near = std::count_if(ratios.begin(), ratios.end(), [median](double ratio) {
    return ratio * kSpread >= median && ratio <= median * kSpread;
  });
  const bool most = static_cast<std::size_t>(near) * 100 >= ratios.size() * kNearPercent;
  return most && median >= kLeast ? median : 1;
}

/// Compares the parts of two reports, one kind of part at a time.
class PartComparer {
 public:
  PartComparer(const Report& before, const Report& now, ReportComparison& comparison)
      : before_(before), now_(now), comparison_(comparison) {}

  void endings(Endings (*of)(const Report&)) {
    const Endings before = of(before_);
    const Endings now = of(now_);
    for (const auto& [subject, was] : before) {
      const auto is = now.find(subject);
      if (is == now.end()) {
        add(Meaning::kWorse, "gone", subject, was.text(), "");
      } else {
        ending(subject, was, is->second);
      }
    }
    for (const auto& [subject, is] : now) {
      if (before.contains(subject)) continue;
      const bool bad = badness(is.verdict) > badness(Verdict::kNotRun);
      add(bad ? Meaning::kWorse : Meaning::kInformation, bad ? "new and failing" : "new", subject,
          "", is.text());
    }
  }

  /// Compares what scenarios that passed in both reports showed.
  void content(const SlowerLimits& limits) {
    std::map<std::string, const ScenarioResult*> earlier;
    for (const auto& was : before_.scenarios) earlier[was.name] = &was;
    for (const auto& is : now_.scenarios) {
      const auto at = earlier.find(is.name);
      if (at == earlier.end()) continue;
      const ScenarioResult& was = *at->second;
      if (was.verdict != Verdict::kPass || is.verdict != Verdict::kPass) continue;
      const Compared had = compared_of(was);
      const Compared has = compared_of(is);
      count("elements", is.name, had.elements, has.elements);
      count("tensors and objects", is.name, had.leaves, has.leaves);
      // A lane without event hashes does not repeat its course.
      const bool repeats = !was.event_hash.empty();
      value("other course", is.name, course_of(was), course_of(is), repeats);
      // Every lane ends with the same content, but where a save was left to time.
      const bool timed = was.left_to_time || is.left_to_time;
      value("different content digest", is.name, was.content_digest, is.content_digest, !timed);
      value("different event hash", is.name, was.event_hash, is.event_hash, repeats);
      slower(is.name, was.seconds, is.seconds, limits);
    }
  }

  /// Tells that all scenarios are slower alike.
  void speed() {
    if (comparison_.slowdown == 1) return;
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.1f times", comparison_.slowdown);
    add(Meaning::kInformation, "slower machine", "the machine", "", factor);
  }

  /// Compares evidence of which whoever runs the program chooses the amount.
  void amounts() {
    for (const auto& was : before_.properties) {
      for (const auto& is : now_.properties) {
        const bool counts = is.name == was.name && is.verdict == Verdict::kPass;
        if (counts) chosen("cases", "property " + is.name, was.cases, is.cases);
      }
    }
    chosen("doubled runs", "determinism", runs_doubled(before_), runs_doubled(now_));
    fewer_is_better("doubled runs that differ", "determinism", determinism_mismatches(before_),
                    determinism_mismatches(now_));
    const LaneFloor was = floor_of(before_);
    const LaneFloor is = floor_of(now_);
    pairs(was, is);
    chosen("timelines", "coverage", was.timelines, is.timelines);
    names("mark", "coverage", was.marks, is.marks);
    names("mutant caught", "matrix", was.matrix, is.matrix);
    chosen("scenarios", "matrix", was.matrix_scenarios, is.matrix_scenarios);
    findings();
  }

  /// Compares what is said of the whole report.
  void whole() {
    ending("the report", {before_.verdict, {}}, {now_.verdict, {}});
    const Verdict found = overall(now_);
    if (found != now_.verdict) {
      add(Meaning::kWorse, "contradicts its own entries", "the report", name_of(found),
          name_of(now_.verdict));
    }
    unsupported();
    for (const auto& name : named_twice(before_)) {
      add(Meaning::kWorse, "occurs in the older report twice", name, "", "");
    }
    for (const auto& name : named_twice(now_)) {
      add(Meaning::kWorse, "occurs in the report twice", name, "", "");
    }
    if (now_.mutant != before_.mutant) {
      add(now_.mutant.empty() ? Meaning::kBetter : Meaning::kWorse, "switched on a mutant",
          "the report", before_.mutant, now_.mutant);
    }
    if (now_.interrupted && !before_.interrupted) {
      add(Meaning::kWorse, "was interrupted", "the report", "", "interrupted");
    }
  }

 private:
  void add(Meaning meaning, std::string what, std::string subject, std::string before,
           std::string now) {
    comparison_.changes.push_back(
        {meaning, std::move(what), std::move(subject), std::move(before), std::move(now)});
  }

  void ending(const std::string& subject, const Ending& was, const Ending& is) {
    if (was.text() == is.text()) return;
    const auto told = [&](Meaning meaning, const char* what) {
      add(meaning, what, subject, was.text(), is.text());
    };
    const bool ran = was.verdict != Verdict::kNotRun;
    if (is.verdict == Verdict::kNotRun) return told(Meaning::kWorse, "no longer run");
    if (is.verdict == Verdict::kPass && was.verdict == Verdict::kPass) return;
    if (is.verdict == Verdict::kPass) return told(Meaning::kBetter, ran ? "mended" : "now run");
    if (badness(is.verdict) > badness(was.verdict)) return told(Meaning::kWorse, "newly failing");
    const bool other_failure = is.verdict == Verdict::kFail;  // then it failed before, too
    told(other_failure ? Meaning::kWorse : Meaning::kInformation, "ends otherwise");
  }

  /// A pass that its own entry contradicts got worse, unless it was already so.
  void unsupported() {
    std::set<std::string> passed;
    for (const auto& one : now_.scenarios) {
      if (one.verdict == Verdict::kPass) passed.insert(one.name);
    }
    std::set<std::pair<std::string, std::string>> before;
    for (const auto& refusal : check_evidence(before_))
      before.insert({refusal.subject, refusal.reason});
    for (const auto& refusal : check_evidence(now_)) {
      if (!passed.contains(refusal.subject)) continue;
      if (before.contains({refusal.subject, refusal.reason})) continue;
      add(Meaning::kWorse, "contradicts its own entries", refusal.subject, "", refusal.reason);
    }
  }

  /// Compares a value that one program repeats with one seed, if `repeats` is true.
  void value(const std::string& what, const std::string& subject, const std::string& was,
             const std::string& is, bool repeats) {
    if (was == is) return;
    const bool strict = repeats && comparison_.same_program;
    add(strict ? Meaning::kWorse : Meaning::kInformation, what, subject, was, is);
  }

  void count(const std::string& noun, const std::string& subject, std::uint64_t was,
             std::uint64_t is) {
    if (was == is) return;
    const bool worse = is < was || comparison_.same_program;
    add(worse ? Meaning::kWorse : Meaning::kInformation, (is < was ? "fewer " : "more ") + noun,
        subject, std::to_string(was), std::to_string(is));
  }

  /// Compares an amount that whoever runs the program chooses.
  void chosen(const std::string& noun, const std::string& subject, std::uint64_t was,
              std::uint64_t is) {
    if (was == is) return;
    add(is < was ? Meaning::kWorse : Meaning::kInformation, (is < was ? "fewer " : "more ") + noun,
        subject, std::to_string(was), std::to_string(is));
  }

  void fewer_is_better(const std::string& noun, const std::string& subject, std::uint64_t was,
                       std::uint64_t is) {
    if (was == is) return;
    add(is > was ? Meaning::kWorse : Meaning::kBetter, (is < was ? "fewer " : "more ") + noun,
        subject, std::to_string(was), std::to_string(is));
  }

  /// Compares sets of names. A name that is gone is worse.
  void names(const std::string& noun, const std::string& part, const std::set<std::string>& was,
             const std::set<std::string>& is) {
    for (const auto& name : was) {
      if (!is.contains(name)) add(Meaning::kWorse, "lost " + noun, part + ": " + name, name, "");
    }
    for (const auto& name : is) {
      if (!was.contains(name))
        add(Meaning::kBetter, "gained " + noun, part + ": " + name, "", name);
    }
  }

  void pairs(const LaneFloor& was, const LaneFloor& is) {
    std::set<std::string> spaces;
    for (const auto& [space, passed] : was.exhaustive) spaces.insert(space);
    for (const auto& [space, passed] : is.exhaustive) spaces.insert(space);
    const auto passed_in = [](const LaneFloor& lane, const std::string& space) {
      const auto at = lane.exhaustive.find(space);
      return at == lane.exhaustive.end() ? 0 : at->second;
    };
    for (const auto& space : spaces) {
      chosen("pairs passed", "exhaustive " + space, passed_in(was, space), passed_in(is, space));
    }
  }

  /// A search that was not made again shows nothing of the findings of the one before it.
  void findings() {
    const auto was = open_findings(before_);
    const auto is = open_findings(now_);
    for (const auto& finding : is) {
      if (!was.contains(finding))
        add(Meaning::kWorse, "new finding", "coverage: " + finding, "", finding);
    }
    for (const auto& finding : was) {
      if (is.contains(finding) || !now_.coverage) continue;
      add(Meaning::kBetter, "finding not seen", "coverage: " + finding, finding, "");
    }
  }

  void slower(const std::string& subject, double was, double is, const SlowerLimits& limits) {
    const double due = was * comparison_.slowdown;
    if (!(is > due * limits.ratio && is - due > limits.seconds)) return;
    add(comparison_.same_machine ? Meaning::kWorse : Meaning::kInformation, "slower", subject,
        seconds_text(was), seconds_text(is));
  }

  static std::set<std::string> open_findings(const Report& report) {
    std::set<std::string> open;
    if (!report.coverage) return open;
    for (const auto& finding : report.coverage->findings) {
      if (finding.status != "resolved") open.insert(finding.signature);
    }
    return open;
  }

  static std::vector<std::string> named_twice(const Report& report) {
    std::set<std::string> seen;
    std::vector<std::string> twice;
    const auto note = [&](const std::string& name) {
      if (!seen.insert(name).second) twice.push_back(name);
    };
    for (const auto& one : report.scenarios) note(one.name);
    for (const auto& one : report.properties) note("property " + one.name);
    for (const auto& one : report.mutants) note("mutant " + one.name);
    return twice;
  }

  const Report& before_;
  const Report& now_;
  ReportComparison& comparison_;
};

bool same_program(const Report& before, const Report& now) {
  const bool known =
      before.project.commit.find_first_not_of("0123456789abcdef") == std::string::npos &&
      !before.project.commit.empty();
  return known && !before.project.dirty && !now.project.dirty &&
         before.project.commit == now.project.commit && before.project.build == now.project.build &&
         before.seed == now.seed;
}

bool same_machine(const Machine& one, const Machine& other) {
  return one.cpu == other.cpu && one.memory == other.memory && one.gpus == other.gpus;
}

}  // namespace

std::string name_of(Meaning meaning) {
  switch (meaning) {
    case Meaning::kWorse:
      return "worse";
    case Meaning::kBetter:
      return "better";
    case Meaning::kInformation:
      return "information";
  }
  return "information";
}

std::size_t ReportComparison::count(Meaning meaning) const {
  return static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(),
                    [meaning](const auto& change) { return change.meaning == meaning; }));
}

ReportComparison compare_reports(const Report& before, const Report& now,
                                 const SlowerLimits& limits) {
  ReportComparison comparison{.same_program = same_program(before, now),
                              .same_machine = same_machine(before.machine, now.machine),
                              .slowdown = slowdown_of(before, now),
                              .changes = {}};
  PartComparer comparer(before, now, comparison);
  comparer.whole();
  comparer.endings(endings_of_scenarios);
  comparer.speed();
  comparer.content(limits);
  comparer.endings(endings_of_properties);
  comparer.endings(endings_of_mutants);
  comparer.amounts();
  std::stable_sort(comparison.changes.begin(), comparison.changes.end(),
                   [](const auto& one, const auto& other) { return one.meaning < other.meaning; });
  return comparison;
}

nlohmann::json to_json_value(const ReportChange& change) {
  return {{"meaning", name_of(change.meaning)},
          {"what", change.what},
          {"subject", change.subject},
          {"before", change.before},
          {"now", change.now}};
}

std::string to_json(const ReportComparison& comparison) {
  nlohmann::json document = {{"same_machine", comparison.same_machine},
                             {"slowdown", comparison.slowdown},
                             {"same_program", comparison.same_program},
                             {"changes", nlohmann::json::array()}};
  for (const Meaning meaning : {Meaning::kWorse, Meaning::kBetter, Meaning::kInformation}) {
    document[name_of(meaning)] = comparison.count(meaning);
  }
  for (const auto& change : comparison.changes) {
    document["changes"].push_back(to_json_value(change));
  }
  return text_of(document);
}

}  // namespace reprise::reports
