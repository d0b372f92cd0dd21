#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/inspect_summary.hpp"
#include "cli/output/inspect_tables.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"
#include "cli/output/value_tree.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/summary/checkpoint_summary.hpp"
#include "driver/record/tensor_digest.hpp"

namespace reprise::cli {
namespace {

/// Rows of a table and small values that are shown at a terminal, unless --limit says otherwise.
constexpr std::int64_t kShownAtTerminal = 40;
constexpr std::size_t kFilesShown = 16;
constexpr std::size_t kValuesShown = 12;

class InspectVerb final : public Verb {
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
           "  reprise inspect --digest ckpt                   SHA-256 of each tensor\n"
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
        .flag(digest_, "--digest",
              "read every tensor and print the SHA-256 of its elements; checksums are checked")
        .flag(stats_, "--stats",
              "read every tensor and print what its numbers are like; checksums are checked")
        .flag(values_, "--values",
              "with --json: include the content of objects and of the common state")
        .flag(files_, "--files", "list every payload file, not only the first 16")
        .number(limit_, "--limit", 0,
                "show at most this many rows of a table; 0 shows all (default: all, at a terminal "
                "40)")
        .number(depth_, "--depth", 1, "group the keys by their first words, as many as this")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    const StoredPath stored = stored_path(path_);
    Checkpoint checkpoint = Checkpoint::open_any(*stored.store, stored.path);
    const KeyFilter filter(keys_, ignored_);
    driver::TensorDigest digest(checkpoint);
    if (json_) {
      Findings unread;
      console.out << inspect_json(checkpoint, filter, {digest_, stats_, values_}, digest, unread);
      for (const Finding& finding : unread) console.err << "reprise inspect: " << finding << '\n';
      const ExitCode judged = judge(checkpoint, filter, digest, console);
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
    if (digest_) print_digests(catalog, filter, digest, console);
    if (stats_) print_stats(catalog, filter, digest, console);
    if (chunks_) print_chunks(catalog, filter, limit, console);
    if (depth_ == 0) print_objects(catalog, filter, limit, console);
    if (filter.everything()) {
      print_files(catalog, files_ ? 0 : limit_ < 0 ? kFilesShown : limit, console);
    }
    return judge(checkpoint, filter, digest, console);
  }

 private:
  /// Returns kUnusable if safetensors files contradict each other or hashed bytes do not match
  /// their checksums, and kInconclusive if no key passes the filter.
  static ExitCode judge(const Checkpoint& checkpoint, const KeyFilter& filter,
                        const driver::TensorDigest& digest, const Console& console) {
    const Catalog& catalog = checkpoint.catalog();
    bool damaged = false;
    for (const Findings& findings :
         {checkpoint.metadata().findings, digest.checksums().findings()}) {
      for (const Finding& finding : findings) {
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

  static void print_digests(const Catalog& catalog, const KeyFilter& filter,
                            driver::TensorDigest& digest, const Console& console) {
    Table table({{"tensor"}, {"SHA-256 of its elements, row-major"}});
    for_each_read(catalog, filter, digest, console, [&](const StoredTensor& tensor) {
      table.add({tensor.key, digest.of(tensor)});
    });
    print_section(table, console);
  }

  static void print_stats(const Catalog& catalog, const KeyFilter& filter,
                          driver::TensorDigest& digest, const Console& console) {
    Table table({{"tensor"},
                 {"min", Align::kRight},
                 {"max", Align::kRight},
                 {"mean", Align::kRight},
                 {"norm", Align::kRight},
                 {"zeros", Align::kRight},
                 {"denormal", Align::kRight},
                 {"NaN", Align::kRight},
                 {"infinite", Align::kRight}});
    for_each_read(catalog, filter, digest, console, [&](const StoredTensor& tensor) {
      const ElementStats stats = digest.stats_of(tensor);
      const auto number = [&stats](double value) {
        return stats.finite() == 0 ? "-" : fmt::format("{:.4g}", value);
      };
      table.add({tensor.key, number(stats.least), number(stats.greatest), number(stats.mean()),
                 number(stats.norm()), with_commas(stats.zero), with_commas(stats.denormal),
                 with_commas(stats.nan), with_commas(stats.infinite)});
    });
    print_section(table, console);
  }

  /// Calls `read` for each tensor. The progress is cleared at the end, so that a table can be
  /// printed.
  template <class Read>
  static void for_each_read(const Catalog& catalog, const KeyFilter& filter,
                            driver::TensorDigest& digest, const Console& console,
                            const Read& read) {
    PosixClock clock;
    ProgressLine line(console, clock, "inspect", ProgressLine::Shown::kYes, ProgressUnit::kBytes);
    ByteProgress progress(line);
    const auto tensors = tensors_in_order(catalog, filter);
    for (const StoredTensor* tensor : tensors) progress.expect(bytes_of(*tensor));
    digest.report_to(&progress);
    for (const StoredTensor* tensor : tensors) read(*tensor);
    digest.report_to(nullptr);
  }

  std::string path_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::int64_t limit_ = -1;  ///< -1 if it was not given
  std::int64_t depth_ = 0;
  bool chunks_ = false;
  bool common_ = false;
  bool digest_ = false;
  bool stats_ = false;
  bool values_ = false;
  bool files_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_inspect() { return std::make_unique<InspectVerb>(); }

}  // namespace reprise::cli
