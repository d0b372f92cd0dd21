#include <algorithm>

#include "core/base/print.hpp"
#include "reports/cause.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html_sections.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

/// Scenarios that get a block with pictures. Further ones get a line.
constexpr std::size_t kBlocksMax = 60;

/// Returns a row of facts; nothing if the value is empty.
std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return "<dt>" + in_html(name) + "</dt><dd>" + in_html(value) + "</dd>";
}

/// Writes where it failed, the values, and what follows from it.
void put_failure(const ScenarioResult& result, SideWords words, std::string& out) {
  const auto fields = fields_of(result);
  if (fields.empty()) return;
  out += "<h4>Where</h4><dl>";
  for (const auto& [name, text] : fields) {
    out += fact(name == "saved" ? words.left : name == "loaded" ? words.right : name, text);
  }
  out += "</dl>\n";
}

/// Keys that are wrong on some rank, with the kind of trouble and the ranks.
void put_keys(const ScenarioResult& result, bool job, std::string& out) {
  constexpr std::size_t kKeysMax = 100;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> ranks;
  for (const auto& rank : result.ranks) {
    const std::pair<const std::vector<std::string>&, const char*> lists[] = {
        {rank.not_stored, job ? "not stored" : "only in B"},
        {rank.not_requested, job ? "stored but not requested" : "only in A"},
        {rank.shape_mismatches, "other shape"},
        {rank.dtype_mismatches, "other dtype"}};
    for (const auto& [keys, trouble] : lists) {
      for (const auto& key : keys) {
        if (std::ranges::find(rank.excused, key) != rank.excused.end()) continue;
        ranks[{key, trouble}].push_back(std::to_string(rank.rank));
      }
    }
  }
  if (ranks.empty()) return;
  out += "<details><summary>" + counted(ranks.size(), "wrong key") + "</summary>" +
         table_head(job ? std::vector<std::string>{"key", "trouble", "ranks"}
                        : std::vector<std::string>{"key", "trouble"});
  std::size_t rows = 0;
  for (const auto& [what, on] : ranks) {
    if (++rows > kKeysMax) break;
    out += "<tr>" + cell_html(what.first) + cell_html(what.second) +
           (job ? cell_html(join_first(on, 16)) : "") + "</tr>\n";
  }
  out += kTableEnd;
  if (ranks.size() > kKeysMax) {
    out += "<p>" + counted(ranks.size() - kKeysMax, "more key") + ": see report.json.</p>";
  }
  out += "</details>\n";
}

void put_rank_table(const ScenarioResult& result, std::string& out) {
  if (result.ranks.empty()) return;
  out += "<details><summary>What each rank compared</summary><pre>" +
         in_html(to_rank_table(result)) + "</pre></details>\n";
}

void put_replay(const std::string& replay, std::string& out) {
  if (replay.empty()) return;
  out += "<h4>See it again</h4><p class=\"replay\"><code>" + in_html(replay) +
         "</code><button type=\"button\" class=\"copy scripted\" hidden>Copy</button></p>\n";
}

/// Returns the cause alone, if it is known; otherwise the whole reason.
std::string reason_of(const ScenarioResult& result) {
  if (result.failure && !result.failure->cause.empty()) return result.failure->cause;
  return result.reason.empty() ? "no reason is given" : result.reason;
}

/// Writes how the scenario ended in the earlier reports, if there are any.
void put_strip(const Standing& standing, const std::string& subject, std::string& out) {
  const std::string letters = standing.letters_of(subject);
  if (letters.empty()) return;
  out += "<p>Oldest report to this one: " + strip_html(letters) + "</p>\n";
}

/// Writes what the ranks held and how the losses went. Without a job there is neither.
void put_course(const ScenarioResult& result, std::string& out) {
  out += lives_figure(result) + generations_figure(result) + ranks_figure(result) +
         wrong_keys_figure(result) + spacetime_figure(result);
  put_keys(result, true, out);
  put_rank_table(result, out);
  const std::string loss = loss_figure(result);
  out += loss.empty() ? "<p class=\"quiet\">" + in_html(loss_sentence(result)) + "</p>\n" : loss;
}

void put_block(const Problem& problem, const Report& report, const Standing& standing,
               std::string& out) {
  ScenarioResult result = *problem.scenario;
  restate_failure(result);  // older reports have none
  out += "<article class=\"" + name_of(result.verdict) + "\"><h3>" +
         verdict_html(name_of(result.verdict)) + " " + in_html(result.name) +
         status_html(standing, problem.subject) + "</h3>\n<p>";
  if (!result.code.empty()) out += "<strong>" + in_html(result.code) + "</strong> ";
  out += "<span class=\"reason\">" + in_html(reason_of(result)) + "</span></p>\n";
  put_replay(problem.fix, out);
  put_strip(standing, problem.subject, out);
  put_failure(result, side_words(report), out);
  if (result.failure) out += placement_figures(*result.failure);
  if (is_of_files(report)) {
    put_keys(result, false, out);
  } else {
    put_course(result, out);
  }
  out += "<details><summary>More about this " +
         std::string(is_of_files(report) ? "result" : "scenario") + "</summary><dl>" +
         fact("proves", result.proves) + fact("file", result.file) +
         fact("layouts", layouts_of(result)) +
         fact("world", result.world == 0 ? "" : std::to_string(result.world)) +
         fact("seconds", fixed(result.seconds, 3)) + fact("diagnosis", result.diagnosis) +
         fact("event hash", result.event_hash) + fact("content digest", result.content_digest) +
         "</dl></details>\n</article>\n";
}

/// Writes the problems that concern no scenario.
void put_plain(const std::vector<const Problem*>& problems, const Standing& standing,
               std::string& out) {
  if (problems.empty()) return;
  out += "<ul>\n";
  for (const auto* problem : problems) {
    out += "<li><strong>" + in_html(problem->subject) + "</strong>" +
           status_html(standing, problem->subject) + ": " + in_html(problem->reason);
    if (!problem->fix.empty())
      out += "<br><span class=\"quiet\">" + in_html(problem->fix) + "</span>";
    out += "</li>\n";
  }
  out += "</ul>\n";
}

/// Writes the scenarios that get no block.
void put_further(const std::vector<const Problem*>& problems, const Standing& standing,
                 std::string& out) {
  if (problems.empty()) return;
  out += "<h3>" + counted(problems.size(), "more scenario") + "</h3>\n" +
         table_head({"verdict", "scenario", "reason", "see it again"});
  for (const auto* problem : problems) {
    out += "<tr><td>" + verdict_html(name_of(problem->verdict)) +
           status_html(standing, problem->subject) + "</td>" + cell_html(problem->subject) +
           cell_html(problem->reason) + cell_html(problem->fix) + "</tr>\n";
  }
  out += kTableEnd;
}

/// Lists the scenarios that passed only after a deadline had ended them once.
void put_second_tries(const Report& report, std::string& out) {
  std::string rows;
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kPass) continue;
    for (const auto& earlier : result.earlier_tries) {
      rows += "<tr>" + cell_html(result.name) + cell_html(ending_of(earlier)) + "</tr>\n";
    }
  }
  if (rows.empty()) return;
  out += "<h3>Passed on the second try</h3>\n" +
         table_head({"scenario", "how the first try ended"}) + rows + kTableEnd;
}

}  // namespace

void put_problems(const Report& report, const std::vector<Problem>& problems,
                  const Standing& standing, std::string& out) {
  out += "<section id=\"problems\"><h2>Problems</h2>\n";
  if (problems.empty()) {
    const bool passes = report.verdict == Verdict::kPass;
    out += std::string("<p>") + (passes ? "None in what was run." : "Nothing was run.") +
           " The section above says what was not run.</p>\n";
  }
  const auto shared = shared_causes(report.scenarios);
  if (!shared.empty()) {
    out += "<ul>\n";
    for (const auto& cause : shared) out += "<li>" + in_html(cause) + "</li>\n";
    out += "</ul>\n";
  }
  std::vector<const Problem*> plain;
  std::vector<const Problem*> further;
  std::size_t blocks = 0;
  for (const auto& problem : problems) {
    if (problem.scenario == nullptr) plain.push_back(&problem);
  }
  put_plain(plain, standing, out);
  for (const auto& problem : problems) {
    if (problem.scenario == nullptr) continue;
    if (blocks == kBlocksMax) {
      further.push_back(&problem);
    } else {
      ++blocks;
      put_block(problem, report, standing, out);
    }
  }
  put_further(further, standing, out);
  put_second_tries(report, out);
  out += "</section>\n";
}

}  // namespace reprise::reports
