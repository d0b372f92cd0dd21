#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/survey_verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "core/trend/trend.hpp"

namespace reprise::cli {
namespace {

constexpr std::size_t kKeysShown = 3;

std::string bytes_text(std::uint64_t bytes, bool compared) {
  return compared ? human_bytes(bytes) : "";
}

std::string first_keys(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kKeysShown); ++i) {
    text += (i == 0 ? "" : ", ") + printable(keys[i]);
  }
  if (keys.size() > kKeysShown) {
    text += " and " + with_commas(keys.size() - kKeysShown) + " more";
  }
  return text;
}

class TrendVerb final : public SurveyVerb {
 public:
  std::string_view name() const override { return "trend"; }
  std::string_view summary() const override {
    return "Say what changed from each checkpoint of a run to the next, and what should have";
  }
  std::string_view examples() const override {
    return "  reprise trend runs/llm                    all checkpoints of the directory, by "
           "number\n"
           "  reprise trend --last 5 runs/llm\n"
           "  reprise trend ckpt_a ckpt_b ckpt_c        these, in this order\n"
           "  reprise trend --json runs/llm | jq '.checkpoints[] | {name, bytes_shared}'\n"
           "  reprise trend --json runs/llm | jq '.findings[] | select(.severity == \"error\")'\n"
           "Exits with 0 if the run moved on, 1 if a checkpoint is stale: no weight of it changed, "
           "or a\n"
           "weight and its moments did not although others did, or moments did not although their "
           "weight\n"
           "did, or the iteration that its state names did not go on; 3 if there are no "
           "weights to\n"
           "compare, or something could not be read. Frozen weights, which have no moments, may "
           "stay as they "
           "are.\n";
  }
  void declare(Options& options) override {
    options
        .positional(paths_, "ROOT",
                    "directory with the checkpoints of a run, or two checkpoints or more")
        .number(last_, "--last", 2, "look at the last N checkpoints alone")
        .texts(keys_, "--keys", "REGEX", "only keys that match")
        .texts(ignored_, "--ignore", "REGEX", "skip keys that match");
    declare_survey(options);
  }

  ExitCode run(const Console& console) override {
    std::vector<StoredPath> stored;
    std::vector<const StoredPath*> all;
    for (const std::string& path : paths_) stored.push_back(stored_path(path));
    for (const StoredPath& one : stored) all.push_back(&one);
    const TrendReport report = survey(console, [&](const SurveyPorts& ports) {
      return paths_.size() == 1 ? of_root(stored.front(), ports) : of_each(all, ports);
    });
    if (json()) {
      console.out << trend_json(report);
    } else {
      print(report, console);
    }
    if (!report.healthy()) return ExitCode::kFail;
    return report.all_judged() ? ExitCode::kPass : ExitCode::kInconclusive;
  }

 private:
  std::function<bool(const std::string&)> wanted() const {
    return
        [filter = KeyFilter(keys_, ignored_)](const std::string& key) { return filter.wants(key); };
  }

  TrendReport of_root(const StoredPath& root, const SurveyPorts& ports) {
    RunGenerations run = run_generations(*root.store, root.path);
    if (run.found.empty() && !checkpoints_within(*root.store, root.path).empty()) {
      return of_each(std::vector{&root}, ports);  // a checkpoint itself
    }
    if (run.found.empty()) {
      throw Error(Code::kNotFound,
                  "no directory there has a name that ends in a number and holds a checkpoint",
                  {.file = root.display()});
    }
    unfinished_ = std::move(run.unfinished);
    other_names_ = std::move(run.other_names);
    const auto skipped = last_ == 0 ? 0 : static_cast<std::int64_t>(run.found.size()) - last_;
    if (skipped > 0) run.found.erase(run.found.begin(), run.found.begin() + skipped);
    return trend(*root.store, run.found, wanted(), ports);
  }

  TrendReport of_each(const std::vector<const StoredPath*>& stored,
                      const SurveyPorts& ports) const {
    TrendJudge judge;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const RunGeneration one{static_cast<std::int64_t>(i), printable(paths_[i]),
                              checkpoints_within(*stored[i]->store, stored[i]->path),
                              stored[i]->path};
      judge.add(facts_of(*stored[i]->store, one, wanted(), ports));
    }
    return judge.report();
  }

  void print(const TrendReport& report, const Console& console) const {
    Table table({{"checkpoint"},
                 {"iteration", Align::kRight},
                 {"tensors", Align::kRight},
                 {"changed", Align::kRight},
                 {"weights changed", Align::kRight},
                 {"bytes", Align::kRight},
                 {"bytes shared", Align::kRight}});
    for (const TrendRow& row : report.rows) {
      const bool compared = row.compared != 0;
      table.add(
          {printable(row.name), row.iteration ? std::to_string(*row.iteration) : "",
           row.unread.empty() ? with_commas(row.tensors) : "not read",
           compared ? with_commas(row.changed) : "",
           compared
               ? fmt::format("{} of {}", with_commas(row.weights_changed), with_commas(row.weights))
               : "",
           bytes_text(row.bytes, row.unread.empty()), bytes_text(row.bytes_shared, compared)});
    }
    table.print(console);
    console.out << '\n';
    for (const TrendRow& row : report.rows) {
      if (row.unread.empty()) continue;
      console.out << printable(row.name) << " was not read: " << printable(row.unread) << '\n';
    }
    for (const TrendFinding& finding : report.findings) {
      console.out << fmt::format("{} {}: {}: {}{}\n", name_of(finding.severity), finding.code,
                                 printable(finding.generation), printable(finding.message),
                                 finding.keys.empty() ? "" : ": " + first_keys(finding.keys));
    }
    if (!report.frozen.empty()) {
      console.out << "note: " << counted(report.frozen.size(), "weight")
                  << " without moments never changed: " << first_keys(report.frozen) << '\n';
    }
    if (!unfinished_.empty()) {
      console.out << "note: no checkpoint is in " << first_keys(unfinished_) << '\n';
    }
    if (!other_names_.empty()) {
      console.out << "note: not looked at, since they have other names: "
                  << first_keys(other_names_) << '\n';
    }
    console.out << verdict(report) << '\n';
  }

  static std::string verdict(const TrendReport& report) {
    const auto count = [&report](Severity severity) {
      return static_cast<std::uint64_t>(
          std::ranges::count(report.findings, severity, &TrendFinding::severity));
    };
    const std::string found = counted(count(Severity::kError), "error") + ", " +
                              counted(count(Severity::kWarning), "warning");
    if (!report.healthy()) return "stale: " + found;
    if (report.compared() == 0) {
      return std::string("nothing to compare: ") +
             (report.rows.size() < 2     ? "it takes two checkpoints"
              : report.anything_unread() ? "no two checkpoints could be read that have a tensor in "
                                           "common"
                                         : "no checkpoint has a tensor in common with the one "
                                           "before");
    }
    if (report.judged() == 0) {
      return "not judged: no checkpoint has a weight of floats in common with the one before";
    }
    return fmt::format("{}: {} compared with the one before, {}",
                       report.all_judged() ? "moving on" : "not all looked at",
                       counted(report.judged(), "checkpoint"), found);
  }

  static std::string word_for(const TrendReport& report) {
    if (!report.healthy()) return "stale";
    return report.all_judged() ? "moving on" : "inconclusive";
  }

  std::string trend_json(const TrendReport& report) const {
    nlohmann::json rows = nlohmann::json::array();
    for (const TrendRow& row : report.rows) {
      rows.push_back(
          {{"name", row.name},
           {"number", row.number},
           {"iteration", row.iteration ? nlohmann::json(*row.iteration) : nullptr},
           {"tensors", row.tensors},
           {"bytes", row.bytes},
           {"compared", row.compared},
           {"changed", row.changed},
           {"bytes_shared", row.bytes_shared},
           {"weights", row.weights},
           {"weights_changed", row.weights_changed},
           {"unchanged", row.unchanged},
           {"unread", row.unread.empty() ? nlohmann::json(nullptr) : nlohmann::json(row.unread)}});
    }
    nlohmann::json findings = nlohmann::json::array();
    for (const TrendFinding& finding : report.findings) {
      findings.push_back({{"severity", name_of(finding.severity)},
                          {"code", finding.code},
                          {"checkpoint", finding.generation},
                          {"message", finding.message},
                          {"keys", finding.keys}});
    }
    return json_text({{"verdict", word_for(report)},
                      {"checkpoints", rows},
                      {"findings", findings},
                      {"frozen", report.frozen},
                      {"unfinished", unfinished_},
                      {"other_names", other_names_}});
  }

  std::vector<std::string> paths_;
  std::int64_t last_ = 0;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::vector<std::string> unfinished_;
  std::vector<std::string> other_names_;
};

}  // namespace

std::unique_ptr<Verb> make_trend() { return std::make_unique<TrendVerb>(); }

}  // namespace reprise::cli
