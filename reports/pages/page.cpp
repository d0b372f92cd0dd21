// Writes report.html: the tables that stand there without a script, and for page.js two documents:
// what report.json has, and what C++ concludes from it.

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "reports/code_guide.hpp"
#include "reports/document.hpp"
#include "reports/evidence.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/html.hpp"
#include "reports/pages/pages.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

/// Cards that get pictures. A report with more causes is read from the top.
constexpr std::size_t kPicturesMax = 60;

/// Escapes whatever a reader could not see in the texts of a document, and in its names.
Json printable_of(const Json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>(), LineBreaks::kKept);
  if (!value.is_structured()) return value;
  Json copy = value.is_array() ? Json::array() : Json::object();
  for (const auto& [name, item] : value.items()) {
    if (value.is_array()) copy.push_back(printable_of(item));
    if (value.is_object()) copy[printable(name)] = printable_of(item);
  }
  return copy;
}

/// Returns a document for page.js. No text of it can end the element.
std::string element_of(const std::string& id, const Json& document) {
  std::string text = "<script type=\"application/json\" id=\"" + id + "\">";
  for (const char letter : printable_of(document).dump()) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text + "</script>\n";
}

std::string_view meaning_of(const std::string& code) {
  for (const auto& guide : code_guides()) {
    if (name_of(guide.code) == code) return guide.meaning;
  }
  return "";
}

Json fields_json(const ScenarioResult& result, SideWords sides) {
  Json fields = Json::array();
  for (const auto& [name, text] : fields_of(result)) {
    fields.push_back({name == "saved" ? sides.left : name == "loaded" ? sides.right : name, text});
  }
  return fields;
}

Json card_json(const Card& card, const Report& report, const Standing& standing) {
  const Problem& first = card.front();
  Json alike = Json::array();
  for (const auto& one : card) {
    const auto status = standing.status_of(one.subject);
    alike.push_back({{"name", one.subject},
                     {"cause", cause_of(one)},
                     {"fix", one.fix},
                     {"status", status ? name_of(*status) : ""},
                     {"strip", standing.letters_of(one.subject)}});
  }
  Json json = {{"verdict", name_of(first.verdict)}, {"alike", alike}, {"code", ""}, {"key", ""}};
  if (first.scenario == nullptr) return json;
  json["code"] = first.scenario->code;
  json["key"] = key_of(*first.scenario);
  json["meaning"] = meaning_of(first.scenario->code);
  json["fields"] = fields_json(*first.scenario, side_words(report));
  return json;
}

/// Returns what report.json has, but of the scenarios only the first of each card, in their order.
/// The others have rows in the facts: a night's report of 15 MB would be a page of 9 MB.
Json shown_of(const Report& report, const std::vector<Card>& cards) {
  Report shown = report;
  shown.scenarios.clear();
  shown.skipped.clear();
  for (const auto& card : cards) {
    if (card.front().scenario == nullptr) continue;
    if (shown.scenarios.size() < kPicturesMax) shown.scenarios.push_back(*card.front().scenario);
  }
  return Json::parse(to_json(shown));
}

/// Returns the scenarios by file, in the order of the report: what their names have after those of
/// their files, verdict, code, the number of their layouts in `layouts`, elements, elements with
/// other bits, seconds.
void put_files(const Report& report, Json& facts) {
  std::map<std::string_view, std::size_t> places;
  std::map<std::string, std::size_t> layouts;
  Json& files = facts["files"] = Json::array();
  facts["layouts"] = Json::array();
  for (const auto& result : report.scenarios) {
    std::uint64_t mismatches = 0;
    for (const auto& rank : result.ranks) {
      mismatches = saturating_sum(mismatches, rank.bit_mismatches);
    }
    const std::string before = result.name.substr(0, result.name.find('['));
    const auto [at, fresh] = places.try_emplace(result.file, files.size());
    if (fresh) {
      files.push_back({{"name", result.file}, {"begin", before}, {"rows", Json::array()}});
    }
    Json& file = files[at->second];
    const bool begins = file["begin"] == before;
    const auto [layout, other] = layouts.try_emplace(layouts_of(result), layouts.size());
    if (other) facts["layouts"].push_back(layout->first);
    file["rows"].push_back({begins ? result.name.substr(before.size()) : result.name,
                            name_of(result.verdict), result.code, layout->second,
                            compared_of(result).elements, mismatches,
                            number_or_word(std::round(result.seconds * 1000) / 1000)});
  }
}

Json history_json(const Standing& standing) {
  if (!standing.is_known()) return nullptr;
  Json history = {{"reports", Json::array()}};
  for (const auto& one : standing.reports()) {
    history["reports"].push_back({one.file, one.started, one.commit, name_of(one.verdict)});
  }
  const std::pair<const char*, std::vector<HistoryStrip>> lists[] = {
      {"resolved", standing.resolved()}, {"unsteady", standing.unsteady()}};
  for (const auto& [name, strips] : lists) {
    history[name] = Json::array();
    for (const auto& [subject, letters] : strips) history[name].push_back({subject, letters});
  }
  return history;
}

Json facts_json(const Report& report, const std::vector<Card>& cards, const Standing& standing) {
  const SideWords sides = side_words(report);
  Json facts = {{"sides", {sides.left, sides.right}},
                {"job", !is_of_files(report)},
                {"doubled", runs_doubled(report)},
                {"not_run", not_run_of(report)},
                {"not_known", kNotKnown},
                {"rare", report.coverage ? rare(*report.coverage).size() : 0},
                {"history", history_json(standing)}};
  put_files(report, facts);
  for (const auto& card : cards) facts["cards"].push_back(card_json(card, report, standing));
  for (const auto& one : evidence_of(report)) {
    facts["evidence"].push_back({one.kind, one.shown, one.absence});
  }
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    for (const auto& earlier : result.earlier_tries) {
      facts["second_tries"].push_back({result.name, ending_of(earlier)});
    }
  }
  return facts;
}

void put_head(const Report& report, const std::string& word, std::string& out) {
  out += "<header>\n<h1>Reprise: " + verdict_html(word) + "</h1>\n<p>" +
         in_html(outline_of(report)) + ".</p>\n";
  if (word == "unsupported") {
    out +=
        "<p class=\"warning\">The report says pass, but its own entries do not support it.</p>\n";
  }
  if (report.interrupted) {
    out += "<p class=\"warning\">The run was interrupted: the rest was not run.</p>\n";
  }
  if (!report.mutant.empty()) {
    out += "<p class=\"warning\">A known defect, the mutant " + in_html(report.mutant) +
           ", was switched on: failures are what it should cause. Run without it to judge the "
           "program.</p>\n";
  }
  out += "</header>\n";
}

/// The tables of a reader without a script, for whom nothing is folded.
void put_tables(const Report& report, const std::vector<Card>& cards, std::string& out) {
  if (!cards.empty()) {
    out += "<h2>Problems</h2>\n" +
           table_head({"verdict", "code", "key", "reason", "in", "see it again"});
  }
  for (const auto& card : cards) {
    const Problem& first = card.front();
    std::vector<std::string> names;
    for (const auto& one : card) names.push_back(one.subject);
    out += "<tr><td>" + verdict_html(name_of(first.verdict)) + "</td>" +
           cell_html(first.scenario == nullptr ? "" : first.scenario->code) +
           cell_html(first.scenario == nullptr ? "" : key_of(*first.scenario)) +
           cell_html(cause_of(first)) + cell_html(join(names, ", ")) + cell_html(first.fix) +
           "</tr>\n";
  }
  if (!cards.empty()) out += kTableEnd;
  out += "<h2>What this report covers</h2>\n" + table_head({"kind", "in this report"});
  for (const auto& one : evidence_of(report)) {
    out += "<tr>" + cell_html(one.kind) + cell_html(one.shown.empty() ? one.absence : one.shown) +
           "</tr>\n";
  }
  out += kTableEnd;
}

std::string machine_of(const Machine& machine) {
  std::string text = machine.cpu + ", " + human_bytes(machine.memory);
  for (const auto& gpu : machine.gpus) text += ", GPU " + gpu;
  if (!machine.mpi.empty()) text += ", MPI " + machine.mpi;
  if (!machine.nccl.empty()) text += ", NCCL " + machine.nccl;
  if (!machine.cuda.empty()) text += ", CUDA " + machine.cuda;
  return text;
}

void put_foot(const Report& report, const std::string& sha256, std::string& out) {
  const std::pair<const char*, std::string> facts[] = {
      {"commit", commit_of(report)},         {"build", report.project.build},
      {"lane", name_of(report.lane)},        {"machine", machine_of(report.machine)},
      {"started", report.started},           {"duration", fixed(report.seconds, 1) + " s"},
      {"seed", std::to_string(report.seed)}, {"report.json", "SHA-256 " + sha256}};
  out += "<footer>\n<dl>\n";
  for (const auto& [name, value] : facts) {
    if (value.empty()) continue;
    out += std::string("<dt>") + name + "</dt><dd>" + in_html(value) + "</dd>\n";
  }
  out += "</dl>\n</footer>\n";
}

/// The hatching of what is missing, which every picture uses.
constexpr const char* kHatching =
    "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" "
    "width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
    "<rect class=\"stripe\" width=\"2.5\" height=\"7\"/></pattern></defs></svg>\n";

}  // namespace

std::string to_html(const Report& report, const std::string& report_sha256,
                    std::span<const PastReport> earlier) {
  Report whole = report;
  for (auto& result : whole.scenarios) restate_failure(result);  // older reports have none
  const Standing standing(report, earlier);
  const auto problems = problems_of(whole);
  const auto cards = cards_of(problems);
  const std::string word = verdict_word(report, problems);
  std::string body;
  put_head(report, word, body);
  body += "<main>\n";
  put_tables(whole, cards, body);
  body += "</main>\n";
  put_foot(report, report_sha256, body);
  body += kHatching + element_of("report", shown_of(whole, cards)) +
          element_of("facts", facts_json(whole, cards, standing));
  return page_html("Reprise: " + word + ", lane " + name_of(report.lane) + ", commit " +
                       clipped(report.project.commit, 12),
                   body);
}

}  // namespace reprise::reports
