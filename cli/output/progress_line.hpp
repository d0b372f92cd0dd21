#pragma once
// Shows the progress of a long operation on stderr: on a terminal as one line, which appears after
// the first second; elsewhere, such as in the log of a CI, as a line a minute.

#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/output/console.hpp"
#include "core/ports/clock.hpp"
#include "reprise/inspect.hpp"

namespace reprise::cli {

/// The things that a long operation counts.
enum class ProgressUnit : std::uint8_t { kBytes, kItems };

/// The progress that a long operation has made.
struct ProgressState {
  std::string_view what;  ///< what it works on now
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t elapsed_ns = 0;
};

/// Returns, for example, "verify  42 %  1.20 GiB/s  0:31 left  layers.3.weight". The rate is the
/// average so far; only bytes have one. The text has at most 79 characters: a long name is
/// shortened in the middle, and left out if there is no room for it.
std::string progress_text(std::string_view verb, const ProgressState& state, ProgressUnit unit);

class ProgressLine final : public Progress {
 public:
  enum class Shown : std::uint8_t { kYes, kNever };

  ProgressLine(const Console& console, Clock& clock, std::string_view verb, Shown shown,
               ProgressUnit unit = ProgressUnit::kItems);
  /// Clears the line.
  ~ProgressLine() override;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Any thread may call this.
  void advance(std::string_view what, std::uint64_t done, std::uint64_t total) override;
  /// Shows this text, after the verb, in place of the one before. It must fit on the line.
  void show(std::string_view text);

 private:
  /// True if the line is to be drawn now.
  bool due();
  void put(const std::string& line);

  std::mutex mutex_;
  std::ostream& out_;
  Clock& clock_;
  std::string_view verb_;
  bool enabled_;
  bool terminal_;
  ProgressUnit unit_;
  bool drawn_ = false;
  std::uint64_t start_ns_;
  std::uint64_t next_ns_;  ///< when the line may be drawn again
};

}  // namespace reprise::cli
