#pragma once
// The common part of the verbs that read a whole checkpoint on all threads and tell what they
// found.

#include "cli/frame/verb.hpp"
#include "cli/output/progress_line.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/checkpoint/tensor_survey.hpp"

namespace reprise::cli {

class SurveyVerb : public Verb {
 protected:
  /// Declares --jobs, --json and --quiet.
  void declare_survey(Options& options) {
    options.jobs(threads_)
        .flag(json_, "--json", "print one JSON document")
        .flag(quiet_, "-q,--quiet", "no progress");
  }
  /// Returns what `work` returns, which gets the ports to read with.
  template <class Work>
  auto survey(const Console& console, const Work& work) const {
    PosixClock clock;
    ProgressLine progress(console, clock, name(),
                          quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes,
                          ProgressUnit::kBytes);
    HostDevice device("host", 0);
    ThreadTasks tasks(threads_);
    return work(SurveyPorts{device, tasks, progress});
  }
  bool json() const { return json_; }

 private:
  int threads_ = 1;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace reprise::cli
