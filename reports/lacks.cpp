#include "reports/lacks.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/shell_word.hpp"

namespace reprise::reports {
namespace {

constexpr const char* kGoodFor =
    "a merge: this report only shows how each scenario ended when it was run once; the gate also "
    "needs what the next lines name";
constexpr const char* kNotDoubled =
    "determinism: nothing was run twice, so results may depend on chance; 'reprise run --double' "
    "checks";
constexpr const char* kNoProperties =
    "properties: no random case was run; 'reprise search properties --report DIR' adds them";
constexpr const char* kNoMutants =
    "mutants: none was switched on, so nothing shows that a defective engine would have failed; "
    "'reprise mutants --report DIR' adds them";
constexpr std::array kAll = {kGoodFor, kNotDoubled, kNoProperties, kNoMutants};

constexpr const char* kCatalogue = "scenarios";

/// Returns the folder that was run: what stands before the scenarios' names in the paths of their
/// files. If they do not agree on it, returns the name of the usual one.
std::string catalogue_of(const Report& report) {
  std::string folder;
  for (const auto& result : report.scenarios) {
    const std::string below = "/" + result.name.substr(0, result.name.find('[')) + ".yaml";
    if (!result.file.ends_with(below)) continue;  // the file gives its scenario another name
    const std::string found = result.file.substr(0, result.file.size() - below.size());
    if (found.empty() || (!folder.empty() && folder != found)) return kCatalogue;
    folder = found;
  }
  return folder.empty() ? kCatalogue : folder;
}

}  // namespace

std::vector<std::string> lacks_of(const Report& report) {
  if (report.scenarios.empty() || report.lane == ReportLane::kFiles) return {};
  std::vector<std::string> lacks;
  // Programs of others are not run twice: nothing says that they repeat themselves.
  const bool doubles = !runs_programs(report.lane);
  if (doubles && runs_doubled(report) == 0) lacks.emplace_back(kNotDoubled);
  if (report.lane == ReportLane::kSim && report.properties.empty())
    lacks.emplace_back(kNoProperties);
  const bool mutant = !report.mutants.empty() || !report.mutant.empty();
  if (report.lane == ReportLane::kSim && !mutant) lacks.emplace_back(kNoMutants);
  if (!lacks.empty()) lacks.insert(lacks.begin(), kGoodFor);
  return lacks;
}

std::vector<std::string> unshown_of_gpus(const Report& report) {
  if (report.lane != ReportLane::kGpu) return {};
  bool several = false;
  bool others = false;    // true if ranks sent data to others
  bool directly = false;  // true if some of it went by another way than sockets
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    std::set<std::string> gpus;
    for (const auto& rank : result.ranks) {
      if (!rank.gpu) continue;
      gpus.insert(rank.gpu->node + ' ' + rank.gpu->bus_id);
      for (const auto& transport : rank.gpu->transports) {
        others = true;
        directly = directly || !transport.starts_with("NET/Socket");
      }
    }
    several = several || gpus.size() > 1;
  }
  std::vector<std::string> texts;
  if (!several) texts.emplace_back("more than one GPU in one job");
  if (!others) {
    texts.emplace_back("data from GPU to GPU through NCCL");
  } else if (!directly) {
    texts.emplace_back("data from GPU to GPU by another way than sockets");
  }
  return texts;
}

void restate_lacks(Report& report) {
  std::erase_if(report.not_claimed, [](const std::string& text) {
    return std::find(kAll.begin(), kAll.end(), text) != kAll.end();
  });
  const auto lacks = lacks_of(report);
  report.not_claimed.insert(report.not_claimed.end(), lacks.begin(), lacks.end());
}

std::string command_for_full(const Report& report, const Invocation& invocation) {
  std::string commands;
  const auto add = [&](const std::string& words) {
    commands += (commands.empty() ? "" : " && ") + shell_word(invocation.program) + " " + words +
                " --report " + shell_word(invocation.directory);
  };
  const std::string catalogue = shell_word(catalogue_of(report));
  // A new run replaces the whole report.
  const bool anew = invocation.anew || runs_doubled(report) == 0;
  if (anew) add("run " + catalogue + " --double");
  if (anew || report.properties.empty()) add("search properties");
  if (anew || report.mutants.empty()) add("mutants " + catalogue);
  return commands;
}

}  // namespace reprise::reports
