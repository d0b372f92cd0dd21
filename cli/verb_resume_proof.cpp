#include <fmt/format.h>

#include "cli/frame/verb.hpp"
#include "cli/output/text_output.hpp"
#include "core/base/shell_word.hpp"
#include "driver/programs/resume_proof.hpp"
#include "driver/programs/verification_card.hpp"
#include "driver/runs/run.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr int kProofColumns = 120;

class ResumeProofVerb final : public Verb {
 public:
  std::string_view name() const override { return "resume-proof"; }
  std::string_view summary() const override {
    return "Judge a resumed run against an uninterrupted one, by their witness files";
  }
  std::string_view examples() const override {
    return "  reprise resume-proof a/witness b/witness --checkpoints b/checkpoints\n"
           "  reprise resume-proof a/witness b/witness cold/witness --report out\n"
           "  reprise resume-proof a/witness b/witness cold/witness --control again/witness \\\n"
           "      --checkpoints b/checkpoints --card card.yaml\n";
  }
  void declare(Options& options) override {
    options
        .positional(runs_, "RUN",
                    "folders of witness files: the uninterrupted run, the resumed run, and "
                    "optionally the resumed run's last life repeated without a load")
        .text(checkpoints_, "--checkpoints", "DIR",
              "the resumed run's checkpoints, which are then judged too")
        .text(control_, "--control", "DIR",
              "witness files of a second run of the lives that have another layout, each from the "
              "same checkpoint; those lives are compared with it instead of the uninterrupted run")
        .text(second_, "--second", "DIR",
              "witness files of a second uninterrupted run; where the two differ, the script is "
              "not deterministic, and the resumed run is not blamed")
        .text(card_, "--card", "FILE",
              "write the verdict there as an item of a model verification card (YAML)")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there");
  }

  ExitCode run(const Console& console) override {
    if (runs_.size() < 2 || runs_.size() > 3) {
      throw Error(Code::kUsage, "needs two or three runs: RUN_A RUN_B [COLD]");
    }
    require_text_place(card_, "the card");
    reports::Report report = driver::empty_report(reports::ReportLane::kProgram);
    report.scenarios.push_back(driver::prove_resume({.uninterrupted = runs_[0],
                                                     .resumed = runs_[1],
                                                     .cold = runs_.size() > 2 ? runs_[2] : "",
                                                     .control = control_,
                                                     .checkpoints = checkpoints_,
                                                     .second = second_}));
    report.scenarios.back().replay = replay();
    report.planned = 1;
    if (runs_.size() < 3) {
      report.not_claimed.emplace_back(
          "that a run that loads nothing would fail: no such run was given");
    }
    if (checkpoints_.empty()) {
      report.not_claimed.emplace_back("what the checkpoints contain: they were not given");
    }
    for (const auto& rank : report.scenarios.back().ranks) {
      for (const auto& excused : rank.excused)
        report.not_claimed.push_back("not judged: " + excused);
    }
    report.verdict = reports::overall(report);
    const int columns = console.out_width > 0 ? static_cast<int>(console.out_width) : kProofColumns;
    console.out << to_table(report, columns) << '\n' << to_rank_table(report.scenarios.back());
    for (const auto& claim : report.not_claimed) console.out << "\nnot claimed: " << claim << '\n';
    if (!report_.empty()) driver::write_report(report, report_);
    if (!card_.empty()) write_text(card_, driver::verification_card(report), "the card");
    console.out << fmt::format("\n{}: {}\n", reports::name_of(report.verdict), runs_[1]);
    return exit_code_for(report.verdict);
  }

 private:
  std::string replay() const {
    std::string line = "reprise resume-proof";
    for (const auto& run : runs_) line += " " + shell_word(run);
    if (!control_.empty()) line += " --control " + shell_word(control_);
    if (!second_.empty()) line += " --second " + shell_word(second_);
    if (!checkpoints_.empty()) line += " --checkpoints " + shell_word(checkpoints_);
    return line;
  }

  std::vector<std::string> runs_;
  std::string checkpoints_;
  std::string control_;
  std::string second_;
  std::string card_;
  std::string report_;
};

}  // namespace

std::unique_ptr<Verb> make_resume_proof() { return std::make_unique<ResumeProofVerb>(); }

}  // namespace reprise::cli
