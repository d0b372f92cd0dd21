#pragma once
// Shows the progress of a long operation as one line on stderr. The line appears only after the
// first second, and only on a terminal.

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/output/console.hpp"
#include "core/ports/clock.hpp"
#include "reprise/inspect.hpp"

namespace reprise::cli {

class ProgressLine final : public Progress {
 public:
  enum class Shown : std::uint8_t { kIfTerminal, kNever };

  ProgressLine(const Console& console, Clock& clock, std::string_view verb, Shown shown);
  /// Clears the line.
  ~ProgressLine() override;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void advance(std::string_view what, std::uint64_t done, std::uint64_t total) override;
  /// Shows this text, after the verb, in place of the one before. It must fit on the line.
  void show(std::string_view text);

 private:
  std::ostream& out_;
  Clock& clock_;
  std::string_view verb_;
  bool enabled_;
  bool drawn_ = false;
  std::uint64_t next_ns_ = 0;  ///< when the line may be drawn again
};

}  // namespace reprise::cli
