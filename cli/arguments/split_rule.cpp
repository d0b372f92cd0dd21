#include "cli/arguments/split_rule.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "cli/keys/key_pattern.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr std::int64_t kPartsMax = 65536;

struct SplitRule {
  KeyPattern pattern;
  Cut cut;
};

std::int64_t number_in(std::string_view digits, const std::string& word) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) {
    throw Error(Code::kUsage, "--split '" + word + "' is not of the form REGEX=DIM:N");
  }
  return value;
}

/// Parses REGEX=DIM:N. The expression may contain '=' and ':' too, so the last '=' ends the
/// expression and the last ':' ends the dimension.
SplitRule parse(const std::string& word) {
  const auto equals = word.rfind('=');
  const auto colon = word.rfind(':');
  if (equals == std::string::npos || colon == std::string::npos || colon < equals) {
    throw Error(Code::kUsage, "--split '" + word + "' is not of the form REGEX=DIM:N");
  }
  const std::string_view text(word);
  const auto dim = number_in(text.substr(equals + 1, colon - equals - 1), word);
  const auto parts = number_in(text.substr(colon + 1), word);
  if (parts > kPartsMax) {
    throw Error(Code::kUsage, "--split '" + word + "' asks for more than " +
                                  std::to_string(kPartsMax) + " parts");
  }
  if (parts < 1) throw Error(Code::kUsage, "--split '" + word + "' asks for no parts");
  return {KeyPattern(word.substr(0, equals), "--split"), {static_cast<std::size_t>(dim), parts}};
}

}  // namespace

CutRule cut_rule(const std::vector<std::string>& splits, std::int64_t ranks) {
  if (ranks > kPartsMax) {
    throw Error(Code::kUsage, "--ranks is more than " + std::to_string(kPartsMax));
  }
  std::vector<SplitRule> rules;
  for (const auto& word : splits) rules.push_back(parse(word));
  return [rules, ranks](const std::string& key, const Dims& shape) -> std::optional<Cut> {
    for (const SplitRule& rule : rules) {
      if (rule.cut.dim < shape.size() && rule.pattern.found_in(key)) return rule.cut;
    }
    if (ranks == 0 || shape.empty()) return std::nullopt;
    return Cut{0, ranks};
  };
}

std::int32_t writers_for(std::int64_t ranks, std::int64_t writers) {
  const std::int64_t wanted = writers != 0 ? writers : std::max<std::int64_t>(ranks, 1);
  if (wanted > kPartsMax) {
    throw Error(Code::kUsage, "more than " + std::to_string(kPartsMax) + " writers");
  }
  return static_cast<std::int32_t>(wanted);
}

void check_splits(const std::vector<std::string>& splits, const Catalog& catalog) {
  for (const auto& word : splits) {
    const SplitRule split = parse(word);
    bool found = false;
    bool cuts = false;
    for (const auto& tensor : catalog.tensors) {
      if (!split.pattern.found_in(std::string(name_of(tensor)))) continue;
      found = true;
      cuts = cuts || split.cut.dim < all_extents(tensor).size();
    }
    if (!found) {
      throw Error(Code::kUsage, "--split '" + word + "': no tensor has such a key");
    }
    if (!cuts) {
      throw Error(Code::kUsage, "--split '" + word + "': no tensor of such a key has a dimension " +
                                    std::to_string(split.cut.dim) + "; they count from 0");
    }
  }
}

}  // namespace reprise::cli
