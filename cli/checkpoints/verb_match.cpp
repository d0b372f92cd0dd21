#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/rename_rule.hpp"
#include "cli/frame/verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/diff_text.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/table.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/nearest.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "core/diff/diff_summary.hpp"
#include "core/diff/expected_keys.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise::cli {
namespace {

/// This snippet writes the list in a program that has torch and not this package.
constexpr std::string_view kSnippet = R"(import json, torch

with torch.device("meta"):  # no memory, no weights
    model = make_model()  # your model; for Megatron, reprise.checkpoints.expect() reads its sharded_state_dict()

def entry(value):
    if not isinstance(value, torch.Tensor):
        return {}
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}

with open("keys.json", "w") as file:
    json.dump({key: entry(value) for key, value in model.state_dict().items()}, file, indent=1)
)";

constexpr std::size_t kLike = 2;          // names that are told of a missing one
constexpr std::size_t kLikeMax = 100;     // missing names for which others are looked for
constexpr std::size_t kCandidates = 200;  // names with which a missing one is compared

struct Row {
  std::string key;
  DiffVerdict verdict;
  std::string expected;
  std::string stored;
  std::vector<std::string> like;  ///< stored names that nobody asked for
  bool looked_for = true;         ///< false if `like` was not looked for
  std::string instead = {};       ///< what else is stored under the name of what is missing
};

std::string_view word_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kOnlyLeft:
      return "unexpected";
    case DiffVerdict::kOnlyRight:
      return "missing";
    case DiffVerdict::kShape:
      return "shape";
    default:
      return "dtype";
  }
}

class MatchVerb final : public Verb {
 public:
  std::string_view name() const override { return "match"; }
  std::string_view summary() const override {
    return "Check if a checkpoint has the keys, shapes and dtypes that a model asks for";
  }
  std::string_view examples() const override {
    return "  reprise match --snippet                         what writes keys.json from a model "
           "without weights\n"
           "  reprise match runs/llm --expect keys.json       before a thousand GPUs start\n"
           "  reprise match runs/llm --expect keys.json --rename 's/^model\\.//' --only "
           "'^layers\\.'\n"
           "  reprise match model.safetensors --expect keys.json --strict\n"
           "  reprise match --json ckpt --expect keys.json | jq -r '.missing[].key'\n"
           "In Python, reprise.checkpoints.expect(model) returns the list. Only names, shapes and "
           "dtypes\n"
           "are compared, not values. Exits with 0 if the checkpoint has all of them, 1 if not, "
           "and 3 if\n"
           "there is nothing to compare.\n";
  }
  void declare(Options& options) override {
    options.optional_positional(paths_, "CKPT", "a checkpoint of any form that is read")
        .text(expect_, "--expect", "FILE", "JSON with shape and dtype of each key")
        .texts(renames_, "--rename", "s/REGEX/TEXT/",
               "rename the keys of CKPT, as sed does, before they are matched")
        .texts(only_, "--only", "REGEX", "compare only keys that match")
        .texts(ignored_, "--ignore", "REGEX", "skip keys that match")
        .flag(strict_, "--strict", "keys that nobody expects fail, too")
        .flag(any_dtype_, "--any-dtype", "dtypes may differ, as where the program converts them")
        .flag(snippet_, "--snippet", "print a program that writes FILE")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    if (snippet_) {
      console.out << kSnippet;
      return ExitCode::kPass;
    }
    if (paths_.size() != 1 || expect_.empty()) {
      throw Error(Code::kUsage, "'reprise match' takes one checkpoint and --expect FILE");
    }
    const StoredPath list = stored_path(expect_);
    const std::vector<ExpectedKey> expected = read_expected_keys(
        read_all(*list.store, list.path, kExpectedBytesMax), {.file = list.display()});
    const StoredPath stored = stored_path(paths_.front());
    Checkpoint checkpoint = opened(stored, renames_);
    checkpoint.require_sound();
    const KeyFilter filter(only_, ignored_, "--only");
    const DiffReport report = match_keys(checkpoint.catalog(), expected,
                                         any_dtype_ ? Types::kMayDiffer : Types::kMustBeEqual,
                                         [&](std::string_view key) { return filter.wants(key); });
    const std::vector<Row> rows = rows_of(report);
    if (json_) {
      print_json(report, rows, console);
    } else {
      print(report, rows, console);
    }
    return judge(report, rows);
  }

 private:
  static std::uint64_t matched(const DiffReport& report) {
    const DiffCounts counts = counts_of(report);
    return counts.count(DiffVerdict::kSame, DiffSubject::kTensors) +
           counts.count(DiffVerdict::kSame, DiffSubject::kObjects);
  }
  static std::uint64_t count(const std::vector<Row>& rows, DiffVerdict verdict) {
    return static_cast<std::uint64_t>(std::ranges::count(rows, verdict, &Row::verdict));
  }
  bool fails(const Row& row) const { return row.verdict != DiffVerdict::kOnlyLeft || strict_; }

  ExitCode judge(const DiffReport& report, const std::vector<Row>& rows) const {
    if (std::ranges::any_of(rows, [&](const Row& row) { return fails(row); })) {
      return ExitCode::kFail;
    }
    return matched(report) == 0 ? ExitCode::kInconclusive : ExitCode::kPass;
  }

  /// Returns what does not match: what is missing first.
  static std::vector<Row> rows_of(const DiffReport& report) {
    std::vector<Row> rows;
    std::vector<std::string> unexpected;
    for (const TensorDiff& each : report.tensors) {
      if (each.verdict == DiffVerdict::kOnlyLeft) unexpected.push_back(each.key);
      if (each.verdict == DiffVerdict::kSame) continue;
      rows.push_back({each.key, each.verdict, form_of(each.right), form_of(each.left), {}});
    }
    for (const ObjectDiff& each : report.objects) {
      if (each.verdict == DiffVerdict::kSame) continue;
      const bool stored = each.verdict == DiffVerdict::kOnlyLeft;
      if (stored) unexpected.push_back(each.key);
      rows.push_back(
          {each.key, each.verdict, stored ? "-" : "an object", stored ? "an object" : "-", {}});
    }
    const auto order = [](DiffVerdict verdict) {
      return verdict == DiffVerdict::kOnlyRight ? 0 : verdict == DiffVerdict::kOnlyLeft ? 2 : 1;
    };
    std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) {
      if (order(a.verdict) != order(b.verdict)) return order(a.verdict) < order(b.verdict);
      return in_natural_order(a.key, b.key);
    });
    add_similar(report, unexpected, rows);
    return rows;
  }

  /// Finds names like those that are missing and that the hint does not match.
  static void add_similar(const DiffReport& report, const std::vector<std::string>& unexpected,
                          std::vector<Row>& rows) {
    const auto hint = prefix_hint(report);
    const std::set<std::string> stored(unexpected.begin(), unexpected.end());
    std::size_t looked_for = 0;
    for (Row& row : rows) {
      if (row.verdict != DiffVerdict::kOnlyRight) break;
      if (stored.contains(row.key)) {  // a tensor in place of an object, or the reverse
        row.instead = row.expected == "an object" ? "a tensor" : "an object";
        continue;
      }
      if (hint && stored.contains(with_hint(row.key, *hint))) continue;
      row.looked_for = looked_for < kLikeMax;
      if (looked_for++ >= kLikeMax) continue;
      row.like = similar(row.key, candidates_for(row.key, unexpected), kLike);
    }
  }

  /// The stored name that the hint says is `key`.
  static std::string with_hint(const std::string& key, const PrefixHint& hint) {
    if (hint.longer == PrefixHint::Side::kLeft) return hint.prefix + key;
    return key.starts_with(hint.prefix) ? key.substr(hint.prefix.size()) : key;
  }

  /// The names that end in the same word come first.
  static std::vector<std::string> candidates_for(const std::string& key,
                                                 const std::vector<std::string>& unexpected) {
    const std::string_view word = std::string_view(key).substr(key.rfind('.') + 1);
    std::vector<std::string> candidates;
    for (const bool same_word : {true, false}) {
      for (const std::string& each : unexpected) {
        if (candidates.size() == kCandidates) return candidates;
        if (each.ends_with(word) == same_word) candidates.push_back(each);
      }
    }
    return candidates;
  }

  static std::string hint_of(const DiffReport& report) {
    const auto hint = prefix_hint(report);
    if (!hint) return "";
    const bool stored = hint->longer == PrefixHint::Side::kLeft;
    return fmt::format(
        "{} keys of the {} are keys of the {} with '{}' before them: --rename '{}' "
        "matches them",
        with_commas(hint->keys), stored ? "checkpoint" : "list", stored ? "list" : "checkpoint",
        hint->prefix, substitution_for(*hint));
  }

  void print(const DiffReport& report, const std::vector<Row>& rows, const Console& console) const {
    Table table({{"key"}, {""}, {"expected"}, {"in the checkpoint"}});
    for (const Row& row : rows) {
      if (!fails(row)) continue;
      const bool similar = row.verdict == DiffVerdict::kOnlyRight && !row.like.empty();
      table.add({printable(row.key), std::string(word_of(row.verdict)), row.expected,
                 !row.instead.empty() ? row.instead
                 : similar            ? "similar: " + printable(join(row.like, ", "))
                                      : row.stored});
    }
    if (!table.empty()) {
      table.print(console);
      console.out << '\n';
    }
    const auto others = std::ranges::count(rows, false, &Row::looked_for);
    if (others != 0) {
      console.out << fmt::format("For {}, no similar names were looked for.\n",
                                 counted(static_cast<std::uint64_t>(others), "missing key"));
    }
    if (const std::string hint = hint_of(report); !hint.empty()) {
      console.out << "hint: " << printable(hint) << '\n';
    }
    const ExitCode code = judge(report, rows);
    console.out << fmt::format(
        "{}: {} of {} {}; {} missing, {} of another shape, {} of another dtype, {} "
        "unexpected{}\n",
        code == ExitCode::kPass   ? "match"
        : code == ExitCode::kFail ? "no match"
                                  : "nothing was compared",
        with_commas(matched(report)),
        counted(matched(report) + rows.size() - count(rows, DiffVerdict::kOnlyLeft),
                "expected key"),
        matched(report) + rows.size() - count(rows, DiffVerdict::kOnlyLeft) == 1 ? "matches"
                                                                                 : "match",
        with_commas(count(rows, DiffVerdict::kOnlyRight)),
        with_commas(count(rows, DiffVerdict::kShape)),
        with_commas(count(rows, DiffVerdict::kDtype)),
        with_commas(count(rows, DiffVerdict::kOnlyLeft)),
        strict_ || count(rows, DiffVerdict::kOnlyLeft) == 0 ? "" : ", which --strict refuses");
  }

  void print_json(const DiffReport& report, const std::vector<Row>& rows,
                  const Console& console) const {
    const auto side = [](const std::optional<TensorDiff::Side>& of) {
      if (!of) return nlohmann::json(nullptr);
      return nlohmann::json({{"shape", of->shape}, {"dtype", name_of(of->dtype)}});
    };
    std::map<std::string, const TensorDiff*> tensors;
    for (const TensorDiff& each : report.tensors) tensors.emplace(each.key, &each);
    nlohmann::json document{{"matched", matched(report)},
                            {"missing", nlohmann::json::array()},
                            {"unexpected", nlohmann::json::array()},
                            {"shape", nlohmann::json::array()},
                            {"dtype", nlohmann::json::array()}};
    for (const Row& row : rows) {
      const auto tensor = tensors.find(row.key);
      const bool of_tensor = row.expected != "an object" && row.stored != "an object";
      nlohmann::json entry{{"key", row.key},
                           {"expected", of_tensor ? side(tensor->second->right) : nullptr},
                           {"stored", of_tensor ? side(tensor->second->left) : nullptr},
                           {"object", !of_tensor}};
      if (row.verdict == DiffVerdict::kOnlyRight) entry["similar"] = row.like;
      document[std::string(word_of(row.verdict))].push_back(std::move(entry));
    }
    const auto hint = prefix_hint(report);
    document["rename"] = hint ? nlohmann::json(substitution_for(*hint)) : nlohmann::json(nullptr);
    document["match"] = judge(report, rows) == ExitCode::kPass;
    console.out << json_text(std::move(document));
  }

  std::vector<std::string> paths_;
  std::string expect_;
  std::vector<std::string> renames_;
  std::vector<std::string> only_;
  std::vector<std::string> ignored_;
  bool strict_ = false;
  bool any_dtype_ = false;
  bool snippet_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_match() { return std::make_unique<MatchVerb>(); }

}  // namespace reprise::cli
