#include "cli/output/run_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

constexpr std::size_t kStatusWidth = 72;

/// Returns text such as "45 s left" or "3 min left"; empty if nothing is known yet.
std::string time_left(const driver::RunProgress& progress, double seconds) {
  if (progress.done == 0) return "";
  const double each = seconds / static_cast<double>(progress.done);
  const double left = std::ceil(each * static_cast<double>(progress.total - progress.done));
  return left < 120 ? fmt::format(", {:.0f} s left", left)
                    : fmt::format(", {:.0f} min left", std::ceil(left / 60));
}

/// Puts names into groups by `group`, in the order of their first occurrence, and counts them.
class Grouped {
 public:
  void add(const std::string& group, const std::string& name) {
    const auto [place, added] = places_.emplace(group, all_.size());
    if (added) all_.push_back({group, {}});
    all_[place->second].second.push_back(name);
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::pair<std::string, std::vector<std::string>>> all_;
};

std::string without_row(const std::string& name) { return name.substr(0, name.find('[')); }

/// Names the rows of one file together.
void add_runs(const driver::LanePlan& plan, std::string& text) {
  Grouped files;
  for (const auto* scenario : plan.runs) files.add(without_row(scenario->name), scenario->name);
  for (const auto& [file, names] : files.all()) {
    text += "  " + (names.size() == 1 ? names.front() : file + ": " + counted(names.size(), "row"));
    text += '\n';
  }
}

void add_skipped(const driver::LanePlan& plan, std::string& text) {
  Grouped reasons;
  for (const auto& skipped : plan.skipped) reasons.add(skipped.reason, skipped.scenario);
  for (const auto& [reason, names] : reasons.all()) {
    text += "  skipped: " + names.front();
    if (names.size() > 1) text += " and " + with_commas(names.size() - 1) + " more";
    text += ": " + reason + "\n";
  }
}

}  // namespace

std::string defaults_text(const std::vector<driver::Scenario>& scenarios) {
  Grouped defaults;
  for (const auto& scenario : scenarios) {
    for (const auto& said : unnamed_defaults(scenario)) defaults.add(said, scenario.name);
  }
  std::string text;
  for (const auto& [said, names] : defaults.all()) {
    text += "  " + said + ": " + join_first(names, 3) + "\n";
  }
  return text.empty() ? text : "\ndefaults that the layouts leave unstated:\n" + text;
}

std::string status_text(const driver::RunProgress& progress, double seconds) {
  std::string text = fmt::format("{}/{}", progress.done, progress.total);
  if (progress.failures > 0) text += fmt::format(", {} not passed", progress.failures);
  text += time_left(progress, seconds) + ": ";
  const std::size_t room = kStatusWidth - std::min(text.size(), kStatusWidth);
  return text + shorten_middle(printable(progress.running), room);
}

std::string list_text(const driver::LanePlan& plan, const driver::Catalogue& catalogue) {
  std::string text;
  for (const auto* scenario : plan.runs) {
    text += scenario->name;
    if (!scenario->tags.empty()) text += "  " + join(scenario->tags, " ");
    text += '\n';
  }
  text +=
      "\n" + counted(plan.runs.size(), "scenario") + " on lane " + std::string(name_of(plan.lane));
  if (!plan.skipped.empty()) {
    text += "; " + with_commas(plan.skipped.size()) + " would be skipped: --dry-run says why";
  }
  std::vector<std::string> tags;
  for (const auto& [tag, count] : catalogue.tags) {
    tags.push_back(tag + " (" + with_commas(count) + ")");
  }
  return text + "\ntags: " + (tags.empty() ? "none" : join(tags, ", ")) + "\n";
}

std::string dry_run_text(const std::vector<driver::LanePlan>& plans,
                         const driver::Catalogue& catalogue) {
  std::string text = counted(catalogue.files, "file") + ", " +
                     counted(catalogue.scenarios.size(), "scenario") +
                     " selected; nothing was run\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const driver::LanePlan& plan = plans[i];
    text += "\nlane " + std::string(name_of(plan.lane)) + ": " + with_commas(plan.runs.size()) +
            " would run, " + with_commas(plan.skipped.size()) + " would be skipped\n";
    if (i == 0) add_runs(plan, text);
    add_skipped(plan, text);
  }
  return text + defaults_text(catalogue.scenarios);
}

std::string mistakes_text(const driver::Catalogue& catalogue) {
  std::string text;
  std::size_t count = 0;
  for (const auto& file : catalogue.unreadable) {
    text += shown(file);
    count += file.mistakes.size();
  }
  if (count == 0) return text;
  return text + fmt::format("{} in {} of {}\n", counted(count, "mistake"),
                            catalogue.unreadable.size(), counted(catalogue.files, "file"));
}

}  // namespace reprise::cli
