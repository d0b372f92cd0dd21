#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/survey_verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/inspect_summary.hpp"
#include "cli/output/inspect_tables.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/table.hpp"
#include "cli/output/value_tree.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/summary/checkpoint_summary.hpp"
#include "core/summary/tensor_contents.hpp"

namespace reprise::cli {
namespace {

/// Rows of a table and small values that are shown at a terminal, unless --limit says otherwise.
constexpr std::int64_t kShownAtTerminal = 40;
constexpr std::size_t kFilesShown = 16;
constexpr std::size_t kValuesShown = 12;

class InspectVerb final : public SurveyVerb {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override { return "Show the content of a checkpoint"; }
  std::string_view examples() const override {
    return "  reprise inspect runs/llm                        the newest of a run\n"
           "  reprise inspect --depth 2 ckpt                  parameters and bytes by two words of "
           "keys\n"
           "  reprise inspect --keys 'linear_fc1' ckpt        tensors and objects with that name\n"
           "  reprise inspect --chunks --keys '^embedding' c  file, offset, length of each chunk\n"
           "  reprise inspect --common ckpt                   the common state as a tree\n"
           "  reprise inspect --digest ckpt                   digest of each tensor, on all cores\n"
           "  reprise inspect --sha256 ckpt                   SHA-256 of each tensor\n"
           "  reprise inspect --stats --keys 'experts' ckpt   min, max, mean, NaN, zeros of each\n"
           "  reprise inspect --json ckpt | jq '.tensors[].key'\n"
           "  reprise inspect --json ckpt | jq '.summary | {iteration, layout, optimizer}'\n"
           "  reprise inspect --json ckpt | jq '.readable_by, .reshard_for'   which releases read "
           "it\n"
           "  reprise inspect --json ckpt | jq '.modules[] | {name, rng_grid}'   of a MIMO job\n";
  }
  void declare(Options& options) override {
    options
        .positional(path_, "CKPT",
                    "directory with .metadata, a root with a tracker, safetensors,\n"
                    "or a file of torch.save")
        .texts(keys_, "--keys", "REGEX", "show only keys that match")
        .texts(ignored_, "--ignore", "REGEX", "skip keys that match")
        .flag(chunks_, "--chunks", "list every chunk with file, offset and length")
        .flag(common_, "--common", "print the common state")
        .flag(wanted_.digest, "--digest",
              "read every tensor and print the digest that 'reprise digest' prints, which no "
              "sharding changes; checksums are checked")
        .flag(wanted_.sha256, "--sha256",
              "read every tensor and print the SHA-256 of its elements, which takes longer; with "
              "--json also that of objects; checksums are checked")
        .flag(wanted_.stats, "--stats",
              "read every tensor and print what its numbers are like; checksums are checked")
        .flag(values_, "--values",
              "with --json: include the content of objects and of the common state")
        .flag(files_, "--files", "list every payload file, not only the first 16")
        .number(limit_, "--limit", 0,
                "show at most this many rows of a table; 0 shows all (default: all, at a terminal "
                "40)")
        .number(depth_, "--depth", 1, "group the keys by their first words, as many as this");
    declare_survey(options);
  }

  ExitCode run(const Console& console) override {
    const StoredPath stored = stored_path(path_);
    Checkpoint checkpoint = Checkpoint::open_any(*stored.store, stored.path);
    const KeyFilter filter(keys_, ignored_);
    if (json()) {
      std::vector<const StoredTensor*> tensors;
      for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
        if (filter.wants(tensor.key)) tensors.push_back(&tensor);
      }
      TensorContents contents = read(checkpoint, tensors, console);
      Findings unread;
      console.out << inspect_json(checkpoint, filter, {wanted_, values_}, contents, unread);
      for (const Finding& finding : unread) console.err << "reprise inspect: " << finding << '\n';
      const ExitCode judged = judge(checkpoint, filter, contents.damage, console);
      return unread.empty() ? judged : ExitCode::kUnusable;
    }
    const auto common = checkpoint.common();
    const Value* state = common && common->item.value ? &*common->item.value : nullptr;
    print_summary(checkpoint, summary_of(checkpoint, state),
                  limit_ < 0 ? kValuesShown : static_cast<std::size_t>(limit_), console);
    if (common_) {
      print_common(checkpoint, console);
      return ExitCode::kPass;
    }
    const std::size_t limit = rows_shown(console);
    const Catalog& catalog = checkpoint.catalog();
    if (filter.everything()) print_modules(checkpoint, console);
    if (depth_ > 0) {
      print_key_groups(catalog, filter, static_cast<std::size_t>(depth_), limit, console);
    } else {
      print_tensors(catalog, filter, limit, console);
    }
    const auto tensors = tensors_in_order(catalog, filter);
    const TensorContents contents = read(checkpoint, tensors, console);
    if (wanted_.digest) {
      print_each(
          tensors, contents, "digest",
          [](const TensorContent& content) { return hex(content.digest); }, console);
    }
    if (wanted_.sha256) {
      print_each(
          tensors, contents, "SHA-256 of its elements, row-major",
          [](const TensorContent& content) { return hex(content.sha256); }, console);
    }
    if (wanted_.stats) print_stats(tensors, contents, console);
    if (chunks_) print_chunks(catalog, filter, limit, console);
    if (depth_ == 0) print_objects(catalog, filter, limit, console);
    if (filter.everything()) {
      print_files(catalog, files_ ? 0 : limit_ < 0 ? kFilesShown : limit, console);
    }
    return judge(checkpoint, filter, contents.damage, console);
  }

 private:
  /// Returns kUnusable if safetensors files contradict each other or hashed bytes do not match
  /// their checksums, and kInconclusive if no key passes the filter.
  static ExitCode judge(const Checkpoint& checkpoint, const KeyFilter& filter,
                        const Findings& damage, const Console& console) {
    const Catalog& catalog = checkpoint.catalog();
    bool damaged = false;
    for (const Findings* findings : {&checkpoint.metadata().findings, &damage}) {
      for (const Finding& finding : *findings) {
        if (finding.severity != Severity::kError) continue;
        console.err << "reprise inspect: " << finding << '\n';
        damaged = true;
      }
    }
    if (damaged) return ExitCode::kUnusable;
    const auto wanted = [&filter](const auto& item) { return filter.wants(item.key); };
    if (filter.everything() ||
        std::any_of(catalog.tensors.begin(), catalog.tensors.end(), wanted) ||
        std::any_of(catalog.objects.begin(), catalog.objects.end(), wanted)) {
      return ExitCode::kPass;
    }
    console.err << "reprise inspect: no key matches\n";
    return ExitCode::kInconclusive;
  }

  /// Returns how many rows of a table are shown; 0 stands for all.
  std::size_t rows_shown(const Console& console) const {
    const std::int64_t unless_told = console.out_width == 0 ? 0 : kShownAtTerminal;
    return static_cast<std::size_t>(limit_ < 0 ? unless_told : limit_);
  }

  static void print_common(Checkpoint& checkpoint, const Console& console) {
    const auto common = checkpoint.common();
    console.out << '\n';
    if (!common) {
      console.out << "there is no common state\n";
    } else if (!common->item.value) {
      console.out << "opaque: " << common->item.opaque_because << '\n';
    } else {
      print_tree(console.out, *common->item.value, 0);
    }
  }

  /// Reads what is wanted of the tensors. Reads nothing if that is nothing.
  TensorContents read(Checkpoint& checkpoint, std::span<const StoredTensor* const> tensors,
                      const Console& console) const {
    if (!wanted_.any()) return {};
    return survey(console, [&](const SurveyPorts& ports) {
      return tensor_contents(checkpoint, tensors, wanted_, ports);
    });
  }

  template <class Text>
  static void print_each(const std::vector<const StoredTensor*>& tensors,
                         const TensorContents& contents, const char* heading, const Text& text_of,
                         const Console& console) {
    Table table({{"tensor"}, {heading}});
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      table.add({tensors[t]->key, text_of(contents.tensors[t])});
    }
    print_section(table, console);
  }

  static void print_stats(const std::vector<const StoredTensor*>& tensors,
                          const TensorContents& contents, const Console& console) {
    Table table({{"tensor"},
                 {"min", Align::kRight},
                 {"max", Align::kRight},
                 {"mean", Align::kRight},
                 {"norm", Align::kRight},
                 {"zeros", Align::kRight},
                 {"denormal", Align::kRight},
                 {"NaN", Align::kRight},
                 {"infinite", Align::kRight}});
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const ElementStats& stats = contents.tensors[t].stats;
      const auto number = [&stats](double value) {
        return stats.finite() == 0 ? "-" : fmt::format("{:.4g}", value);
      };
      table.add({tensors[t]->key, number(stats.least), number(stats.greatest), number(stats.mean()),
                 number(stats.norm()), with_commas(stats.zero), with_commas(stats.denormal),
                 with_commas(stats.nan), with_commas(stats.infinite)});
    }
    print_section(table, console);
  }

  std::string path_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::int64_t limit_ = -1;  ///< -1 if it was not given
  std::int64_t depth_ = 0;
  ContentsWanted wanted_;
  bool chunks_ = false;
  bool common_ = false;
  bool values_ = false;
  bool files_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_inspect() { return std::make_unique<InspectVerb>(); }

}  // namespace reprise::cli
