#include "reports/shards.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/base/print.hpp"
#include "reports/report.hpp"
#include "reprise/error.hpp"

namespace reprise::reports {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(Code::kUsage, why, {.file = file});
}

std::string run_of(const Report& report) {
  return "lane " + name_of(report.lane) + ", commit " + report.project.commit + ", " +
         report.project.build + ", seed " + std::to_string(report.seed) +
         (report.mutant.empty() ? "" : ", mutant " + report.mutant);
}

void require_one_run(const std::vector<NamedReport>& reports) {
  const std::string first = run_of(*reports.front().report);
  for (const auto& [file, report] : reports) {
    if (run_of(*report) == first) continue;
    refuse(file, "it is of " + run_of(*report) + ", but " + reports.front().file + " is of " +
                     first + "; merge reports of one run alone");
  }
}

std::optional<Shard> shard_of(const Report& report, const std::string& work) {
  const auto found = std::ranges::find(report.shards, work, &Shard::work);
  if (found == report.shards.end()) return std::nullopt;
  return *found;
}

/// Returns the reports that share the work, in the order of their shards; none if it is not shared.
std::vector<const Report*> sharing(const std::vector<NamedReport>& reports,
                                   const std::string& work) {
  std::map<std::uint64_t, const NamedReport*> by_number;
  std::optional<Shard> first;
  for (const auto& one : reports) {
    const auto shard = shard_of(*one.report, work);
    if (!shard) continue;
    if (!first) first = shard;
    if (shard->of != first->of || shard->whole != first->whole) {
      refuse(one.file, "it has shard " + std::to_string(shard->number) + " of " +
                           std::to_string(shard->of) + " of " + std::to_string(shard->whole) + " " +
                           work + ", but another report's shards are " + std::to_string(first->of) +
                           " of " + std::to_string(first->whole));
    }
    const auto [at, added] = by_number.emplace(shard->number, &one);
    if (added) continue;
    refuse(one.file, "it has shard " + std::to_string(shard->number) + " of the " + work +
                         ", which " + at->second->file + " has, too");
  }
  std::vector<const Report*> sharers;
  std::vector<std::string> missing;
  for (std::uint64_t number = 1; first && number <= first->of; ++number) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) {
      missing.push_back(std::to_string(number));
    } else {
      sharers.push_back(found->second->report);
    }
  }
  if (missing.empty()) return sharers;
  refuse("", work + ": of " + counted(first->of, "shard") +
                 " these are missing: " + join(missing, ", ") + "; give their reports, too");
}

/// Adds the entries of all reports, those of shared work in turns. Entry N of the whole work is in
/// shard N modulo the number of shards.
template <class Entry>
void add_all(const std::vector<NamedReport>& reports, const std::string& work,
             std::vector<Entry> Report::*entries, std::vector<Entry>& all) {
  const auto sharers = sharing(reports, work);
  std::size_t longest = 0;
  for (const auto* sharer : sharers) longest = std::max(longest, (sharer->*entries).size());
  for (std::size_t turn = 0; turn < longest; ++turn) {
    for (const auto* sharer : sharers) {
      if (turn < (sharer->*entries).size()) all.push_back((sharer->*entries)[turn]);
    }
  }
  for (const auto& one : reports) {
    if (std::ranges::find(sharers, one.report) != sharers.end()) continue;
    std::ranges::copy(one.report->*entries, std::back_inserter(all));
  }
  std::set<std::string> names;
  for (const auto& entry : all) {
    if (!names.insert(entry.name).second) {
      refuse("", entry.name + " is in two of the reports; merge reports of different " + work);
    }
  }
}

/// Takes what at most one of the reports may have.
template <class Part>
void take_only(const std::vector<NamedReport>& reports, const std::string& what,
               std::optional<Part> Report::*part, Report& all) {
  for (const auto& [file, report] : reports) {
    if (!(report->*part)) continue;
    if (all.*part) refuse(file, "two of the reports have " + what + "; leave one of them out");
    all.*part = report->*part;
  }
}

/// Adds what another shard of a search saw. Its tuples may be the same ones, so the curve keeps its
/// end alone, with the greater number of them.
void add_shard(const Coverage& shard, Coverage& all) {
  all.runs += shard.runs;
  all.branches += shard.branches;
  all.inconclusive += shard.inconclusive;
  for (const auto& mark : shard.marks) {
    const auto known = std::ranges::find(all.marks, mark.name, &Mark::name);
    if (known == all.marks.end()) {
      all.marks.push_back(mark);
    } else {
      known->count += mark.count;
    }
  }
  for (const auto& finding : shard.findings) {
    const auto known =
        std::ranges::find(all.findings, finding.signature, &SearchFinding::signature);
    if (known == all.findings.end()) {
      all.findings.push_back(finding);
    } else {
      known->count += finding.count;
      if (known->status == "resolved") known->status = finding.status;
    }
  }
  const auto tuples_of = [](const Coverage& one) {
    return one.curve.empty() ? 0 : one.curve.back().tuples;
  };
  const std::uint64_t reached = all.marks.size() - unreached(all).size();
  all.curve = {{all.runs, reached, std::max(tuples_of(all), tuples_of(shard))}};
}

/// Adds up the shards of a search of timelines, or takes the only search.
void add_coverage(const std::vector<NamedReport>& reports, Report& all) {
  const auto sharers = sharing(reports, kTimelines);
  if (sharers.empty()) return take_only(reports, "a search of timelines", &Report::coverage, all);
  std::uint64_t seed = 0;
  for (const auto* sharer : sharers) {
    if (!sharer->coverage) refuse("", "a shard of the timelines has no search of them");
    if (!all.coverage) {
      all.coverage = sharer->coverage;
      seed = all.coverage->seed;
    } else if (sharer->coverage->seed != ++seed) {
      refuse("", "the shards of the timelines are of searches with different seeds");
    } else {
      add_shard(*sharer->coverage, *all.coverage);
    }
  }
}

/// Returns copies of the reports. Every machine finds the same files that can't be read; of each,
/// only the first entry stays.
std::vector<Report> without_repeated_mistakes(const std::vector<NamedReport>& reports) {
  std::vector<Report> copies;
  std::set<std::string> mistakes;
  for (const auto& one : reports) {
    std::erase_if(copies.emplace_back(*one.report).scenarios, [&](const ScenarioResult& result) {
      return is_unreadable(result) && !mistakes.insert(result.name).second;
    });
  }
  return copies;
}

void add_texts(const Report& report, Report& all) {
  for (const auto& text : report.not_claimed) {
    const bool of_shard = std::ranges::any_of(
        report.shards, [&text](const Shard& shard) { return text_of(shard) == text; });
    const bool known = std::ranges::find(all.not_claimed, text) != all.not_claimed.end();
    if (!of_shard && !known) all.not_claimed.push_back(text);
  }
}

}  // namespace

std::string text_of(const Shard& shard) {
  return shard.work + ": only shard " + std::to_string(shard.number) + " of " +
         std::to_string(shard.of) + " was run";
}

void put_shard(Report& report, const Shard& shard) {
  for (const auto& other : report.shards) {
    if (other.work == shard.work) std::erase(report.not_claimed, text_of(other));
  }
  std::erase_if(report.shards, [&](const Shard& other) { return other.work == shard.work; });
  if (shard.of <= 1) return;
  report.shards.push_back(shard);
  report.not_claimed.push_back(text_of(shard));
}

Report merged(const std::vector<NamedReport>& reports) {
  require_one_run(reports);
  Report all;
  const Report& first = *reports.front().report;
  all.project = first.project;
  all.lane = first.lane;
  all.machine = first.machine;
  all.started = first.started;
  all.mutant = first.mutant;
  all.seed = first.seed;
  for (const auto& [file, report] : reports) {
    all.project.dirty = all.project.dirty || report->project.dirty;
    all.started = std::min(all.started, report->started);
    all.seconds = std::max(all.seconds, report->seconds);
    all.interrupted = all.interrupted || report->interrupted;
    add_texts(*report, all);
    for (const auto& work : report->exhaustive) {
      for (const auto& part : work.parts) {
        Exhaustive one = work;
        one.parts = {part};
        put_work(all.exhaustive, one);
      }
    }
  }
  const std::vector<Report> copies = without_repeated_mistakes(reports);
  std::vector<NamedReport> readable = reports;
  for (std::size_t i = 0; i < copies.size(); ++i) readable[i].report = &copies[i];
  add_all(readable, "scenarios", &Report::scenarios, all.scenarios);
  add_all(readable, "properties", &Report::properties, all.properties);
  add_all(readable, "mutants", &Report::mutants, all.mutants);
  take_only(reports, "a matrix of mutants", &Report::matrix, all);
  add_coverage(reports, all);
  all.planned = all.scenarios.size();
  for (const auto& result : all.scenarios) {
    if (result.verdict == Verdict::kNotRun) all.skipped.push_back({result.name, result.reason});
  }
  all.verdict = overall(all);
  return all;
}

}  // namespace reprise::reports
