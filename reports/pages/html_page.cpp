#include <algorithm>

#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/base/sha256.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html_sections.hpp"
#include "reports/pages/html_style.hpp"
#include "reports/pages/pages.hpp"
#include "reports/pages/picture.hpp"

namespace reprise::reports {
namespace {

/// Returns the digest in base 64, as a content security policy needs it.
std::string base64_of(const Sha256Digest& digest) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  const auto put = [&](std::uint32_t byte) {
    bits = bits << 8U | byte;
    count += 8;
    for (; count >= 6; count -= 6) out += kLetters[bits >> (count - 6) & 63U];
  };
  for (const auto byte : digest) put(std::to_integer<std::uint32_t>(byte));
  // 32 bytes leave two bits, which become a letter of their own and one sign that fills up.
  if (count > 0) out += kLetters[bits << (6 - count) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string source_of(std::string_view text) {
  return "'sha256-" + base64_of(sha256_of(as_bytes(text))) + "'";
}

void put_fact(std::string_view name, std::string_view value, std::string& out) {
  if (!value.empty()) {
    out += "<dt>" + std::string(name) + "</dt><dd>" + in_html(value) + "</dd>\n";
  }
}

std::string machine_of(const Machine& machine) {
  std::string text = machine.cpu + ", " + human_bytes(machine.memory);
  for (const auto& gpu : machine.gpus) text += ", GPU " + gpu;
  if (!machine.mpi.empty()) text += ", MPI " + machine.mpi;
  if (!machine.nccl.empty()) text += ", NCCL " + machine.nccl;
  if (!machine.cuda.empty()) text += ", CUDA " + machine.cuda;
  return text;
}

void put_verdict(const Report& report, const std::string& word, const std::string& sha256,
                 std::string& out) {
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
    out += "<p class=\"warning\">The run had the mutant " + in_html(report.mutant) +
           " switched on: it says nothing about the program itself.</p>\n";
  }
  out += "<dl>\n";
  put_fact("commit", commit_of(report), out);
  put_fact("build", report.project.build, out);
  put_fact("lane", name_of(report.lane), out);
  put_fact("machine", machine_of(report.machine), out);
  put_fact("started", report.started, out);
  put_fact("duration", fixed(report.seconds, 1) + " s", out);
  put_fact("seed", std::to_string(report.seed), out);
  put_fact("report.json", "SHA-256 " + sha256, out);
  out += "</dl>\n</header>\n";
}

void put_contents(const Report& report, bool history, std::string& out) {
  struct Entry {
    const char* id;
    const char* title;
    bool shown;
  };
  const bool ran = !is_of_files(report);
  const Entry entries[] = {
      {"evidence", "What it shows", true}, {"problems", "Problems", true},
      {"properties", "Properties", ran},   {"pairs", "Pairs of layouts", ran},
      {"mutants", "Mutants", ran},         {"matrix", "Matrix", ran},
      {"search", "Random timelines", ran}, {"scenarios", ran ? "Scenarios" : "Results", true},
      {"history", "History", history}};
  out += "<nav aria-label=\"Sections\">";
  for (const auto& [id, title, shown] : entries) {
    if (shown) out += std::string("<a href=\"#") + id + "\">" + title + "</a>";
  }
  out += "</nav>\n";
}

}  // namespace

std::string page_html(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; style-src " +
         source_of(page_style()) + "; script-src " + source_of(page_script()) +
         "; base-uri 'none'; form-action 'none'\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         in_html(title) + "</title>\n<style>" + std::string(page_style()) +
         "</style>\n</head>\n<body>\n" + body + "<script>" + std::string(page_script()) +
         "</script>\n</body>\n</html>\n";
}

std::string verdict_html(std::string_view verdict) {
  std::string word(verdict);
  std::ranges::replace(word, '_', ' ');
  const std::string first = word.substr(0, word.find_first_of(" :"));
  const char* sign = first == "pass"           ? "\xe2\x9c\x93"
                     : first == "not"          ? "\xe2\x80\x93"
                     : first == "inconclusive" ? "?"
                                               : "\xe2\x9c\x97";
  return "<span class=\"v " + in_html(first) + "\"><span aria-hidden=\"true\">" + sign +
         "</span> " + in_html(word) + "</span>";
}

std::string cell_html(std::string_view text) { return "<td>" + in_html(text) + "</td>"; }

std::string count_html(std::string_view number) {
  return "<td class=\"n\">" + in_html(number) + "</td>";
}

std::string table_head(const std::vector<std::string>& columns) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const auto& column : columns) out += "<th scope=\"col\">" + in_html(column) + "</th>";
  return out + "</tr></thead><tbody>\n";
}

std::string to_html(const Report& report, const std::string& report_sha256,
                    std::span<const PastReport> earlier) {
  const Standing standing(report, earlier);
  const auto problems = problems_of(report);
  const std::string word = verdict_word(report, problems);
  std::string body;
  put_verdict(report, word, report_sha256, body);
  put_contents(report, standing.is_known(), body);
  body += "<main>\n";
  put_evidence(report, problems.empty(), body);
  put_problems(report, problems, standing, body);
  put_history(standing, body);
  if (!is_of_files(report)) {
    put_properties(report, body);
    put_pairs(report, body);
    put_mutants(report, body);
    put_matrix(report, body);
    put_search(report, body);
  }
  put_scenarios(report, body);
  body += "</main>\n<footer>Made from report.json (SHA-256 " + in_html(report_sha256) +
          ") by reprise.</footer>\n";
  return page_html("Reprise: " + word + ", lane " + name_of(report.lane) + ", commit " +
                       clipped(report.project.commit, 12),
                   body);
}

}  // namespace reprise::reports
