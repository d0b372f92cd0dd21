#include <algorithm>
#include <map>

#include "core/base/print.hpp"
#include "reports/evidence.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html_sections.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

/// The scenarios of one file, in the order of the report.
struct File {
  std::string name;
  std::vector<const ScenarioResult*> results;
};

std::vector<File> files_of(const Report& report) {
  std::vector<File> files;
  std::map<std::string_view, std::size_t> places;
  for (const auto& result : report.scenarios) {
    const auto [at, fresh] = places.try_emplace(result.file, files.size());
    if (fresh) files.push_back({result.file, {}});
    files[at->second].results.push_back(&result);
  }
  return files;
}

double seconds_of(const File& file) {
  double seconds = 0;
  for (const auto* result : file.results) seconds += result->seconds;
  return seconds;
}

/// Returns the outcomes of a scenario's lives: "ran, cut short, continued".
std::string lives_of(const ScenarioResult& result) {
  std::vector<std::string> outcomes;
  for (const auto& life : result.incarnations) outcomes.push_back(name_of(life.outcome));
  std::string text = join(outcomes, ", ");
  std::ranges::replace(text, '_', ' ');
  return text;
}

/// The columns that only a job has.
std::string job_cells(const ScenarioResult& result) {
  return cell_html(layouts_of(result)) + cell_html(lives_of(result)) +
         cell_html(generations_text(result));
}

void put_row(const ScenarioResult& result, bool job, std::string& out) {
  const Compared compared = compared_of(result);
  std::uint64_t mismatches = 0;
  for (const auto& rank : result.ranks) {
    mismatches = saturating_sum(mismatches, rank.bit_mismatches);
  }
  out += "<tr data-s=\"" + fixed(result.seconds, 4) + "\">" + cell_html(result.name) + "<td>" +
         verdict_html(name_of(result.verdict)) + "</td>" + cell_html(result.code) +
         (job ? job_cells(result) : "") + count_html(with_commas(compared.leaves)) +
         count_html(with_commas(compared.elements)) + count_html(with_commas(mismatches)) +
         count_html(fixed(result.seconds, 2)) + "</tr>\n";
}

void put_file(const File& file, bool job, std::string& out) {
  std::map<Verdict, std::size_t> verdicts;
  for (const auto* result : file.results) ++verdicts[result->verdict];
  const bool passed = verdicts.size() == 1 && verdicts.begin()->first == Verdict::kPass;
  const double seconds = seconds_of(file);
  out += "<details" + std::string(passed ? "" : " open") + " data-s=\"" + fixed(seconds, 4) +
         "\"><summary><span class=\"name\">" + in_html(file.name) + "</span> ";
  for (const auto& [verdict, count] : verdicts) {
    out += verdict_html(name_of(verdict) + " " + with_commas(count)) + " ";
  }
  std::vector<std::string> columns = {job ? "scenario" : "result", "verdict", "code"};
  if (job) columns.insert(columns.end(), {"layouts", "lives", "checkpoints"});
  columns.insert(columns.end(), {"leaves", "elements", "other bits", "s"});
  out += "<span class=\"quiet\">" + fixed(seconds, 2) + " s</span></summary>" + table_head(columns);
  for (const auto* result : file.results) put_row(*result, job, out);
  out += std::string(kTableEnd) + "</details>\n";
}

}  // namespace

void put_scenarios(const Report& report, std::string& out) {
  const bool job = !is_of_files(report);
  out += std::string("<section id=\"scenarios\"><h2>") + (job ? "Scenarios" : "Results") +
         "</h2>\n<p>" + in_html(outline_of(report)) + ".</p>\n";
  if (!report.scenarios.empty()) {
    out +=
        "<p class=\"tools scripted\" hidden><label>Filter <input type=\"search\" id=\"filter\" "
        "placeholder=\"words of a name, code, layout\"></label> <label>Order <select "
        "id=\"order\"><option value=\"report\">of the report</option><option "
        "value=\"time\">slowest first</option></select></label> <output id=\"count\" "
        "for=\"filter\"></output></p>\n";
  }
  out += "<div id=\"files\">\n";
  for (const auto& file : files_of(report)) put_file(file, job, out);
  out += "</div></section>\n";
}

}  // namespace reprise::reports
