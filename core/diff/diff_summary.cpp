#include "core/diff/diff_summary.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/natural_order.hpp"

namespace reprise {
namespace {

/// Calls `visit(subject, item)` for each row of the report.
template <class Visit>
void for_each_row(const DiffReport& report, const Visit& visit) {
  for (const auto& tensor : report.tensors) visit(DiffSubject::kTensors, tensor);
  for (const auto& object : report.objects) {
    const bool common =
        object.key.starts_with(kCommonStatePath) && (object.key.size() == kCommonStatePath.size() ||
                                                     object.key[kCommonStatePath.size()] == '[');
    visit(common ? DiffSubject::kCommonState : DiffSubject::kObjects, object);
  }
  for (const auto& file : report.files) visit(DiffSubject::kFiles, file);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

using KeySet = std::set<std::string, std::less<>>;
using PrefixCounts = std::map<std::string, std::uint64_t>;

/// Counts the prefixes that lead from a key of `shorter` to a key of `longer`.
PrefixCounts prefixes_of(const KeySet& longer, const KeySet& shorter) {
  PrefixCounts counts;
  for (const std::string& key : longer) {
    for (std::size_t at = key.find_first_of("./"); at != std::string::npos;
         at = key.find_first_of("./", at + 1)) {
      if (shorter.contains(std::string_view(key).substr(at + 1))) {
        ++counts[key.substr(0, at + 1)];
      }
    }
  }
  return counts;
}

}  // namespace

std::string_view name_of(DiffSubject subject) {
  switch (subject) {
    case DiffSubject::kTensors:
      return "tensors";
    case DiffSubject::kObjects:
      return "objects";
    case DiffSubject::kCommonState:
      return "common state";
    case DiffSubject::kFiles:
      return "files";
  }
  return "files";
}

std::uint64_t DiffCounts::count(DiffVerdict verdict, DiffSubject subject) const {
  const auto found = rows.find(verdict);
  return found == rows.end() ? 0 : found->second[static_cast<std::size_t>(subject)];
}

DiffCounts counts_of(const DiffReport& report) {
  DiffCounts counts;
  for_each_row(report, [&counts](DiffSubject subject, const auto& item) {
    ++counts.rows[item.verdict][static_cast<std::size_t>(subject)];
  });
  return counts;
}

std::string without_numbers(std::string_view key) {
  std::string pattern;
  for (std::size_t at = 0; at < key.size();) {
    std::size_t end = at;
    while (end < key.size() && is_digit(key[end])) ++end;
    const bool alone = end != at && (at == 0 || !is_letter(key[at - 1])) &&
                       (end == key.size() || !is_letter(key[end]));
    if (alone) {
      pattern += '*';
    } else {
      pattern += key.substr(at, std::max(end, at + 1) - at);
    }
    at = std::max(end, at + 1);
  }
  return pattern;
}

bool KeyGroup::all_same() const {
  return verdicts.size() == 1 && verdicts.begin()->first == DiffVerdict::kSame;
}

double share_that_differs(const Comparison& comparison) {
  if (comparison.elements == 0) return 0;
  return static_cast<double>(comparison.bit_mismatches) / static_cast<double>(comparison.elements);
}

bool changed_more(const std::optional<ElementChange>& one,
                  const std::optional<ElementChange>& other) {
  const auto place = [](const std::optional<ElementChange>& change) {
    const double relative = change ? change->relative() : -1;
    return std::isnan(relative) ? std::pair(1, 0.0) : std::pair(0, relative);
  };
  return place(one) > place(other);
}

std::vector<KeyGroup> groups_of(const DiffReport& report) {
  std::map<std::string, KeyGroup> by_pattern;
  for_each_row(report, [&by_pattern](DiffSubject subject, const auto& item) {
    std::string pattern = subject == DiffSubject::kCommonState ? std::string(kCommonStatePath)
                                                               : without_numbers(item.key);
    KeyGroup& group = by_pattern[pattern];
    group.pattern = std::move(pattern);
    ++group.keys;
    ++group.verdicts[item.verdict];
    if constexpr (requires { item.comparison; }) {
      group.comparison.append(item.comparison);
      if (item.change && !group.change) group.change.emplace();
      if (item.change) group.change->add(*item.change);
    }
  });
  std::vector<KeyGroup> groups;
  for (auto& [pattern, group] : by_pattern) groups.push_back(std::move(group));
  std::ranges::stable_sort(groups, in_natural_order, &KeyGroup::pattern);
  return groups;
}

std::optional<PrefixHint> prefix_hint(const DiffReport& report) {
  KeySet left;
  KeySet right;
  for_each_row(report, [&](DiffSubject subject, const auto& item) {
    if (subject != DiffSubject::kTensors && subject != DiffSubject::kObjects) return;
    if (item.verdict == DiffVerdict::kOnlyLeft) left.insert(item.key);
    if (item.verdict == DiffVerdict::kOnlyRight) right.insert(item.key);
  });
  PrefixHint best;
  const auto look = [&best](PrefixHint::Side side, const PrefixCounts& counts) {
    for (const auto& [prefix, keys] : counts) {
      if (keys > best.keys) best = {side, prefix, keys};
    }
  };
  look(PrefixHint::Side::kLeft, prefixes_of(left, right));
  look(PrefixHint::Side::kRight, prefixes_of(right, left));
  if (best.keys < 2 || best.keys * 2 < std::min(left.size(), right.size())) return std::nullopt;
  return best;
}

}  // namespace reprise
