#include "core/format/step_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "reprise/error.hpp"

namespace reprise {
namespace {

/// What a save calls directories that are no checkpoint under their own name.
constexpr std::array<std::string_view, 3> kReserved = {".saving", ".replaced", ".removing"};
constexpr std::size_t kDigitsMax = 18;  // each number of so many digits is an int64

[[noreturn]] void refuse(const std::string& pattern) {
  throw Error(Code::kUsage,
              "step_names: '" + pattern +
                  "' does not contain exactly one number; write %d, or %07d for a number of "
                  "at least 7 digits, as in step-%d");
}

}  // namespace

StepNames::StepNames(const std::string& pattern) {
  const auto mark = pattern.find('%');
  const auto end = mark == std::string::npos ? mark : pattern.find('d', mark);
  if (end == std::string::npos || pattern.find('/') != std::string::npos) refuse(pattern);
  before_ = pattern.substr(0, mark);
  after_ = pattern.substr(end + 1);
  const std::string_view width = std::string_view(pattern).substr(mark + 1, end - mark - 1);
  const bool reserved = std::ranges::any_of(
      kReserved, [this](std::string_view word) { return after_.find(word) != std::string::npos; });
  if (reserved || after_.find('%') != std::string::npos) refuse(pattern);
  if (width.empty()) return;
  const auto [stop, error] =
      std::from_chars(width.data() + 1, width.data() + width.size(), digits_);
  const bool all = error == std::errc{} && stop == width.data() + width.size();
  if (width[0] != '0' || !all || digits_ < 1 || digits_ > kDigitsMax) refuse(pattern);
}

std::string StepNames::directory_of(Step step) const {
  std::string number = std::to_string(step.value);
  if (number.size() < digits_) number.insert(0, digits_ - number.size(), '0');
  return before_ + number + after_;
}

std::optional<Step> StepNames::step_of(std::string_view name) const {
  if (name.size() <= before_.size() + after_.size() || !name.starts_with(before_) ||
      !name.ends_with(after_)) {
    return std::nullopt;
  }
  const std::string_view number =
      name.substr(before_.size(), name.size() - before_.size() - after_.size());
  Step step{};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), step.value);
  const bool all = error == std::errc{} && end == number.data() + number.size();
  if (!all || step.value < 0 || directory_of(step) != name) return std::nullopt;
  return step;
}

std::optional<Step> step_in_any_name(std::string_view name) {
  for (const char* pattern : {"iter_%07d", "step-%d", "step_%d", "checkpoint-%d", "checkpoint_%d",
                              "global_step%d", "global_step_%d"}) {
    if (const auto step = StepNames(pattern).step_of(name)) return step;
  }
  return std::nullopt;
}

}  // namespace reprise
