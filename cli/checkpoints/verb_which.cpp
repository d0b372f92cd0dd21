#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/store_path.hpp"
#include "core/resume/resume_point.hpp"
#include "core/verify/verify.hpp"

namespace reprise::cli {
namespace {

/// A resume point, and what `verify` says of it without reading payload.
struct Judged {
  ResumePoint point;
  std::string path;         ///< as the user would write it; empty if there is none
  std::string problem;      ///< what is damaged or missing
  std::string not_checked;  ///< why nothing is known of that

  ExitCode exit_code() const {
    if (!problem.empty()) return ExitCode::kFail;
    return path.empty() || !not_checked.empty() ? ExitCode::kInconclusive : ExitCode::kPass;
  }
  std::string remark() const {
    if (!problem.empty()) return "damaged: " + problem;
    return not_checked.empty() ? "" : "not checked: " + not_checked;
  }
};

class WhichVerb final : public Verb {
 public:
  std::string_view name() const override { return "which"; }
  std::string_view summary() const override {
    return "Say from which checkpoint of a directory a job would resume";
  }
  std::string_view examples() const override {
    return "  reprise which runs/llm                          for each program with checkpoints "
           "there\n"
           "  reprise which runs/llm --for torchtitan         only the path, for a job script\n"
           "  ckpt=$(reprise which runs/llm --for verl) && python train.py --resume \"$ckpt\"\n"
           "  reprise which --json runs/llm | jq '.points[].passed'\n"
           "Exits with 0 if each program that is shown has a checkpoint to resume from in which, "
           "as far\n"
           "as names and sizes tell, nothing is missing; 1 if one would resume from something "
           "damaged;\n"
           "3 if one has nothing to resume from.\n";
  }
  void declare(Options& options) override {
    options.positional(path_, "ROOT", "directory with the checkpoints of a run")
        .text(for_, "--for", "PROGRAM",
              "print only the path from which this program resumes: " +
                  join(programs_that_resume(), ", "))
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    const std::vector<std::string> known = programs_that_resume();
    if (!for_.empty() && std::ranges::find(known, for_) == known.end()) {
      throw Error(Code::kUsage, "--for " + for_ + ": not one of " + join(known, ", "));
    }
    const StoredPath stored = stored_path(path_);
    std::vector<Judged> judged;
    for (ResumePoint& point : resume_points(*stored.store, stored.path)) {
      if (for_.empty() || point.program == for_) judged.push_back(judge(stored, std::move(point)));
    }
    if (judged.empty()) {
      throw Error(Code::kNotFound,
                  "no checkpoint has a name that " +
                      (for_.empty() ? std::string("a known program") : for_) + " gives",
                  {.file = stored.store->display(stored.path)});
    }
    if (json_) {
      console.out << which_json(judged);
    } else if (for_.empty()) {
      print(judged, console);
    } else if (!judged.front().path.empty()) {
      console.out << judged.front().path << '\n';
    }
    return answer(judged, console);
  }

 private:
  static Judged judge(const StoredPath& stored, ResumePoint point) {
    Judged judged{.point = std::move(point), .path = {}, .problem = {}, .not_checked = {}};
    if (judged.point.name.empty()) return judged;
    const std::string path = join_path(stored.path, judged.point.name);
    judged.path = stored.store->display(path);
    check(*stored.store, path, judged);
    if (judged.not_checked.empty()) return judged;
    // Some programs have a checkpoint of each module in directories of their own, such as actor/.
    const std::string why = std::exchange(judged.not_checked, {});
    std::size_t checked = 0;
    for (const std::string& within : directories_in(*stored.store, path)) {
      Judged one{.point = {}, .path = {}, .problem = {}, .not_checked = {}};
      check(*stored.store, within, one);
      if (one.not_checked.empty()) ++checked;
      if (judged.problem.empty()) judged.problem = one.problem;
    }
    if (checked == 0) judged.not_checked = why;
    return judged;
  }

  static void check(Store& store, const std::string& path, Judged& judged) {
    try {
      NoProgress progress;
      const VerifyReport report = verify(store, path, PayloadCheck::kSkip, progress);
      const auto error = std::ranges::find(report.findings, Severity::kError, &Finding::severity);
      if (report.vacuous()) judged.not_checked = "there is nothing in it";
      if (error == report.findings.end()) return;
      (report.verdict() == VerifyVerdict::kDamaged ? judged.problem : judged.not_checked) =
          error->message;
    } catch (const Error& error) {
      judged.not_checked = error.message();
    }
  }

  static std::vector<std::string> directories_in(Store& store, const std::string& path) {
    std::vector<std::string> directories;
    const auto entry = store.stat(path);
    if (!entry || !entry->directory) return directories;
    for (const Entry& one : store.list(path)) {
      if (one.directory) directories.push_back(join_path(path, one.name));
    }
    return directories;
  }

  static void print(const std::vector<Judged>& judged, const Console& console) {
    Table table({{"program"}, {"resumes from"}, {"why"}});
    Table passed({{"passed over"}, {"by"}, {"why"}});
    for (const Judged& one : judged) {
      table.add({one.point.program, one.point.name.empty() ? "nothing" : printable(one.point.name),
                 printable(one.point.why)});
      for (const PassedOver& other : one.point.passed) {
        passed.add({printable(other.name), one.point.program, printable(other.why)});
      }
    }
    table.print(console);
    if (passed.empty()) return;
    console.out << '\n';
    passed.print(console);
  }

  /// Says what is damaged or missing, and returns the worst exit code.
  ExitCode answer(const std::vector<Judged>& judged, const Console& console) const {
    ExitCode worst = ExitCode::kPass;
    for (const Judged& one : judged) {
      const std::string remark = one.path.empty() ? one.point.why : one.remark();
      if (!remark.empty() && (!one.path.empty() || !for_.empty())) {
        console.err << fmt::format("reprise which: {}: {}{}\n", one.point.program,
                                   one.path.empty() ? "" : printable(one.point.name) + ": ",
                                   printable(remark));
      }
      const ExitCode code = one.exit_code();
      if (code == ExitCode::kFail || worst == ExitCode::kPass) worst = code;
    }
    return worst;
  }

  static std::string which_json(const std::vector<Judged>& judged) {
    nlohmann::json points = nlohmann::json::array();
    const auto text = [](const std::string& value) {
      return value.empty() ? nlohmann::json(nullptr) : nlohmann::json(value);
    };
    for (const Judged& one : judged) {
      nlohmann::json passed = nlohmann::json::array();
      for (const PassedOver& other : one.point.passed) {
        passed.push_back({{"name", other.name}, {"why", other.why}});
      }
      points.push_back({{"program", one.point.program},
                        {"path", text(one.path)},
                        {"why", one.point.why},
                        {"damaged", text(one.problem)},
                        {"not_checked", text(one.not_checked)},
                        {"passed", std::move(passed)}});
    }
    return json_text({{"points", points}});
  }

  std::string path_;
  std::string for_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_which() { return std::make_unique<WhichVerb>(); }

}  // namespace reprise::cli
