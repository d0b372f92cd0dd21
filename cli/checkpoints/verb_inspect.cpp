#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"
#include "cli/output/value_tree.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/state/state_dict.hpp"
#include "core/verify/module_values.hpp"
#include "driver/record/tensor_digest.hpp"

namespace reprise::cli {
namespace {

/// All shards of one object.
struct ObjectRow {
  std::set<std::string> grids;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

/// The contents of one payload file.
struct FileRow {
  std::uint64_t chunks = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

std::string file_name(const Catalog& catalog, FileIndex file) {
  return file == kNoFile ? "(none)" : catalog.files[file];
}

std::map<std::string, ObjectRow> object_rows(const Catalog& catalog, const KeyFilter& filter) {
  std::map<std::string, ObjectRow> rows;
  for (const auto& object : catalog.objects) {
    if (!filter.wants(object.key)) continue;
    const auto parsed = parse_object_key(object.key);
    ObjectRow& row = rows[parsed ? parsed->key : object.key];
    if (parsed) row.grids.insert(to_string(parsed->grid));
    ++row.shards;
    row.bytes += object.range.size;
  }
  return rows;
}

std::vector<FileRow> file_rows(const Catalog& catalog) {
  std::vector<FileRow> rows(catalog.files.size());
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) {
      if (chunk.file == kNoFile) continue;
      ++rows[chunk.file].chunks;
      rows[chunk.file].bytes += chunk.range.size;
    }
  }
  for (const auto& object : catalog.objects) {
    if (object.file == kNoFile) continue;
    ++rows[object.file].objects;
    rows[object.file].bytes += object.range.size;
  }
  return rows;
}

class InspectVerb final : public Verb {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override { return "Show the content of a checkpoint"; }
  std::string_view examples() const override {
    return "  reprise inspect runs/llm                        the newest of a run\n"
           "  reprise inspect --keys 'linear_fc1' ckpt        tensors and objects with that name\n"
           "  reprise inspect --chunks --keys '^embedding' c  file, offset, length of each chunk\n"
           "  reprise inspect --common ckpt                   the common state as a tree\n"
           "  reprise inspect --digest ckpt                   SHA-256 of each tensor\n"
           "  reprise inspect --stats --keys 'experts' ckpt   min, max, mean, NaN, zeros of each\n"
           "  reprise inspect --json ckpt | jq '.tensors[].key'\n"
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
    print_summary(checkpoint, console);
    if (common_) {
      print_common(checkpoint, console);
      return ExitCode::kPass;
    }
    if (filter.everything()) print_modules(checkpoint, console);
    print_tensors(checkpoint.catalog(), filter, console);
    if (digest_) print_digests(checkpoint.catalog(), filter, digest, console);
    if (stats_) print_stats(checkpoint.catalog(), filter, digest, console);
    if (chunks_) print_chunks(checkpoint.catalog(), filter, console);
    print_objects(checkpoint.catalog(), filter, console);
    if (filter.everything()) print_files(checkpoint.catalog(), console);
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

  static void print_summary(Checkpoint& checkpoint, const Console& console) {
    const Catalog& catalog = checkpoint.catalog();
    const Metadata& metadata = checkpoint.metadata();
    const Location& location = checkpoint.location();
    std::uint64_t elements = 0;
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
    for (const auto& tensor : catalog.tensors) {
      elements += elements_of(tensor);
      chunks += tensor.chunks.size();
    }
    for (const auto& row : file_rows(catalog)) bytes += row.bytes;
    const auto line = [&console](std::string_view what, const std::string& value) {
      if (!value.empty()) console.out << fmt::format("{:<10}{}\n", what, value);
    };
    line("where", checkpoint.store().display(location.path()));
    if (location.step) line("step", std::to_string(location.step->value));
    line("kind", describe_kind(checkpoint) +
                     (metadata.version.empty() ? "" : ", metadata " + metadata.version));
    line("saved as", metadata.checkpoint_id);
    line("files", fmt::format("{}, {}", catalog.files.size(), human_bytes(bytes)));
    line("tensors", fmt::format("{}, {} elements in {} chunks", with_commas(catalog.tensors.size()),
                                with_commas(elements), with_commas(chunks)));
    line("objects", with_commas(catalog.objects.size()));
    const auto common = checkpoint.common();
    line("common",
         common ? common->source
         : checkpoint.lost_common()
             ? "missing: there is a metadata.json, which Megatron writes, but no common state"
             : "none");
    if (common && common->item.value) line("run", describe_run(*common->item.value));
    for (const auto& note : metadata.notes) line("note", note);
    for (const Finding& finding : metadata.findings) {
      if (finding.severity != Severity::kError) line("note", finding.message);
    }
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

  static std::string grids_of(const StoredModule& module) {
    const std::string grid = describe_rng_grid(module.rng_grid);
    const std::string experts = describe_expert_grid(module.expert_rng_grid);
    if (experts.empty()) return grid.empty() ? "-" : grid;
    return (grid.empty() ? "" : grid + "; ") + "experts " + experts;
  }

  static void print_modules(Checkpoint& checkpoint, const Console& console) {
    const auto common = checkpoint.common();
    const bool readable = common && common->item.value;
    const auto modules = inspected_modules(checkpoint, readable ? &*common->item.value : nullptr);
    Table table({{"module"},
                 {"keys"},
                 {"tensors", Align::kRight},
                 {"elements", Align::kRight},
                 {"size", Align::kRight},
                 {"optimizer"},
                 {"its metadata"},
                 {"random states"},
                 {"layout"}});
    for (const StoredModule& module : modules.modules) {
      table.add({module.name, std::string(module.stored() ? name_of(module.form()) : "none"),
                 with_commas(module.tensors), with_commas(module.elements),
                 human_bytes(module.bytes), describe_optimizers(modules, module),
                 describe_parts(modules, module), grids_of(module),
                 module.claim ? module.claim->layout : "-"});
    }
    print_section(table, console);
  }

  /// Returns the tensors that pass the filter, in natural order of their keys.
  static std::vector<const StoredTensor*> wanted(const Catalog& catalog, const KeyFilter& filter) {
    std::vector<const StoredTensor*> tensors;
    for (const auto& tensor : catalog.tensors) {
      if (filter.wants(tensor.key)) tensors.push_back(&tensor);
    }
    std::ranges::stable_sort(tensors, [](const StoredTensor* a, const StoredTensor* b) {
      return in_natural_order(a->key, b->key);
    });
    return tensors;
  }

  static void print_tensors(const Catalog& catalog, const KeyFilter& filter,
                            const Console& console) {
    Table table({{"tensor"},
                 {"dtype"},
                 {"shape"},
                 {"cut"},
                 {"chunks", Align::kRight},
                 {"size", Align::kRight}});
    for (const StoredTensor* tensor : wanted(catalog, filter)) {
      table.add({tensor->key, std::string(name_of(tensor->dtype)), shape_text(all_extents(*tensor)),
                 describe_cut(*tensor), with_commas(tensor->chunks.size()),
                 human_bytes(bytes_of(*tensor))});
    }
    print_section(table, console);
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
    const auto tensors = wanted(catalog, filter);
    for (const StoredTensor* tensor : tensors) progress.expect(bytes_of(*tensor));
    digest.report_to(&progress);
    for (const StoredTensor* tensor : tensors) read(*tensor);
    digest.report_to(nullptr);
  }

  static void print_chunks(const Catalog& catalog, const KeyFilter& filter,
                           const Console& console) {
    Table table(
        {{"tensor"}, {"chunk"}, {"file"}, {"offset", Align::kRight}, {"length", Align::kRight}});
    for (const StoredTensor* tensor : wanted(catalog, filter)) {
      for (const auto& chunk : tensor->chunks) {
        table.add({tensor->key, to_string(chunk.box), file_name(catalog, chunk.file),
                   std::to_string(chunk.range.offset), std::to_string(chunk.range.size)});
      }
    }
    print_section(table, console);
  }

  static void print_objects(const Catalog& catalog, const KeyFilter& filter,
                            const Console& console) {
    Table table({{"object"}, {"grid"}, {"shards", Align::kRight}, {"size", Align::kRight}});
    const auto rows = object_rows(catalog, filter);
    std::vector<std::pair<std::string, ObjectRow>> sorted(rows.begin(), rows.end());
    std::ranges::stable_sort(
        sorted, [](const auto& a, const auto& b) { return in_natural_order(a.first, b.first); });
    for (const auto& [key, row] : sorted) {
      table.add({key, row.grids.empty() ? "-" : join(row.grids, " "), with_commas(row.shards),
                 human_bytes(row.bytes)});
    }
    print_section(table, console);
  }

  void print_files(const Catalog& catalog, const Console& console) const {
    constexpr std::size_t kShown = 16;
    Table table(
        {{"file"}, {"chunks", Align::kRight}, {"objects", Align::kRight}, {"size", Align::kRight}});
    const auto rows = file_rows(catalog);
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return in_natural_order(catalog.files[a], catalog.files[b]);
    });
    const std::size_t shown = files_ ? rows.size() : std::min(rows.size(), kShown);
    for (const std::size_t f : std::span(order).first(shown)) {
      table.add({catalog.files[f], with_commas(rows[f].chunks), with_commas(rows[f].objects),
                 human_bytes(rows[f].bytes)});
    }
    print_section(table, console);
    if (shown < rows.size()) {
      console.out << "... " << rows.size() - shown << " more files; --files lists them\n";
    }
  }

  static void print_section(const Table& table, const Console& console) {
    if (table.empty()) return;
    console.out << '\n';
    table.print(console);
  }

  std::string path_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
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
