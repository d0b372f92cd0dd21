#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/mapping_rules.hpp"
#include "cli/arguments/place_to_write.hpp"
#include "cli/arguments/rule_text.hpp"
#include "cli/arguments/size_argument.hpp"
#include "cli/arguments/split_rule.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/json_output.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/export/export.hpp"
#include "core/export/safetensors_form.hpp"
#include "core/export/torch_dist_form.hpp"
#include "core/export/torch_save_form.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/store_path.hpp"
#include "core/reshard/rank_values.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kShardBytesMax = 5'000'000'000;
constexpr std::string_view kTorch = "torch";
constexpr std::size_t kNamesShown = 3;

class ExportVerb : public Verb {
 public:
  std::string_view name() const override { return "export"; }
  std::string_view summary() const override {
    return "Write the tensors as safetensors files or for torch.load, and prove that nothing "
           "changed";
  }
  std::string_view examples() const override {
    return "  reprise export ckpt out                                 all tensors, under their "
           "names\n"
           "  reprise export ckpt out --map llama                     a directory that "
           "transformers "
           "loads\n"
           "  reprise export ckpt out --map mine.yaml --set vocab=32000\n"
           "  reprise export ckpt out --max-shard 2GB --jobs 8        several files and an index\n"
           "  reprise export ckpt model.pt --to torch                 one file of torch.save\n"
           "a torch_dist checkpoint is what 'reprise import' writes, from any form\n";
  }
  void declare(Options& options) override {
    declare_paths(options, "directory, or file of torch.save, to write; must not exist");
    options
        .text(to_, "--to", "FORM",
              "safetensors (default), or torch: one file, which torch.load reads as a dict")
        .text(shard_, "--max-shard", "SIZE", "most bytes of a file's tensors (default: 5GB)");
    declare_rest(options);
  }

  ExitCode run(const Console& console) override {
    const StoredPath from = stored_path(source_);
    const StoredPath to = path_to_write(target_);
    ExportOptions options;
    options.checksums = !unchecked_;
    if (to.path.empty()) throw Error(Code::kUsage, "OUT can't be the root of the file system");
    require_apart(from.display(), to);
    const auto require_new = [&to] {
      if (!to.store->stat(to.path)) return require_free(to, Standing::kKept);
      throw Error(Code::kUsage, "OUT already exists; name another", {.file = to.display()});
    };
    require_new();
    Checkpoint opened = Checkpoint::open_any(*from.store, from.path);
    if (opened.location().file.empty()) {
      require_apart(from.store->display(opened.location().directory), to);
    }
    opened.require_sound();
    std::optional<Checkpoint> merged;
    if (!opened.metadata().ranks.empty()) {
      NoProgress none;
      require_whole(*from.store, opened.location().path(), "IN", PayloadCheck::kSkip, none);
      HostDevice device("host", 0);
      merged = opened.with(with_equal_copies_merged(opened, device));
    }
    Checkpoint& source = merged ? *merged : opened;
    options.last_look = [require_new, &opened] {
      require_new();
      opened.require_in_place();
    };
    if (map_.empty() && !values_.empty()) throw Error(Code::kUsage, "--set needs --map");
    const Mapping mapping = map_.empty() ? mapping_of_all(source.catalog())
                                         : mapping_by({map_, values_, has_config()}, source);
    if (!mapping.config.empty()) options.beside.emplace_back("config.json", mapping.config);
    ExportTold told{.paths = {source_, target_},
                    .left_out = {},
                    .values = mapping.values,
                    .contradicted = mapping.contradicted,
                    .unsaid = mapping.unsaid};
    const ExportReport report = write(source, mapping, from, to, options, console, told.notes);
    std::vector<std::string> objects = {};
    if (source.common()) objects.emplace_back("the common state");
    for (const auto& object : source.catalog().objects) objects.emplace_back(name_of(object));
    if (json_) {
      told.left_out = mapping.left_out;
      told.left_out.insert(told.left_out.end(), mapping.unmatched.begin(), mapping.unmatched.end());
      told.left_out.insert(told.left_out.end(), objects.begin(), objects.end());
      console.out << export_json(told, report);
    } else {
      std::vector<std::string> apart;
      for (const auto& tensor : source.catalog().tensors) {
        if (tensor.known_by.own) apart.push_back(tensor.key);
      }
      print(console.out, report, mapping, objects, apart);
      for (const Finding& note : told.notes) console.out << "about IN: " << note << '\n';
    }
    return report.proved == 0 ? ExitCode::kInconclusive : ExitCode::kPass;
  }

 protected:
  void declare_paths(Options& options, const std::string& out) {
    options.positional(source_, "IN", "a checkpoint")
        .positional(target_, "OUT", out)
        .text(map_, "--map", "NAME|FILE",
              "rules that give tensors other names and another layout; 'reprise maps' lists names")
        .texts(values_, "--set", "NAME=VALUE", "the value of <NAME> in the rules");
  }
  void declare_rest(Options& options) {
    options.jobs(threads_)
        .flag(unchecked_, "--no-checksums",
              "don't check the checksums of IN: flipped bits are then written")
        .flag(json_, "--json", "print one JSON document")
        .flag(quiet_, "-q,--quiet", "no progress");
  }
  /// Returns the form of OUT.
  virtual std::unique_ptr<ExportForm> form(const Checkpoint& source, const Mapping& mapping) const {
    static_cast<void>(mapping);
    if (to_ == kTorch) {
      if (!shard_.empty()) throw Error(Code::kUsage, "--max-shard is for safetensors");
      return std::make_unique<TorchSaveForm>(std::filesystem::path(target_).filename().string());
    }
    if (!to_.empty() && to_ != "safetensors") {
      throw Error(Code::kUsage, "--to is safetensors or torch, not '" + to_ +
                                    "'; 'reprise import' writes a torch_dist checkpoint");
    }
    std::map<std::string, std::string> texts = {{"format", "pt"}};
    for (const auto& [name, text] : source.metadata().texts) {
      // Other texts may speak of names, which rules change.
      if (map_.empty() || name == "format") texts[name] = text;
    }
    return std::make_unique<SafetensorsForm>(
        shard_.empty() ? kShardBytesMax : size_argument("--max-shard", shard_), std::move(texts));
  }
  /// Says whether OUT may have a config.json.
  virtual WithConfig has_config() const {
    return to_ == kTorch ? WithConfig::kNo : WithConfig::kYes;
  }
  /// Returns why objects are left out.
  virtual std::string_view why_no_objects() const {
    return to_ == kTorch ? "since export takes tensors alone"
                         : "since safetensors has tensors alone";
  }
  /// Says what a user may have to do yet.
  virtual std::string_view advice() const { return {}; }

 private:
  ExportReport write(Checkpoint& source, const Mapping& mapping, const StoredPath& from,
                     const StoredPath& to, ExportOptions options, const Console& console,
                     Findings& notes) const {
    HostDevice device("host", 0);
    ThreadTasks tasks(threads_);
    ThreadTasks background(1);
    CommitTarget target{to.path};
    target.replace = false;
    const auto before = files_of(source);
    options.last_look = [look = options.last_look, before, &source] {
      look();
      if (files_of(source) == before) return;
      throw Error(Code::kStaleMetadata, "a file of IN was changed or replaced meanwhile",
                  {.file = source.store().display(source.location().directory)});
    };
    return written_by(
        [&](Progress& progress) {
          notes = require_whole(*from.store, source.location().path(), "IN", PayloadCheck::kSkip,
                                progress);
          const auto out = form(source, mapping);
          ExportReport report = export_tensors(source, mapping.tensors, *out, target, options,
                                               {*to.store, device, tasks, background, progress});
          notes.insert(notes.end(), report.notes.begin(), report.notes.end());
          return report;
        },
        to, name(), console,
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
  }

  /// The size and time of each payload file. A file's number is no part of this, since some network
  /// file systems change it.
  using Files = std::vector<std::pair<std::uint64_t, std::optional<std::int64_t>>>;
  static Files files_of(const Checkpoint& source) {
    Files files;
    for (const auto& name : source.catalog().files) {
      const auto entry = source.store().stat(join_path(source.location().directory, name));
      if (entry) files.emplace_back(entry->size, entry->modified_ns);
    }
    return files;
  }

  void print(std::ostream& out, const ExportReport& report, const Mapping& mapping,
             const std::vector<std::string>& objects, const std::vector<std::string>& apart) const {
    out << fmt::format("{}, {} elements, {}, in {}\n", counted(report.tensors, "tensor"),
                       with_commas(report.elements), human_bytes(report.bytes),
                       join_first(report.files, kNamesShown));
    if (report.proved == 0) {
      out << "nothing was proved: the tensors have no elements of the checkpoint\n";
    } else {
      out << fmt::format(
          "proved: read back through the inverse of the mapping, {} elements equal those of the "
          "checkpoint\n",
          with_commas(report.proved));
    }
    if (report.proved < report.elements) {
      out << fmt::format("added: {} zeros, as padding\n",
                         with_commas(report.elements - report.proved));
    }
    if (!mapping.values.empty()) {
      std::vector<std::string> values;
      for (const auto& [name, value] : mapping.values) values.push_back(name + " " + value);
      out << "values of the rules: " << join(values, ", ") << '\n';
    }
    for (const auto& [name, stored] : mapping.contradicted) {
      out << "--set " << name << ": the checkpoint itself says " << stored << '\n';
    }
    if (!mapping.unsaid.empty()) {
      out << "the checkpoint does not say whether the rules hold for: "
          << join(mapping.unsaid, ", ") << '\n';
    }
    for (const auto& one : report.converted) {
      out << fmt::format("converted: {} from {} to {}\n", one.key, name_of(one.from),
                         name_of(one.to));
    }
    if (!mapping.left_out.empty()) {
      out << fmt::format("left out by a rule: {}\n", join_first(mapping.left_out, kNamesShown));
    }
    if (!mapping.unmatched.empty()) {
      out << fmt::format("left out, since no rule names it: {}\n",
                         join_first(mapping.unmatched, kNamesShown));
    }
    if (!apart.empty()) {
      out << fmt::format("ranks differ, so that each has its own: {}\n",
                         join_first(apart, kNamesShown));
    }
    std::set<std::string> told(mapping.left_out.begin(), mapping.left_out.end());
    told.insert(mapping.unmatched.begin(), mapping.unmatched.end());
    for (const auto& lost : report.lost) {
      if (told.contains(lost.key)) continue;
      out << fmt::format("lost of {}: {} of {} elements, the first at {}\n", lost.key,
                         with_commas(lost.elements), with_commas(lost.of), to_string(lost.first));
    }
    if (!mapping.idle.empty()) {
      out << fmt::format("rules that decide about no tensor: {}\n", join(mapping.idle, ", "));
    }
    if (!objects.empty()) {
      out << fmt::format("left out, {}: {}\n", why_no_objects(), join_first(objects, kNamesShown));
    }
    out << advice();
  }

  std::string source_;
  std::string target_;
  std::string to_;
  std::string map_;
  std::vector<std::string> values_;
  std::string shard_;
  int threads_ = 1;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

/// Writes a torch_dist checkpoint instead.
class ImportVerb final : public ExportVerb {
 public:
  std::string_view name() const override { return "import"; }
  std::string_view summary() const override {
    return "Write the tensors as a torch_dist checkpoint, and prove that nothing changed on the "
           "way";
  }
  std::string_view examples() const override {
    return "  reprise import model.safetensors ckpt                  plain DCP, as torch saves it\n"
           "  reprise import hf ckpt --ranks 8                       dimension 0 in 8 chunks\n"
           "  reprise import hf run/release --map llama-import --megatron --writers 4\n";
  }
  void declare(Options& options) override {
    declare_paths(options, "directory of the new checkpoint; must not exist");
    options.number(ranks_, "--ranks", 1, "cut dimension 0 of every tensor into N chunks")
        .texts(splits_, "--split", "REGEX=DIM:N",
               "cut tensors whose new key matches along DIM into N chunks; the first match decides")
        .number(writers_, "--writers", 1, "number of payload files (default: the ranks, or 1)")
        .flag(megatron_, "--megatron",
              "add metadata.json and a common state without arguments, as Megatron-Core needs");
    declare_rest(options);
  }

 private:
  std::unique_ptr<ExportForm> form(const Checkpoint& source,
                                   const Mapping& mapping) const override {
    Catalog keys;
    for (const auto& tensor : mapping.tensors) {
      keys.tensors.push_back({.key = tensor.key, .dtype = tensor.dtype, .shape = tensor.shape});
    }
    check_splits(splits_, keys);
    TorchDistForm::Options options{.rule = cut_rule(splits_, ranks_)};
    options.writers = writers_for(ranks_, writers_);
    options.manifest = has_manifest(source);
    if (megatron_) {
      options.common = Dict{{"checkpoint_version", 3.0}, {"iteration", std::int64_t{0}}};
    }
    return std::make_unique<TorchDistForm>(std::move(options));
  }
  WithConfig has_config() const override { return WithConfig::kNo; }
  std::string_view why_no_objects() const override { return "since import takes tensors alone"; }
  std::string_view advice() const override {
    if (!megatron_) return {};
    return "the common state has no arguments and no state of an optimizer: name OUT 'release' "
           "beside a latest_checkpointed_iteration.txt that says release, and load with "
           "--no-load-optim --no-load-rng\n";
  }

  std::int64_t ranks_ = 0;
  std::vector<std::string> splits_;
  std::int64_t writers_ = 0;
  bool megatron_ = false;
};

class MapsVerb final : public Verb {
 public:
  std::string_view name() const override { return "maps"; }
  std::string_view summary() const override {
    return "List the rules that 'export --map' knows by name, or print those of one";
  }
  std::string_view examples() const override {
    return "  reprise maps                                         what there is\n"
           "  reprise maps llama > mine.yaml                       to change it, for --map "
           "mine.yaml\n";
  }
  void declare(Options& options) override {
    options.optional_positional(names_, "NAME", "a map; without it all are listed");
  }

  ExitCode run(const Console& console) override {
    if (names_.empty()) {
      for (const auto& map : shipped_maps()) {
        console.out << map.name << "  " << purpose_of(map) << '\n';
      }
    }
    for (const auto& name : names_) {
      const auto maps = shipped_maps();
      const auto map = std::find_if(maps.begin(), maps.end(),
                                    [&](const ShippedMap& one) { return one.name == name; });
      if (map == maps.end()) {
        throw Error(Code::kUsage, "there is no map '" + name + "'; 'reprise maps' lists all");
      }
      console.out << map->text;
    }
    return ExitCode::kPass;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Verb> make_export() { return std::make_unique<ExportVerb>(); }
std::unique_ptr<Verb> make_import() { return std::make_unique<ImportVerb>(); }
std::unique_ptr<Verb> make_maps() { return std::make_unique<MapsVerb>(); }

}  // namespace reprise::cli
