#pragma once
// Catches SIGINT, SIGTERM and SIGHUP, so that a long operation can check whether one has arrived
// and stop cleanly. A second signal ends the program at once.

#include <exception>
#include <string>
#include <string_view>

#include "cli/arguments/place_to_write.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/progress_line.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {

/// Returns the line for a user who interrupted a run that was to add to a report or write a file.
/// Empty if there is no such place.
std::string left_as_it_was(const std::string& place);

class Interrupts {
 public:
  /// Handles these signals while the object lives; SIGHUP stays ignored under nohup. Only one such
  /// object may exist at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// True once a signal has arrived.
  static bool came();
};

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Forwards progress. Once a signal has arrived, throws Interrupted instead, which ends the work.
class UntilInterrupted final : public Progress {
 public:
  explicit UntilInterrupted(Progress& shown) : shown_(shown) {}

  void advance(std::string_view what, std::uint64_t done, std::uint64_t total) override {
    if (Interrupts::came()) throw Interrupted();
    shown_.advance(what, done, total);
  }

 private:
  Progress& shown_;
};

/// Returns what `work` returns, which gets the progress to report to. Throws INCOMPLETE_SELECTED
/// after a signal, and says what is left of OUT. Directories that were made for OUT stay only if
/// `work` ended well.
template <class Work>
auto written_by(const Work& work, const StoredPath& out, std::string_view verb,
                const Console& console, ProgressLine::Shown shown) {
  PosixClock clock;
  ProgressLine progress(console, clock, verb, shown, ProgressUnit::kBytes);
  UntilInterrupted until(progress);
  NewParents parents(out);
  const Interrupts interrupts;
  try {
    auto report = work(until);
    parents.keep();
    return report;
  } catch (const Interrupted&) {
    throw Error(Code::kIncompleteSelected,
                "interrupted by a signal: " + left_by_interrupt(out, verb),
                {.file = out.display()});
  }
}

}  // namespace reprise::cli
