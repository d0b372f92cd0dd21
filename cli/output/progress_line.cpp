#include "cli/output/progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/output/table.hpp"
#include "core/base/characters.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kFirstNs = 1'000'000'000;
constexpr std::uint64_t kEveryNs = 100'000'000;
constexpr std::uint64_t kLogEveryNs = 60'000'000'000;
constexpr std::string_view kClear = "\r\x1b[K";
constexpr std::size_t kColumnsMax = 79;  // a full line would wrap on a terminal of 80 columns

/// Returns "0:05", "12:30" or "1:02:03".
std::string time_left(double seconds) {
  constexpr double kMost = 1e6;  // 11 days
  const auto all = static_cast<std::uint64_t>(std::llround(std::min(seconds, kMost)));
  const std::uint64_t minutes = all / 60 % 60;
  if (all < 3600) return fmt::format("{}:{:02}", minutes, all % 60);
  return fmt::format("{}:{:02}:{:02}", all / 3600, minutes, all % 60);
}

}  // namespace

std::string progress_text(std::string_view verb, const ProgressState& state, ProgressUnit unit) {
  const double share =
      state.total == 0 ? 1.0 : static_cast<double>(state.done) / static_cast<double>(state.total);
  std::string text = fmt::format("{} {:3.0f} %", verb, share * 100);
  if (state.done > 0 && state.elapsed_ns > 0) {
    const double seconds = static_cast<double>(state.elapsed_ns) * 1e-9;
    const double rate = static_cast<double>(state.done) / seconds;
    if (unit == ProgressUnit::kBytes) {
      text += fmt::format("  {}/s", human_bytes(static_cast<std::uint64_t>(rate)));
    }
    if (state.done < state.total) {
      text += "  " + time_left(static_cast<double>(state.total - state.done) / rate) + " left";
    }
  }
  const std::size_t room = kColumnsMax - std::min(kColumnsMax, text.size() + 2);
  const std::string name = shorten_middle(printable(state.what), std::max<std::size_t>(room, 5));
  return characters_in(name) <= room ? text + "  " + name : text;
}

ProgressLine::ProgressLine(const Console& console, Clock& clock, std::string_view verb, Shown shown,
                           ProgressUnit unit)
    : out_(*console.terminal),
      clock_(clock),
      verb_(verb),
      enabled_(shown == Shown::kYes),
      terminal_(console.err_is_terminal),
      unit_(unit),
      start_ns_(clock.now_ns()),
      next_ns_(start_ns_ + (terminal_ ? kFirstNs : kLogEveryNs)) {}

ProgressLine::~ProgressLine() {
  if (drawn_ && terminal_) out_ << kClear << std::flush;
}

void ProgressLine::advance(std::string_view what, std::uint64_t done, std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  if (!due()) return;
  put(progress_text(verb_, {what, done, total, clock_.now_ns() - start_ns_}, unit_));
}

void ProgressLine::show(std::string_view text) {
  if (due()) put(std::string(verb_) + ' ' + std::string(text));
}

bool ProgressLine::due() {
  if (!enabled_ || clock_.now_ns() < next_ns_) return false;
  next_ns_ = clock_.now_ns() + (terminal_ ? kEveryNs : kLogEveryNs);
  drawn_ = true;
  return true;
}

void ProgressLine::put(const std::string& line) {
  if (terminal_) {
    out_ << kClear << line << std::flush;
  } else {
    out_ << line << std::endl;
  }
}

}  // namespace reprise::cli
