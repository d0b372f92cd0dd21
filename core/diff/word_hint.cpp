#include "core/diff/word_hint.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace reprise {
namespace {

/// Words that wrappers of modules put into keys, each with its dot. Several may be in one key.
constexpr std::array<std::string_view, 5> kWrappers = {"_checkpoint_wrapped_module.",
                                                       "_fsdp_wrapped_module.", "_orig_mod.",
                                                       "_forward_module.", "module."};
constexpr std::size_t kTriedMax = 16;  // rules that are applied to all keys, the most promising
/// Where more words stand in one place of a key, they are names and not one word that was replaced.
constexpr std::size_t kWordsMax = 16;
constexpr std::size_t kRulesMax = std::size_t{1} << 17U;  // that are counted

using Keys = std::set<std::string, std::less<>>;
using Rules = std::vector<KeyRule>;
using Counts = std::map<Rules, std::uint64_t>;

/// The keys of one side, and those of the other that are to be reached.
struct Side {
  Keys alone;
  Keys both;
};

/// The parts of a key between its dots, by where they begin and end.
std::vector<std::pair<std::size_t, std::size_t>> parts_of(std::string_view key) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    parts.emplace_back(begin, end);
    begin = end + 1;
  }
  return parts;
}

std::string without_every(std::string key, std::string_view word) {
  for (std::size_t at = key.find(word); at != std::string::npos; at = key.find(word, at)) {
    key.erase(at, word.size());
  }
  return key;
}

KeyRule removal_of(std::string_view word) {
  return {.find = std::string(word), .replace = "", .every = true};
}

void count_removals(const Keys& from, const Keys& to, Counts& counts) {
  for (const std::string& key : from) {
    std::set<std::string_view> words;
    for (const auto& [begin, end] : parts_of(key)) {
      if (end < key.size()) words.insert(std::string_view(key).substr(begin, end + 1 - begin));
    }
    for (const std::string_view word : words) {
      if (to.contains(without_every(key, word))) ++counts[{removal_of(word)}];
    }
    Rules wrappers;
    std::string bare = key;
    for (const std::string_view word : kWrappers) {
      std::string less = without_every(bare, word);
      if (less != bare) wrappers.push_back(removal_of(word));
      bare = std::move(less);
    }
    if (wrappers.size() > 1 && to.contains(bare)) ++counts[wrappers];
  }
}

/// Returns the rule that replaces a part of a key, together with the dots around it.
KeyRule replacement(std::string_view key, std::pair<std::size_t, std::size_t> part,
                    std::string_view by) {
  const auto [begin, end] = part;
  const bool first = begin == 0;
  const bool last = end == key.size();
  const std::string before = first ? "" : ".";
  const std::string after = last ? "" : ".";
  return {.find = before + std::string(key.substr(begin, end - begin)) + after,
          .replace = before + std::string(by) + after,
          .place = first  ? KeyRule::Place::kStart
                   : last ? KeyRule::Place::kEnd
                          : KeyRule::Place::kAnywhere};
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

void count_replacements(const Keys& from, const Keys& to, Counts& counts) {
  // The words that stand in a place of a key, by the key without the word.
  std::map<std::string, std::vector<std::string_view>> words;
  const auto around = [](std::string_view key, std::pair<std::size_t, std::size_t> part) {
    return std::string(key.substr(0, part.first)) + '\n' + std::string(key.substr(part.second));
  };
  const auto word_at = [](std::string_view key, std::pair<std::size_t, std::size_t> part) {
    return key.substr(part.first, part.second - part.first);
  };
  for (const std::string& key : to) {
    for (const auto& part : parts_of(key)) {
      auto& here = words[around(key, part)];
      if (here.size() <= kWordsMax) here.push_back(word_at(key, part));
    }
  }
  for (const std::string& key : from) {
    for (const auto& part : parts_of(key)) {
      const auto found = words.find(around(key, part));
      if (found == words.end() || is_number(word_at(key, part))) continue;
      if (found->second.size() > kWordsMax) continue;
      for (const std::string_view by : found->second) {
        const Rules rules{replacement(key, part, by)};
        if (const auto known = counts.find(rules); known != counts.end()) {
          ++known->second;
        } else if (counts.size() < kRulesMax) {
          counts.emplace(rules, 1);
        }
      }
    }
  }
}

std::string applied(const Rules& rules, std::string key) {
  for (const KeyRule& rule : rules) key = applied(rule, std::move(key));
  return key;
}

/// Returns how many keys the rules match; 0 if they would undo a match or make two keys equal.
std::uint64_t matched(const Rules& rules, const Side& side, const Keys& to) {
  for (const std::string& key : side.both) {
    if (applied(rules, key) != key) return 0;
  }
  Keys made;
  std::uint64_t count = 0;
  for (const std::string& key : side.alone) {
    const auto [place, is_new] = made.insert(applied(rules, key));
    if (!is_new || side.both.contains(*place)) return 0;
    if (to.contains(*place)) ++count;
  }
  return count;
}

WordHint best_of(const Counts& counts, const Side& side, const Keys& to) {
  std::vector<std::pair<std::uint64_t, const Rules*>> tried;
  for (const auto& [rules, count] : counts) tried.emplace_back(count, &rules);
  std::ranges::stable_sort(tried, [](const auto& a, const auto& b) { return a.first > b.first; });
  tried.resize(std::min(tried.size(), kTriedMax));
  WordHint best;
  for (const auto& [count, rules] : tried) {
    const std::uint64_t keys = matched(*rules, side, to);
    if (keys > best.keys) best = {true, *rules, keys};
  }
  return best;
}

/// A rule that replaces one occurrence is simpler where no key has more.
void simplify(const Keys& keys, Rules& rules) {
  for (KeyRule& rule : rules) {
    rule.every =
        rule.every && std::ranges::any_of(keys, [&rule](const std::string& key) {
          const std::size_t at = key.find(rule.find);
          return at != std::string::npos && key.find(rule.find, at + 1) != std::string::npos;
        });
  }
}

}  // namespace

std::string applied(const KeyRule& rule, std::string key) {
  switch (rule.place) {
    case KeyRule::Place::kStart:
      if (key.starts_with(rule.find)) key.replace(0, rule.find.size(), rule.replace);
      return key;
    case KeyRule::Place::kEnd:
      if (key.ends_with(rule.find)) {
        key.replace(key.size() - rule.find.size(), rule.find.size(), rule.replace);
      }
      return key;
    case KeyRule::Place::kAnywhere:
      break;
  }
  for (std::size_t at = key.find(rule.find); at != std::string::npos;
       at = key.find(rule.find, at + rule.replace.size())) {
    key.replace(at, rule.find.size(), rule.replace);
    if (!rule.every) break;
  }
  return key;
}

std::optional<WordHint> word_hint(const DiffReport& report) {
  Side left;
  Side right;
  const auto sort_in = [&](const auto& items) {
    for (const auto& item : items) {
      if (item.verdict == DiffVerdict::kOnlyLeft) {
        left.alone.insert(item.key);
      } else if (item.verdict == DiffVerdict::kOnlyRight) {
        right.alone.insert(item.key);
      } else {
        left.both.insert(item.key);
      }
    }
  };
  sort_in(report.tensors);
  sort_in(report.objects);
  right.both = left.both;
  Counts of_left;
  count_removals(left.alone, right.alone, of_left);
  count_replacements(left.alone, right.alone, of_left);
  Counts of_right;
  count_removals(right.alone, left.alone, of_right);
  WordHint best = best_of(of_left, left, right.alone);
  WordHint other = best_of(of_right, right, left.alone);
  if (other.keys > best.keys) {
    best = std::move(other);
    best.of_left = false;
  }
  if (best.keys < 2 || best.keys * 2 < std::min(left.alone.size(), right.alone.size())) {
    return std::nullopt;
  }
  simplify(best.of_left ? left.alone : right.alone, best.rules);
  return best;
}

}  // namespace reprise
