#include "cli/output/diff_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/table.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise::cli {
namespace {

std::string with_reason(std::string words, const std::string& reason) {
  return reason.empty() ? words : std::move(words) + ", " + reason;
}

std::string relative_text(const std::optional<ElementChange>& change) {
  return change ? fmt::format("{:.3g}", change->relative()) : "";
}

/// Returns the share of elements that differ, such as "12.5%"; empty if none were compared.
std::string share_text(const Comparison& comparison) {
  if (comparison.elements == 0) return "";
  return fmt::format("{:.3g}%", share_that_differs(comparison) * 100);
}

/// Returns the remarks that follow the verdict in a tensor's row.
std::string words_for(const TensorDiff& tensor) {
  const std::string as =
      tensor.compared_as ? fmt::format("as {}: ", name_of(*tensor.compared_as)) : "";
  if (tensor.first) {
    return with_reason(
        fmt::format("{}{} of {} elements, max_delta {:g}, relative change {}, first at {}: {} | {}",
                    as, with_commas(tensor.comparison.bit_mismatches),
                    with_commas(tensor.comparison.elements), tensor.comparison.max_delta,
                    relative_text(tensor.change), to_string(*tensor.first), tensor.first_left,
                    tensor.first_right),
        tensor.reason);
  }
  return with_reason(as + form_of(tensor.left) + " | " + form_of(tensor.right), tensor.reason);
}

/// Returns the name of a verdict as a kind of difference.
std::string_view kind_of(DiffVerdict verdict) {
  return verdict == DiffVerdict::kDifferent    ? "value differs"
         : verdict == DiffVerdict::kSameValues ? "same values, different dtype"
                                               : name_of(verdict);
}

bool all_is_same(const DiffCounts& counts) {
  return std::ranges::all_of(counts.rows,
                             [](const auto& row) { return row.first == DiffVerdict::kSame; });
}

void print_counts(const DiffCounts& counts, const Console& console) {
  std::vector<DiffSubject> subjects;
  for (std::size_t s = 0; s < kDiffSubjects; ++s) {
    const bool any =
        std::ranges::any_of(counts.rows, [s](const auto& row) { return row.second[s] != 0; });
    if (any) subjects.push_back(static_cast<DiffSubject>(s));
  }
  std::vector<Column> columns = {{"what differs"}};
  for (const DiffSubject subject : subjects) {
    columns.push_back({std::string(name_of(subject)), Align::kRight});
  }
  Table table(std::move(columns));
  for (const DiffVerdict verdict : all_diff_verdicts()) {
    if (!counts.rows.contains(verdict)) continue;
    std::vector<std::string> cells = {std::string(kind_of(verdict))};
    for (const DiffSubject subject : subjects) {
      cells.push_back(with_commas(counts.count(verdict, subject)));
    }
    table.add(std::move(cells));
  }
  table.print(console);
}

/// Counts rows until none may be shown any more.
class RowBudget {
 public:
  explicit RowBudget(std::uint64_t limit) : limit_(limit) {}

  /// Counts `rows` rows. Returns how many of them, from the first on, are to be shown.
  std::uint64_t take(std::uint64_t rows) {
    const std::uint64_t fit = limit_ == 0 ? rows : std::min(rows, limit_ - shown_);
    shown_ += fit;
    cut_ += rows - fit;
    return fit;
  }

  void print_cut(std::string_view what, const Console& console) const {
    if (cut_ == 0) return;
    console.out << fmt::format("{} of {} {} are not shown: --limit 0 shows all, --json has them\n",
                               with_commas(cut_), with_commas(cut_ + shown_), what);
  }

 private:
  std::uint64_t limit_;
  std::uint64_t shown_ = 0;
  std::uint64_t cut_ = 0;
};

/// Returns the items in the natural order of their keys.
template <class Item>
std::vector<const Item*> in_order(const std::vector<Item>& items) {
  std::vector<const Item*> sorted;
  for (const Item& item : items) sorted.push_back(&item);
  std::ranges::stable_sort(
      sorted, [](const Item* a, const Item* b) { return in_natural_order(a->key, b->key); });
  return sorted;
}

/// True if a line about the whole file stands for the item.
template <class Item>
bool in_line_of_file(const Item& item) {
  return item.unread && item.verdict == DiffVerdict::kNotKnown;
}

/// Prints the first `rows` rows of the object: that of its verdict, then its differences.
void print_object(const ObjectDiff& object, std::uint64_t rows, const Console& console) {
  if (rows == 0) return;
  console.out << with_reason(object.key + ": " + std::string(name_of(object.verdict)),
                             object.reason)
              << '\n';
  for (const auto& difference : std::span(object.differences).first(rows - 1)) {
    console.out << "  " << difference.path << ": " << difference.left << " | " << difference.right
                << '\n';
  }
}

void print_objects(const std::vector<ObjectDiff>& objects, bool quiet, RowBudget& budget,
                   const Console& console) {
  for (const ObjectDiff* object : in_order(objects)) {
    const bool same = object->verdict == DiffVerdict::kSame;
    if (in_line_of_file(*object) || (same && (quiet || !object->opaque))) continue;
    print_object(*object, budget.take(1 + object->differences.size()), console);
  }
}

void print_tensors(const std::vector<TensorDiff>& tensors, bool by_change, RowBudget& budget,
                   const Console& console) {
  Table table({{"tensor"}, {"verdict"}, {"A | B"}});
  auto sorted = in_order(tensors);
  if (by_change) {
    std::ranges::stable_sort(sorted, [](const TensorDiff* a, const TensorDiff* b) {
      return changed_more(a->change, b->change);
    });
  }
  for (const TensorDiff* tensor : sorted) {
    if (tensor->verdict == DiffVerdict::kSame || in_line_of_file(*tensor)) continue;
    if (budget.take(1) == 0) continue;
    table.add({tensor->key, std::string(name_of(tensor->verdict)), words_for(*tensor)});
  }
  if (!table.empty()) table.print(console);
}

/// Prints where the values of tensors come from, one line for each, or how many there are below
/// groups.
void print_sources(const DiffReport& report, const DiffShown& shown, const Console& console) {
  if (shown.groups) {
    const auto found = static_cast<std::uint64_t>(std::ranges::count_if(
        report.tensors, [](const TensorDiff& tensor) { return tensor.source.has_value(); }));
    if (found != 0) {
      console.out << "sources of " << counted(found, "tensor") << (found == 1 ? " was" : " were")
                  << " found; omit --stat to list them\n";
    }
    return;
  }
  RowBudget budget(shown.limit);
  for (const TensorDiff* tensor : in_order(report.tensors)) {
    if (!tensor->source || budget.take(1) == 0) continue;
    const std::string sentence = sentence_of(*tensor->source, tensor->key);
    const bool names_key = tensor->source->key != tensor->key;
    console.out << "source: " << (names_key ? "" : tensor->key + ": ") << sentence << '\n';
  }
  budget.print_cut("sources", console);
}

void print_rows(const DiffReport& report, const DiffShown& shown, const Console& console) {
  RowBudget budget(shown.limit);
  print_objects(report.objects, shown.quiet, budget, console);
  print_objects(report.files, shown.quiet, budget, console);
  print_tensors(report.tensors, shown.by_change, budget, console);
  budget.print_cut("rows", console);
}

/// Returns, for example, "30 value differs, 2 same; max_delta 0.5".
std::string words_for(const KeyGroup& group) {
  std::string words;
  for (const auto& [verdict, keys] : group.verdicts) {
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", with_commas(keys), kind_of(verdict));
  }
  if (group.comparison.same()) return words;
  return words + fmt::format("; max_delta {:g}", group.comparison.max_delta);
}

void print_groups(const DiffReport& report, const DiffShown& shown, const Console& console) {
  RowBudget budget(shown.limit);
  Table table({{"keys of the form"},
               {"keys", Align::kRight},
               {"elements", Align::kRight},
               {"change", Align::kRight},
               {"what differs"}});
  std::uint64_t same = 0;
  auto groups = groups_of(report);
  if (shown.by_change) {
    std::ranges::stable_sort(groups, changed_more, &KeyGroup::change);
  }
  for (const KeyGroup& group : groups) {
    if (group.all_same()) {
      ++same;
    } else if (budget.take(1) == 1) {
      table.add({group.pattern, with_commas(group.keys), share_text(group.comparison),
                 relative_text(group.change), words_for(group)});
    }
  }
  if (!table.empty()) table.print(console);
  budget.print_cut("groups of keys", console);
  if (same != 0) {
    console.out << fmt::format("{} {} of keys the same throughout\n", with_commas(same),
                               same == 1 ? "group is" : "groups are");
  }
  if (!table.empty()) {
    console.out << "elements: the share that differs; change: ||B - A|| / ||A|| over the tensors "
                   "that differ\n";
  }
}

/// Characters that mean something in a regular expression, and in the text of a substitution.
constexpr std::string_view kPatternSpecial = R"(^$\.*+?()[]{}|/)";
constexpr std::string_view kTextSpecial = R"(\&/$)";

/// Puts a backslash before each special character.
std::string escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void print_hint(const DiffReport& report, const Console& console) {
  if (const auto hint = rename_hint(report)) console.out << "hint: " << hint->sentence << '\n';
}

std::string words_for_files(const DiffReport& report) {
  return " and " + counted(report.files_compared, "file") + " beside them";
}

/// Describes what was compared, followed by what was not compared.
std::string words_for_counts(const DiffReport& report, const DiffCounts& counts,
                             LayoutBound bound) {
  std::string text =
      fmt::format("{} ({}) of {} and {}{} compared", counted(report.elements, "element"),
                  human_bytes(report.bytes), counted(report.tensors_compared, "tensor"),
                  counted(report.objects_compared, "object"),
                  report.files_compared == 0 ? std::string() : words_for_files(report));
  const auto add = [&text](std::uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format(", {} {}", with_commas(count), what);
  };
  add(report.objects_opaque, "of them as bytes");
  add(counts.count(DiffVerdict::kSameValues, DiffSubject::kTensors),
      "of them with different dtypes, by value");
  add(report.not_comparable(),
      bound == LayoutBound::kAccepted ? "not comparable and accepted" : "not comparable");
  add(report.not_known(), "not known");
  add(report.ignored_keys, report.ignored_keys == 1 ? "key ignored" : "keys ignored");
  add(report.ignored_differences, "differences in the common state ignored");
  return text + (report.checksums ? "" : ", checksums not checked");
}

void print_verdict(const DiffReport& report, const DiffCounts& counts, LayoutBound bound,
                   const Console& console) {
  const std::string words = words_for_counts(report, counts, bound);
  switch (report.outcome(bound)) {
    case DiffOutcome::kSame:
      console.out << "same: " << words << '\n';
      return;
    case DiffOutcome::kDifferent:
      console.out << fmt::format("different: {} differ; {}\n", with_commas(report.different()),
                                 words);
      return;
    case DiffOutcome::kNotAllCompared:
      console.out << "not all compared: nothing differs in " << words << '\n';
      return;
    case DiffOutcome::kNothingCompared:
      console.out << "nothing was compared: " << words << '\n';
      return;
    case DiffOutcome::kDamaged:
      console.out << fmt::format("damaged, so nothing above is certain: {} differ; {}\n",
                                 with_commas(report.different()), words);
      return;
  }
}

}  // namespace

std::string form_of(const std::optional<TensorDiff::Side>& side) {
  return side ? fmt::format("{} {}", name_of(side->dtype), shape_text(side->shape)) : "-";
}

std::string substitution_for(const PrefixHint& hint) {
  if (hint.longer == PrefixHint::Side::kLeft) {
    return "s/^" + escaped(hint.prefix, kPatternSpecial) + "//";
  }
  return "s/^/" + escaped(hint.prefix, kTextSpecial) + "/";
}

std::string substitution_for(const KeyRule& rule) {
  return std::string("s/") + (rule.place == KeyRule::Place::kStart ? "^" : "") +
         escaped(rule.find, kPatternSpecial) + (rule.place == KeyRule::Place::kEnd ? "$" : "") +
         "/" + escaped(rule.replace, kTextSpecial) + "/" + (rule.every ? "g" : "");
}

namespace {

std::string options_for(const std::vector<std::string>& substitutions) {
  std::string options;
  for (const std::string& one : substitutions) {
    options += (options.empty() ? "--rename '" : " --rename '") + one + "'";
  }
  return options;
}

RenameHint hint_from(const PrefixHint& hint) {
  const bool left = hint.longer == PrefixHint::Side::kLeft;
  RenameHint told{.of_left = true, .substitutions = {substitution_for(hint)}, .sentence = {}};
  told.sentence = fmt::format("{} keys of {} are keys of {} with '{}' before them: {} matches them",
                              with_commas(hint.keys), left ? 'A' : 'B', left ? 'B' : 'A',
                              hint.prefix, options_for(told.substitutions));
  return told;
}

RenameHint hint_from(const WordHint& hint) {
  RenameHint told{.of_left = hint.of_left, .substitutions = {}, .sentence = {}};
  std::string with;
  for (const KeyRule& rule : hint.rules) {
    told.substitutions.push_back(substitution_for(rule));
    with += with.empty() ? "" : " and ";
    with += rule.replace.empty() ? fmt::format("'{}' in them", rule.find)
                                 : fmt::format("'{}' in place of '{}'", rule.find, rule.replace);
  }
  told.sentence =
      fmt::format("{} keys of {} are keys of {} with {}: {} matches them{}", with_commas(hint.keys),
                  hint.of_left ? 'A' : 'B', hint.of_left ? 'B' : 'A', with,
                  options_for(told.substitutions), hint.of_left ? "" : " if B is given first");
  return told;
}

}  // namespace

std::optional<RenameHint> rename_hint(const DiffReport& report) {
  const auto prefix = prefix_hint(report);
  const auto word = word_hint(report);
  if (word && (!prefix || word->keys > prefix->keys)) return hint_from(*word);
  return prefix ? std::optional(hint_from(*prefix)) : std::nullopt;
}

void print_diff(const DiffReport& report, const DiffShown& shown, const Console& console) {
  const DiffCounts counts = counts_of(report);
  if (!all_is_same(counts)) {
    print_counts(counts, console);
    console.out << '\n';
  }
  if (shown.groups) {
    print_groups(report, shown, console);
  } else {
    print_rows(report, shown, console);
  }
  print_sources(report, shown, console);
  for (const Finding& finding : report.unread) console.out << "not read: " << finding << '\n';
  if (!shown.quiet) {
    for (const Finding& finding : report.notes) console.out << finding << '\n';
  }
  print_hint(report, console);
  print_verdict(report, counts, shown.layout_bound, console);
}

}  // namespace reprise::cli
