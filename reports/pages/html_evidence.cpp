#include <algorithm>

#include "core/base/print.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html_sections.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

/// Opens the section of a kind of evidence. Returns false, and closes it, if the report has none.
bool begin_section(const Report& report, std::string_view id, std::string_view title,
                   std::string_view kind, std::string& out) {
  const Evidence evidence = evidence_named(report, kind);
  out += "<section id=\"" + std::string(id) + "\"><h2>" + std::string(title) + "</h2>\n<p>" +
         in_html(evidence.shown.empty() ? evidence.absence : evidence.shown) + ".</p>\n";
  if (evidence.shown.empty()) out += "</section>\n";
  return !evidence.shown.empty();
}

void put_flaws(const std::vector<std::string>& flaws, std::string& out) {
  if (flaws.empty()) return;
  out += "<ul class=\"flaws\">";
  for (const auto& flaw : flaws) out += "<li>" + in_html(flaw) + "</li>";
  out += "</ul>\n";
}

std::string refused_text(const ExhaustivePart& part) {
  std::vector<std::string> texts;
  for (const auto& [code, pairs] : part.refused) texts.push_back(code + ": " + with_commas(pairs));
  return join(texts, ", ");
}

std::string caught_by_text(const MutantResult& mutant) {
  if (mutant.caught_by.empty()) return "";
  const auto& first = mutant.caught_by.front();
  const auto others = mutant.caught_by.size() - 1;
  return (first.property.empty() ? first.scenario : "property " + first.property) + ": " +
         first.verdict + ": " + first.reason +
         (others == 0 ? "" : " (and " + counted(others, "other") + ")");
}

std::string_view mark_note(const Mark& mark) {
  if (mark.count == 0) return "never reached";
  return mark.count < kRareBelow ? "rare" : "";
}

void put_marks(const Coverage& coverage, std::string& out) {
  std::vector<const Mark*> marks;
  for (const auto& mark : coverage.marks) marks.push_back(&mark);
  std::ranges::stable_sort(marks, {}, [](const Mark* mark) { return mark->count; });
  out += "<details><summary>" + counted(marks.size(), "mark") + ": " +
         with_commas(rare(coverage).size()) + " rare, " + with_commas(unreached(coverage).size()) +
         " never reached</summary>" + table_head({"mark", "timelines", ""});
  for (const auto* mark : marks) {
    const auto note = mark_note(*mark);
    out += "<tr" + std::string(note.empty() ? "" : " class=\"flagged\"") + ">" +
           cell_html(mark->name) + count_html(with_commas(mark->count)) + cell_html(note) +
           "</tr>\n";
  }
  out += std::string(kTableEnd) + "</details>\n";
}

void put_findings(const Coverage& coverage, std::string& out) {
  if (coverage.findings.empty()) return;
  out += table_head({"status", "finding", "timelines", "recipe", "file"});
  for (const auto& finding : coverage.findings) {
    out += "<tr>" + cell_html(finding.status) + cell_html(finding.code + ": " + finding.reason) +
           count_html(with_commas(finding.count)) + cell_html(finding.recipe) +
           cell_html(finding.file) + "</tr>\n";
  }
  out += kTableEnd;
}

}  // namespace

void put_evidence(const Report& report, bool open, std::string& out) {
  std::vector<std::string> absent;
  for (const auto& evidence : evidence_of(report)) {
    if (evidence.shown.empty()) absent.push_back(evidence.kind);
  }
  out +=
      "<section id=\"evidence\"><h2>What it shows, and what not</h2>\n<p>" +
      std::string(is_of_files(report) ? "This report is about stored checkpoints: no job was run."
                  : absent.empty()    ? "Every kind of evidence was run."
                                      : "Not run: " + in_html(join(absent, ", ")) + ".") +
      "</p>\n<details" + (open ? " open" : "") +
      "><summary>Kinds of evidence</summary><dl class=\"prose\">\n";
  for (const auto& evidence : evidence_of(report)) {
    const bool shown = !evidence.shown.empty();
    out += "<dt>" + in_html(evidence.kind) + "</dt><dd" + (shown ? "" : " class=\"flagged\"") +
           ">" + in_html(shown ? evidence.shown : evidence.absence) + "</dd>\n";
  }
  out += "</dl></details>\n";
  if (!is_of_files(report)) out += "<p>A gate can't know " + in_html(kNotKnown) + ".</p>\n";
  if (!report.not_claimed.empty()) {
    out += "<details" + std::string(open ? " open" : "") +
           "><summary>Not claimed: " + counted(report.not_claimed.size(), "line") +
           "</summary><ul>";
    for (const auto& text : report.not_claimed) out += "<li>" + in_html(text) + "</li>";
    out += "</ul></details>\n";
  }
  for (const auto& [reason, names] : not_run_of(report)) {
    out += "<details><summary>Not run: " + counted(names.size(), "scenario") + ": " +
           in_html(reason) + "</summary><p>" + in_html(join(names, ", ")) + "</p></details>\n";
  }
  out += "</section>\n";
}

void put_properties(const Report& report, std::string& out) {
  if (!begin_section(report, "properties", "Properties", "properties", out)) return;
  out += table_head({"property", "cases", "seed", "verdict", "smallest case that fails"});
  for (const auto& property : report.properties) {
    out += "<tr>" + cell_html(property.name) + count_html(with_commas(property.cases)) +
           count_html(std::to_string(property.seed)) + "<td>" +
           verdict_html(name_of(property.verdict)) + "</td><td><pre>" +
           in_html(property.counterexample.value_or("")) + "</pre></td></tr>\n";
  }
  out += std::string(kTableEnd) + "</section>\n";
}

void put_pairs(const Report& report, std::string& out) {
  if (!begin_section(report, "pairs", "Pairs of layouts", "pairs of layouts", out)) return;
  for (const auto& tried : report.exhaustive) {
    out += "<h3>" + in_html(tried.space()) + "</h3>\n<p>Model " + in_html(tried.model) +
           ", up to " + counted(tried.max_world, "rank") + ": " + counted(tried.layouts, "layout") +
           ", " + with_commas(tried.passed()) + " of " + counted(tried.pairs, "pair") + " pass; " +
           with_commas(tried.parts.size()) + " of " + counted(tried.of, "part") + " ran.</p>\n";
    put_flaws(flaws_of(tried), out);
    out += "<details><summary>Parts</summary>" +
           table_head({"part", "pairs", "pass", "rightly refused", "wrong", "elements", "s"});
    for (const auto& part : tried.parts) {
      out += "<tr>" + count_html(std::to_string(part.part)) + count_html(with_commas(part.pairs)) +
             count_html(with_commas(part.passed)) + cell_html(refused_text(part)) +
             count_html(with_commas(part.wrong)) + count_html(with_commas(part.elements)) +
             count_html(fixed(part.seconds, 1)) + "</tr>\n";
    }
    out += std::string(kTableEnd) + "</details>\n";
  }
  out += "</section>\n";
}

void put_mutants(const Report& report, std::string& out) {
  if (!begin_section(report, "mutants", "Mutants", "mutants", out)) return;
  std::vector<const MutantResult*> mutants;
  for (const auto& mutant : report.mutants) mutants.push_back(&mutant);
  std::ranges::stable_sort(mutants, {}, [](const MutantResult* mutant) { return mutant->caught; });
  const bool survives = !mutants.front()->caught;
  out += "<details" + std::string(survives ? " open" : "") +
         "><summary>Each mutant and what caught it</summary>" +
         table_head({"mutant", "", "defect", "caught by"});
  for (const auto* mutant : mutants) {
    out += "<tr" + std::string(mutant->caught ? "" : " class=\"flagged\"") + ">" +
           cell_html(mutant->name) + "<td>" +
           (mutant->caught ? std::string("caught") : verdict_html("survived")) + "</td>" +
           cell_html(mutant->defect) + cell_html(caught_by_text(*mutant)) + "</tr>\n";
  }
  out += std::string(kTableEnd) + "</details></section>\n";
}

void put_matrix(const Report& report, std::string& out) {
  if (!begin_section(report, "matrix", "Matrix of mutants", "matrix of mutants", out)) return;
  const Matrix& matrix = *report.matrix;
  out += std::string("<p>Each mutant ran in ") +
         (matrix.whole ? "every scenario" : "one row of each scenario file") + ".</p>\n";
  put_flaws(flaws_of(matrix), out);
  out += "<details open><summary>Pictures</summary>" + matrix_figures(matrix) + "</details>\n";
  const auto killers = with_one_killer(matrix);
  if (!killers.empty()) {
    out += "<details><summary>" + counted(killers.size(), "mutant") + " with one killer</summary>" +
           table_head({"mutant", "scenario"});
    for (const auto& [mutant, scenario] : killers) {
      out += "<tr>" + cell_html(mutant) + cell_html(scenario) + "</tr>\n";
    }
    out += std::string(kTableEnd) + "</details>\n";
  }
  out += "</section>\n";
}

void put_search(const Report& report, std::string& out) {
  if (!begin_section(report, "search", "Random timelines", "random timelines", out)) return;
  const Coverage& coverage = *report.coverage;
  out += "<p>Seed " + std::to_string(coverage.seed) + "; " + with_commas(coverage.branches) +
         " of the timelines branched from another one, " + with_commas(coverage.inconclusive) +
         " were inconclusive.</p>\n";
  put_flaws(flaws_of(coverage), out);
  put_findings(coverage, out);
  out += search_figures(coverage);
  put_marks(coverage, out);
  out += "</section>\n";
}

}  // namespace reprise::reports
