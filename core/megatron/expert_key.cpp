#include "core/megatron/expert_key.hpp"

#include <algorithm>
#include <charconv>
#include <span>

namespace reprise {
namespace {

using namespace std::string_view_literals;

std::string joined(std::span<const std::string> parts) {
  std::string key;
  for (const std::string& part : parts) key += (key.empty() ? "" : ".") + part;
  return key;
}

/// If the part is the name of a weight or bias with a number, returns the number and puts a star
/// into its place.
std::optional<std::int64_t> take_number(std::string& part) {
  for (const std::string_view name : {"weight"sv, "bias"sv}) {
    if (!part.starts_with(name)) continue;
    const std::size_t end = std::min(part.find('_'), part.size());
    const auto number =
        number_of_part(std::string_view(part).substr(name.size(), end - name.size()));
    if (number) part.replace(name.size(), end - name.size(), "*");
    return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> number_of_part(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

std::vector<std::string_view> parts_of_key(std::string_view key) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto dot = key.find('.');
    parts.push_back(key.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

bool is_of_optimizer(std::string_view key) {
  return std::ranges::any_of(parts_of_key(key), [](std::string_view part) {
    return part == "optimizer" || part == "optim" || part == "optimizers";
  });
}

std::optional<std::string> without_part(std::string_view key, std::string_view moment) {
  std::string rest;
  bool found = false;
  for (const std::string_view part : parts_of_key(key)) {
    if (!found && part == moment) {
      found = true;
    } else {
      rest += (rest.empty() ? "" : ".") + std::string(part);
    }
  }
  return found ? std::optional(rest) : std::nullopt;
}

std::optional<ExpertKey> parse_expert_key(std::string_view key) {
  const auto views = parts_of_key(key);
  std::vector<std::string> parts(views.begin(), views.end());
  const auto experts = std::ranges::find(parts, "experts");
  if (experts == parts.end() || experts + 1 == parts.end()) return std::nullopt;
  ExpertKey parsed;
  for (auto part = parts.begin(); part != experts; ++part) parsed.layer += *part + '.';
  auto at = experts + 1;
  while (at + 1 != parts.end() && (*at == "experts" || *at == "local_experts")) ++at;
  parsed.number = number_of_part(*at);
  if (parsed.number) {
    *at = "*";
  } else {
    parsed.number = take_number(parts.back());
  }
  parsed.series = joined(parts);
  return parsed;
}

}  // namespace reprise
