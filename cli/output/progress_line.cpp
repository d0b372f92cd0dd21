#include "cli/output/progress_line.hpp"

#include <fmt/format.h>

#include "cli/output/table.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kFirstNs = 1'000'000'000;
constexpr std::uint64_t kEveryNs = 100'000'000;
constexpr std::string_view kClear = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(const Console& console, Clock& clock, std::string_view verb, Shown shown)
    : out_(*console.terminal),
      clock_(clock),
      verb_(verb),
      enabled_(console.err_is_terminal && shown == Shown::kIfTerminal),
      next_ns_(clock.now_ns() + kFirstNs) {}

ProgressLine::~ProgressLine() {
  if (drawn_) out_ << kClear << std::flush;
}

void ProgressLine::advance(std::string_view what, std::uint64_t done, std::uint64_t total) {
  const double share = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  show(fmt::format("{:3.0f} %  {}", share * 100, shorten_middle(printable(what), 60)));
}

void ProgressLine::show(std::string_view text) {
  if (!enabled_ || clock_.now_ns() < next_ns_) return;
  next_ns_ = clock_.now_ns() + kEveryNs;
  drawn_ = true;
  out_ << kClear << verb_ << ' ' << text << std::flush;
}

}  // namespace reprise::cli
