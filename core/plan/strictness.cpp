#include "core/plan/strictness.hpp"

#include <array>

#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "core/megatron/module_key.hpp"

namespace reprise {
namespace {

enum class Then { kTrust, kLog, kRefuse, kReturn, kIgnore };
enum class Sides { kNotStored, kBoth };

struct Row {
  Strictness mode;
  std::string_view name;
  Then then;
  Sides sides;
};

constexpr std::array kRows = {
    Row{Strictness::kAssumeOkUnexpected, "assume_ok_unexpected", Then::kTrust, Sides::kNotStored},
    Row{Strictness::kLogUnexpected, "log_unexpected", Then::kLog, Sides::kNotStored},
    Row{Strictness::kLogAll, "log_all", Then::kLog, Sides::kBoth},
    Row{Strictness::kRaiseUnexpected, "raise_unexpected", Then::kRefuse, Sides::kNotStored},
    Row{Strictness::kRaiseAll, "raise_all", Then::kRefuse, Sides::kBoth},
    Row{Strictness::kReturnUnexpected, "return_unexpected", Then::kReturn, Sides::kNotStored},
    Row{Strictness::kReturnAll, "return_all", Then::kReturn, Sides::kBoth},
    Row{Strictness::kIgnoreAll, "ignore_all", Then::kIgnore, Sides::kBoth},
};

const Row& row_of(Strictness mode) {
  for (const Row& row : kRows) {
    if (row.mode == mode) return row;
  }
  CHECK(false, static_cast<int>(mode));
  return kRows[0];
}

constexpr std::size_t kKeysPrinted = 20;

std::string line_of(const std::string& what, const std::vector<std::string>& keys) {
  const auto first = readable_keys(std::span(keys).first(std::min(keys.size(), kKeysPrinted)));
  const std::size_t more = keys.size() - first.size();
  return std::to_string(keys.size()) + (keys.size() == 1 ? " key" : " keys") + " " + what + ": " +
         join(first, ", ") + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

std::vector<std::string> lines_of(const KeyMismatch& keys) {
  std::vector<std::string> lines;
  if (!keys.not_requested.empty()) {
    lines.push_back(line_of("in the checkpoint, but not requested", keys.not_requested));
  }
  if (!keys.not_stored.empty()) {
    lines.push_back(line_of("requested, but not in the checkpoint", keys.not_stored));
  }
  return lines;
}

}  // namespace

std::string_view name_of(Strictness mode) { return row_of(mode).name; }

std::optional<Strictness> strictness_named(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.mode;
  }
  return std::nullopt;
}

StrictVerdict judge(Strictness mode, const KeyMismatch& keys) {
  const Row& row = row_of(mode);
  KeyMismatch seen;
  seen.not_stored = keys.not_stored;
  if (row.sides == Sides::kBoth) seen.not_requested = keys.not_requested;
  StrictVerdict verdict;
  switch (row.then) {
    case Then::kTrust:
      return verdict;
    case Then::kLog:
      verdict.log = lines_of(seen);
      break;
    case Then::kRefuse:
      verdict.log = lines_of(seen);
      verdict.refuse = !verdict.log.empty();
      return verdict;
    case Then::kReturn:
      verdict.returned = std::move(seen);
      break;
    case Then::kIgnore:
      break;
  }
  verdict.drop_not_stored = true;
  return verdict;
}

}  // namespace reprise
