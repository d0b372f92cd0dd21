#include "cli/arguments/health_limits.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc{} || end != text.end() || !(value >= 0) || std::isinf(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc{} || end != text.end()) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const std::string& text, const char* why) {
  throw Error(Code::kUsage, "--limit " + text + ": " + why);
}

}  // namespace

HealthLimits parse_health_limits(const std::vector<std::string>& texts) {
  HealthLimits limits;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) refuse(text, "not KIND=N, such as nan=0");
    const std::string_view value = std::string_view(text).substr(equals + 1);
    const std::string kind = text.substr(0, equals);
    if (kind == "nan" || kind == "inf") {
      const auto count = parse_count(value);
      if (!count) refuse(text, "not a count");
      (kind == "nan" ? limits.nan : limits.infinite) = *count;
    } else if (kind == "zeros" || kind == "denormals") {
      const auto share = parse_number(value);
      if (!share || *share > 1) refuse(text, "not a share from 0 to 1");
      (kind == "zeros" ? limits.zeros : limits.denormals) = share;
    } else if (kind == "abs" || kind == "abs-growth" || kind == "norm-growth") {
      const auto number = parse_number(value);
      if (!number) refuse(text, "not a number from 0 on");
      (kind == "abs"          ? limits.absolute
       : kind == "abs-growth" ? limits.absolute_growth
                              : limits.norm_growth) = number;
    } else {
      refuse(text, "the kinds are nan, inf, zeros, denormals, abs, abs-growth and norm-growth");
    }
  }
  return limits;
}

}  // namespace reprise::cli
