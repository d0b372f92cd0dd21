#pragma once
// The common part of the verbs that make many runs and add what these show to a report: the
// subjects of `reprise search`, and `reprise mutants`.

#include <cstdint>
#include <functional>
#include <string>

#include "cli/arguments/part_of_work.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/progress_line.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "reports/report.hpp"

namespace reprise::cli {

class EvidenceVerb : public Verb {
 protected:
  /// Declares --jobs, --report and --quiet.
  void declare_evidence(Options& options);
  /// Refuses, before the work, a --report to which nothing can be added, an unknown mutant, and a
  /// report of runs with a mutant.
  void require_report(const std::string& mutant = {});
  /// Adds to the report; does nothing without --report.
  void add_to_report(const std::function<void(reports::Report&)>& add) const;

  std::size_t jobs() const { return static_cast<std::size_t>(jobs_); }
  ProgressLine progress_line(const Console& console) {
    return {console, clock_, name(),
            quiet_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes};
  }

  std::string report_;
  bool quiet_ = false;

 private:
  std::int64_t jobs_ = 1;
  std::string started_;
  PosixClock clock_;
};

}  // namespace reprise::cli
