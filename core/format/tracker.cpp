#include "core/format/tracker.hpp"

#include <algorithm>
#include <charconv>

#include "core/format/step_names.hpp"

namespace reprise {

namespace {

constexpr std::size_t kTrackerSizeMax = 4096;
constexpr std::string_view kSpace = " \t\r\n\f\v";

std::optional<Step> step_in(std::string_view digits) {
  Step step;
  const char* end = digits.data() + digits.size();
  if (digits.empty() || digits.front() == '-') return std::nullopt;
  const auto [stop, error] = std::from_chars(digits.data(), end, step.value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return step;
}

}  // namespace

Tracker read_tracker(ByteSpan bytes, const ErrorPlace& place) {
  if (bytes.size() > kTrackerSizeMax) {
    throw Error(Code::kLimit, "too long for a tracker, which holds an iteration or 'release'",
                place);
  }
  const std::string_view text = as_text(bytes);
  const std::size_t first = std::min(text.find_first_not_of(kSpace), text.size());
  const std::size_t last = text.find_last_not_of(kSpace);
  const std::string_view word =
      first == text.size() ? std::string_view() : text.substr(first, last + 1 - first);
  if (word == kReleaseDirectory) return {};
  const auto step = step_in(word);
  if (!step) {
    ErrorPlace at = place;
    at.offset = place.offset.value_or(0) + first;
    throw Error(Code::kTornFile,
                "a tracker must hold an iteration or 'release', but this is neither", at);
  }
  return {step};
}

Bytes write_tracker(const Tracker& tracker) {
  return tracker.step ? to_bytes(std::to_string(tracker.step->value)) : to_bytes(kReleaseDirectory);
}

std::string directory_of(const Tracker& tracker) {
  return tracker.step ? StepNames().directory_of(*tracker.step) : std::string(kReleaseDirectory);
}

std::optional<Tracker> tracker_of_directory(std::string_view name) {
  if (name == kReleaseDirectory) return Tracker{};
  const auto step = StepNames().step_of(name);
  return step ? std::optional(Tracker{step}) : std::nullopt;
}

}  // namespace reprise
