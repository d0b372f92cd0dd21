#include "driver/watch/layout_judge.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/watch/finding_book.hpp"
#include "driver/watch/name_groups.hpp"

namespace reprise::driver {
namespace {

constexpr int kHex = 16;

/// Names of these kinds are the same under each layout.
bool is_common(const std::string& name, const std::string& value) {
  static const std::set<std::string> kKinds = {"param", "buffer", "optim",
                                               "group", "sched",  "scaler"};
  const std::string kind = kind_of(name);
  return kKinds.contains(kind) || ((kind == "ema" || kind == "other") && elements_in(value));
}

bool is_needed(const std::string& name) {
  const std::string kind = kind_of(name);
  return kind == "param" || kind == "optim";
}

std::uint64_t product_of(std::string_view numbers) {
  std::uint64_t product = 1;
  while (!numbers.empty()) {
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(numbers.data(), numbers.data() + numbers.size(), number);
    if (error != std::errc()) return 0;
    product *= number;
    numbers.remove_prefix(
        std::min(numbers.size(), static_cast<std::size_t>(end - numbers.data()) + 1));
  }
  return product;
}

/// The number of elements in boxes such as "0,0+8,8|8,0+8,8".
std::uint64_t elements_of(std::string_view boxes) {
  std::uint64_t elements = 0;
  while (!boxes.empty()) {
    const std::string_view box = boxes.substr(0, boxes.find('|'));
    elements += product_of(box.substr(box.find('+') + 1));
    boxes.remove_prefix(std::min(boxes.size(), box.size() + 1));
  }
  return elements;
}

/// The part of a tensor that one rank holds, as the hook told it.
struct Part {
  std::string form;  ///< such as "float32[16,8]", of the whole
  std::string boxes;
  std::uint64_t digest = 0;
};

Part part_of(const std::string& text) {
  const auto at = text.find('@');
  const auto colon = text.rfind(':');
  if (at == std::string::npos || colon == std::string::npos || colon < at) return {};
  Part part{.form = text.substr(0, at), .boxes = text.substr(at + 1, colon - at - 1)};
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), part.digest, kHex);
  return part;
}

WholeValue together(const std::vector<Part>& parts) {
  std::map<std::string, std::uint64_t> boxes;
  for (const auto& part : parts) {
    if (part.form != parts.front().form) return {.why = "ranks have it in different shapes"};
    if (part.boxes.empty()) continue;
    const auto [known, added] = boxes.emplace(part.boxes, part.digest);
    if (!added && known->second != part.digest) {
      return {.value = "#" + part.form + ":",
              .why = "ranks have the same part with different content",
              .copies_differ = true};
    }
  }
  std::uint64_t elements = 0;
  std::uint64_t digest = 0;
  for (const auto& [box, own] : boxes) {
    elements += elements_of(box);
    digest += own;
  }
  WholeValue whole{.value = "#" + parts.front().form + ":" + hex(digest)};
  const std::uint64_t all = elements_in(whole.value).value_or(0);
  if (elements == all) return whole;
  return {.why = "ranks hold " + counted(elements, "element") + " of " + std::to_string(all)};
}

WholeValue together(const std::vector<std::string>& values) {
  const bool equal = std::ranges::all_of(
      values, [&](const std::string& value) { return value == values.front(); });
  if (equal) return {.value = values.front()};
  return {.why = "each rank has its own value"};
}

bool is_known(const WholeValue& whole) { return !whole.value.empty() && !whole.copies_differ; }

std::set<std::string> parameters_in(const WholeValues& wholes) {
  std::set<std::string> names;
  for (const auto& [name, whole] : wholes) {
    if (kind_of(name) == "param") names.insert(name);
  }
  return names;
}

/// The rows that all ranks took in a step; none if some rank could not tell them.
std::set<std::string> rows_of(const LifeRecording& life, std::int64_t step) {
  std::set<std::string> rows;
  for (const auto& [rank, recording] : life.ranks) {
    const auto at = recording.steps.find(step);
    if (at == recording.steps.end() || at->second.rows.empty()) return {};
    rows.insert(at->second.rows.begin(), at->second.rows.end());
  }
  return rows;
}

class LayoutComparison {
 public:
  LayoutComparison(const ResumedLife& lives, std::int64_t from, WatchJudgement& judgement)
      : lives_(lives),
        from_(from),
        judgement_(judgement),
        wanted_(wholes_at(lives.uninterrupted, from)),
        found_(wholes_at(lives.resumed, 0)),
        fresh_(wholes_at(lives.uninterrupted, 0)) {}

  std::vector<WatchFinding> run() {
    if (parameters_in(wanted_) != parameters_in(found_)) {
      add("param", Severity::kInconclusive, judged::kOracleVacuous,
          "the other layout gives parameters other names, so nothing can be compared");
      return std::move(findings_);
    }
    count_ranks();
    for (const auto& [name, whole] : wanted_) compare(name, whole);
    for (auto& finding : book_.take()) findings_.push_back(std::move(finding));
    compare_data();
    if (!not_compared_.empty()) {
      const auto& [name, why] = *not_compared_.begin();
      add(names_text({name}), Severity::kInconclusive, judged::kOracleVacuous,
          "can't be compared under another layout: " + why +
              (not_compared_.size() == 1
                   ? ""
                   : "; nor can " + counted(not_compared_.size() - 1, "other tensor")));
    }
    judgement_.not_judged["losses and later states"] =
        "another layout adds in another order, and draws other random numbers";
    judgement_.not_judged["random states, samplers, loaders"] = "each layout has its own";
    return std::move(findings_);
  }

 private:
  void add(const std::string& where, Severity severity, FindingCode code, const std::string& text,
           std::int64_t step = 0) {
    findings_.push_back({.severity = severity,
                         .code = code,
                         .where = where,
                         .text = text,
                         .life = lives_.life,
                         .step = step == 0 ? from_ : step});
  }

  void count_ranks() {
    for (const auto& [rank, recording] : lives_.resumed.ranks) {
      const HeldState* const held = recording.held_at(0);
      auto& own = judgement_.ranks[static_cast<std::int32_t>(rank)];
      own.rank = static_cast<std::int32_t>(rank);
      if (held == nullptr) continue;
      for (const auto& [name, value] : held->names) {
        const auto at = wanted_.find(name);
        if (at == wanted_.end() || !is_known(at->second) || !is_common(name, value)) continue;
        ++own.compared;
        own.elements += elements_in(value).value_or(1);
      }
    }
  }

  void compare(const std::string& name, const WholeValue& wanted) {
    if (lives_.noise.contains(name) || !is_common(name, wanted.value)) return;
    const auto at = found_.find(name);
    const WholeValue* const own = at == found_.end() ? nullptr : &at->second;
    const bool differ = own != nullptr && own->copies_differ && is_known(wanted) &&
                        own->value == wanted.value.substr(0, wanted.value.rfind(':') + 1);
    const bool shape = own != nullptr && is_known(*own) && is_known(wanted) &&
                       elements_in(own->value) != elements_in(wanted.value);
    if (!is_known(wanted) || shape || (own != nullptr && !is_known(*own) && !differ)) {
      const std::string why = !is_known(wanted) ? wanted.why
                              : shape           ? "its shape is another"
                                                : own->why;
      judgement_.not_judged[name] = "under another layout: " + why;
      if (is_needed(name)) not_compared_[name] = why;
      return;
    }
    (elements_in(wanted.value) ? judgement_.counts.tensors : judgement_.counts.values).insert(name);
    if (own != nullptr && own->value == wanted.value) return;
    WatchFinding finding{.life = lives_.life,
                         .step = from_,
                         .expected = wanted.value,
                         .found = own == nullptr ? "" : own->value};
    finding.code = judged::kBitMismatch;
    finding.text = "with other content";
    if (differ) {
      finding.text = own->why;
    } else if (own == nullptr || is_value(fresh_, name, own->value)) {
      finding.code = judged::kLostObject;
      finding.text = own == nullptr && fresh_.contains(name) ? "missing" : "as in a new process";
    } else if (const auto step = step_with(name, own->value)) {
      finding.code = judged::kStaleBytes;
      finding.text = "as after step " + std::to_string(*step);
    }
    // Ranks hold it together: which of them is wrong is not known.
    for (const auto& [rank, recording] : lives_.resumed.ranks) {
      book_.add_name(static_cast<std::int32_t>(rank), name, finding);
    }
  }

  static bool is_value(const WholeValues& wholes, const std::string& name,
                       const std::string& value) {
    const auto at = wholes.find(name);
    return at != wholes.end() && at->second.value == value;
  }

  std::optional<std::int64_t> step_with(const std::string& name, const std::string& value) {
    for (std::int64_t step = 1; step <= lives_.uninterrupted.last_step(); ++step) {
      const auto at = history_.try_emplace(step);
      if (at.second) at.first->second = wholes_at(lives_.uninterrupted, step);
      if (step != from_ && is_value(at.first->second, name, value)) return step;
    }
    return std::nullopt;
  }

  void compare_data() {
    for (std::int64_t own = 1; own <= lives_.resumed.last_step(); ++own) {
      const std::int64_t step = from_ + own;
      const auto wanted = rows_of(lives_.uninterrupted, step);
      const auto rows = rows_of(lives_.resumed, own);
      if (wanted.empty() || rows.empty()) continue;
      judgement_.counts.data_steps.insert(step);
      if (rows == wanted) continue;
      const std::string where = "step " + std::to_string(step);
      for (std::int64_t other = 1; other <= lives_.uninterrupted.last_step(); ++other) {
        if (rows != rows_of(lives_.uninterrupted, other)) continue;
        return add(where, Severity::kFail, judged::kDataStreamSkip,
                   "takes the data of step " + std::to_string(other) +
                       (other <= from_ ? " again" : " too early"),
                   step);
      }
      const std::string text =
          rows.size() == wanted.size()
              ? "takes other data, as a sampler may that deals them out another way"
              : "takes " + counted(rows.size(), "row") + ", not " + std::to_string(wanted.size()) +
                    ": give the other layout the same batch in all";
      return add(where, Severity::kInconclusive, judged::kOracleVacuous, text, step);
    }
  }

  const ResumedLife& lives_;
  std::int64_t from_;
  WatchJudgement& judgement_;
  WholeValues wanted_;
  WholeValues found_;
  WholeValues fresh_;
  std::map<std::int64_t, WholeValues> history_;  ///< of life A, by step, as far as it was asked for
  FindingBook book_;
  std::vector<WatchFinding> findings_;
  std::map<std::string, std::string> not_compared_;
};

}  // namespace

WholeValues wholes_at(const LifeRecording& life, std::int64_t step) {
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, std::vector<Part>> parts;
  for (const auto& [rank, recording] : life.ranks) {
    const HeldState* const held = recording.held_at(step);
    if (held == nullptr) continue;
    for (const auto& [name, value] : held->names) {
      values[name].push_back(value);
      const auto whole = held->wholes.find(name);
      if (whole != held->wholes.end()) parts[name].push_back(part_of(whole->second));
    }
  }
  WholeValues wholes;
  for (const auto& [name, own] : values) {
    if (!elements_in(own.front())) {
      wholes[name] = together(own);
    } else if (parts[name].size() == own.size()) {
      wholes[name] = together(parts[name]);
    } else {
      wholes[name] = {.why = "not recorded as a whole after step " + std::to_string(step)};
    }
  }
  return wholes;
}

std::optional<std::int64_t> continues_whole_from(const ResumedLife& lives) {
  const WholeValues found = wholes_at(lives.resumed, 0);
  const WholeValues fresh = wholes_at(lives.uninterrupted, 0);
  std::optional<std::int64_t> best;
  double most = 0;
  for (std::int64_t step = 1; step <= lives.uninterrupted.last_step(); ++step) {
    std::size_t equal = 0;
    std::size_t all = 0;
    for (const auto& [name, whole] : wholes_at(lives.uninterrupted, step)) {
      if (!is_known(whole) || !elements_in(whole.value) || !is_common(name, whole.value)) continue;
      const auto before = fresh.find(name);
      if (before != fresh.end() && before->second.value == whole.value) continue;
      const auto own = found.find(name);
      ++all;
      if (own != found.end() && own->second.value == whole.value) ++equal;
    }
    if (all == 0) continue;
    const double share = static_cast<double>(equal) / static_cast<double>(all);
    if (!best) best = 0;
    if (share > 0 && share >= most) {
      most = share;
      best = step;
    }
  }
  return best;
}

std::vector<WatchFinding> compare_layouts(const ResumedLife& lives, std::int64_t from,
                                          WatchJudgement& judgement) {
  return LayoutComparison(lives, from, judgement).run();
}

}  // namespace reprise::driver
