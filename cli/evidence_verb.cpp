#include "cli/evidence_verb.hpp"

#include "driver/runs/run.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {

void EvidenceVerb::declare_evidence(Options& options) {
  options.number(jobs_, "--jobs", 1, "number of threads")
      .text(report_, "--report", "DIR",
            "write report.json, junit.xml, report.html and summary.md there; if there already is a "
            "report, add to it")
      .flag(quiet_, "-q,--quiet", "don't print progress or long tables");
}

void EvidenceVerb::require_report(const std::string& mutant) {
  if (!mutant.empty()) sim::mutant_named(mutant);
  if (report_.empty()) return;
  if (!mutant.empty()) {
    throw Error(Code::kUsage,
                "a run with a mutant proves nothing about this program: leave out --report");
  }
  driver::require_writable(report_);
  started_ = driver::report_to_add_to(report_, reports::ReportLane::kSim).started;
}

void EvidenceVerb::add_to_report(const std::function<void(reports::Report&)>& add) const {
  if (report_.empty()) return;
  reports::Report report = driver::report_to_add_to(report_, reports::ReportLane::kSim);
  report.started = started_;
  add(report);
  report.verdict = overall(report);
  driver::write_report(report, report_);
}

}  // namespace reprise::cli
