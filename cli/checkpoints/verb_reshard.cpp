#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/layout_argument.hpp"
#include "cli/arguments/place_to_write.hpp"
#include "cli/arguments/split_rule.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/json_output.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/print.hpp"
#include "core/plan/layout_reads.hpp"
#include "core/ports/no_progress.hpp"
#include "core/reshard/for_release.hpp"
#include "core/reshard/layout_rule.hpp"
#include "core/reshard/optimizer_form.hpp"
#include "core/reshard/reshard.hpp"

namespace reprise::cli {
namespace {

/// Upper limit on the writers that are chosen by the number of files.
constexpr std::int64_t kWritersMax = 65536;

class ReshardVerb final : public Verb {
 public:
  std::string_view name() const override { return "reshard"; }
  std::string_view summary() const override {
    return "Write the same content under another sharding";
  }
  std::string_view examples() const override {
    return "  reprise reshard --ranks 8 ckpt ckpt-8            dimension 0 over 8 ranks\n"
           "  reprise reshard --ranks 8 --writers 2 ckpt out   the same chunks in 2 files\n"
           "  reprise reshard --split 'linear_proj.weight=1:4' --split '.=0:4' ckpt out\n"
           "  reprise reshard --writers 1 ckpt out             the same chunks, in one file\n"
           "  reprise reshard --for torch-2.14 ckpt out        the same chunks, for this torch\n"
           "  reprise reshard --for mcore-0.18 ckpt out        with common.pt, which 0.18 needs\n"
           "  reprise reshard --for-layout tp=8,pp=4,dp=8 ckpt out\n"
           "                                 the chunks that this layout reads; 'reprise plan "
           "--ckpt\n"
           "                                 ckpt --layout ...' says beforehand what it reads now\n"
           "  reprise reshard --optimizer fully_reshardable ckpt out\n"
           "                                 the state of Megatron's distributed optimizer as a "
           "job of\n"
           "                                 any layout loads it\n";
  }
  void declare(Options& options) override {
    options.positional(source_, "IN", "a checkpoint")
        .positional(target_, "OUT", "directory to write; must not exist unless --force is given")
        .number(ranks_, "--ranks", 1, "cut dimension 0 of every tensor into N parts")
        .texts(splits_, "--split", "REGEX=DIM:N",
               "cut tensors whose key matches along DIM into N parts; the first match decides")
        .text(
            layout_, "--for-layout", "LAYOUT",
            "cut tensors into the chunks that the ranks of this layout ask for, with one file for "
            "each group of ranks that ask for the same chunks")
        .text(optimizer_, "--optimizer", "FORM",
              "write the state of Megatron's distributed optimizer in this form: fully_reshardable")
        .number(
            writers_, "--writers", 1,
            "number of writers, each of which writes a file (default: the ranks of --ranks; with "
            "--for-layout a writer for each group of ranks; with --optimizer as many as IN "
            "has files; or 1)")
        .text(per_rank_, "--per-rank", "first|drop",
              "if each rank saved its own values: 'first' gives all ranks the first rank's, 'drop' "
              "leaves out values that differ (default: each rank keeps its own, which needs "
              "as many ranks in --ranks or --for-layout as saved them)")
        .flag(strides_, "--keep-strides",
              "keep the strides that torch 2.15 writes into .metadata; torch before 2.15 can't "
              "read such a checkpoint")
        .texts(releases_, "--for", "RELEASE",
               "write what this release reads, such as torch-2.14 or mcore-0.18, or say why that "
               "can't be; once for each release")
        .flag(force_, "--force",
              "replace OUT if it is a checkpoint and contains nothing else; the old one is removed "
              "once the new one is confirmed in its place")
        .flag(unchecked_, "--no-checksums",
              "don't check checksums: flipped bits are then written with correct checksums, and "
              "nothing can detect them any more")
        .jobs(threads_)
        .flag(json_, "--json", "print one JSON document")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    const StoredPath from = stored_path(source_);
    const StoredPath to = path_to_write(target_);
    ReshardOptions options{.rule = cut_rule(splits_, ranks_), .checksums = !unchecked_};
    options.writers = writers_for(ranks_, writers_);
    options.strides = strides_;
    options.ranks = {.per_rank = per_rank(), .ranks = ranks_};
    if (!optimizer_.empty()) require_writable_form(optimizer_);
    if (to.path.empty()) throw Error(Code::kUsage, "OUT can't be the root of the file system");
    require_apart(from.display(), to);
    require_free(to, force_ ? Standing::kReplaced : Standing::kKept);
    Checkpoint source = Checkpoint::open_any(*from.store, from.path);
    require_apart(from.store->display(source.location().directory), to);
    check_splits(splits_, source.catalog());
    const std::vector<Release> releases = releases_named();
    options.last_look = [&to, this] {
      require_free(to, force_ ? Standing::kReplaced : Standing::kKept);
    };
    NoProgress none;
    options.judge = [&to, &none, &releases](const std::string& directory) {
      require_whole(*to.store, directory, "OUT was not written: what was to become OUT",
                    PayloadCheck::kSkip, none);
      if (releases.empty()) return;
      Checkpoint written = Checkpoint::open(*to.store, directory);
      require_readers(written, releases);
    };
    source.require_common_if_megatron();
    require_whole(*from.store, source.location().path(), "IN", PayloadCheck::kSkip, none);
    ReshardTold told{.source = source_, .target = target_, .releases = releases};
    told.optimizer = with_optimizer(source, options);
    const auto fitted = for_layout(source, options);
    std::optional<double> before;  // with --optimizer, the source would not be loaded as it is
    if (fitted && !told.optimizer) before = amplification(source.catalog(), *fitted);
    OtherForms other =
        forms_for(source, options.common ? &*options.common : nullptr, releases, strides_);
    options.files = std::move(other.files);
    options.left_objects = std::move(other.left_objects);
    options.ranks.one_metadata = other.one_metadata;
    told.changes = std::move(other.changes);
    const ReshardReport report = write(source, to, options, console);
    if (fitted) {
      const Checkpoint written = Checkpoint::open(*to.store, to.path);
      told.fit = {sim::to_string(fitted->layout), before, amplification(written.catalog(), *fitted),
                  fitted->notes()};
    }
    if (json_) {
      console.out << reshard_json(told, report);
    } else {
      console.out << fmt::format(
          "{}, {}, {}: {} became {}, in {}, {}\n", counted(report.tensors, "tensor"),
          counted(report.elements, "element"), counted(report.objects, "object"),
          counted(report.chunks_before, "chunk"), with_commas(report.chunks_after),
          counted(report.files, "file"), human_bytes(report.bytes));
      if (told.optimizer) console.out << words_on(*told.optimizer);
      if (told.fit) console.out << words_on(*told.fit);
      for (const std::string& change : told.changes) console.out << change << '\n';
      console.out << words_on_ranks(report) << words_on_rest(report);
    }
    for (const auto& line : report.log) console.err << line << '\n';
    return fitted && fitted->has_unfit() ? ExitCode::kInconclusive : ExitCode::kPass;
  }

 private:
  std::vector<Release> releases_named() const {
    std::vector<Release> releases;
    for (const std::string& name : releases_) releases.push_back(release_named(name));
    return releases;
  }

  std::optional<PerRank> per_rank() const {
    if (per_rank_.empty()) return std::nullopt;
    if (per_rank_ == "first") return PerRank::kFirst;
    if (per_rank_ == "drop") return PerRank::kDrop;
    throw Error(Code::kUsage, "--per-rank is 'first' or 'drop', not '" + per_rank_ + "'");
  }

  /// Makes `source` and `options` those of another form of the optimizer's state, if one is given.
  std::optional<OptimizerChange> with_optimizer(Checkpoint& source, ReshardOptions& options) const {
    if (optimizer_.empty()) return std::nullopt;
    const auto common = source.common();
    const sim::Layout layout =
        common && common->item.value ? saving_layout(*common->item.value) : sim::Layout{};
    HostDevice device("host", 0);
    OptimizerView view = as_fully_reshardable(
        source, {.parts = parts_of(layout), .virtual_stages = layout.vpp > 1}, device);
    OptimizerChange change{view.from, optimizer_, view.parameters, std::move(view.without_state)};
    source = source.with(std::move(view.metadata));
    options.common = std::move(view.common);
    if (ranks_ == 0 && splits_.empty()) {
      const auto files = static_cast<std::int64_t>(source.catalog().files.size());
      options.writers = writers_for(std::clamp<std::int64_t>(files, 1, kWritersMax), writers_);
      options.boxes_for = [writers = options.writers](const Catalog& catalog) {
        return boxes_of_weights(catalog, writers);
      };
    }
    return change;
  }

  static std::string words_on(const OptimizerChange& change) {
    std::string words =
        change.from == change.to
            ? fmt::format("the state of the optimizer is {}, as it was\n", change.to)
            : fmt::format("the state of the optimizer was {} and is {}: {}\n", change.from,
                          change.to, counted(change.tensors, "tensor"));
    if (!change.without_state.empty()) {
      words += fmt::format("note: the optimizer has no state of {}: {}\n",
                           counted(change.without_state.size(), "tensor"),
                           join_first(change.without_state));
    }
    return words;
  }

  /// Makes `options` cut tensors for the layout, if one is given. `source` must outlive the result
  /// and the options.
  std::optional<LayoutOfCheckpoint> for_layout(Checkpoint& source, ReshardOptions& options) const {
    if (layout_.empty()) return std::nullopt;
    if (ranks_ != 0 || !splits_.empty()) {
      throw Error(Code::kUsage, "--for-layout can't be given with --ranks or --split");
    }
    std::optional<LayoutOfCheckpoint> fitted = layout_of_checkpoint(layout_, source);
    const auto places = fitted->places_alone();
    const auto writers = writers_for(static_cast<std::int64_t>(places.size()), writers_);
    options.writers = writers;
    options.ranks.ranks = fitted->layout.world_size();
    options.boxes_for = [places, writers, parts = fitted->parts,
                         saved_by = fitted->saved_by](const Catalog& catalog) -> BoxRule {
      const auto boxes = std::make_shared<const LayoutBoxes>(catalog, parts, saved_by);
      return [boxes, places, writers](std::uint32_t tensor) {
        return layout_rule(*boxes, places, writers)(tensor);
      };
    };
    return fitted;
  }

  /// Returns how many bytes torch reads for each that the ranks of the layout ask for.
  static double amplification(const Catalog& catalog, const LayoutOfCheckpoint& fitted) {
    const LayoutBoxes boxes(catalog, fitted.parts, fitted.saved_by);
    return read_amplification(layout_reads(catalog, boxes, fitted.places_alone()), fitted.counts());
  }

  static std::string words_on(const LayoutFit& fit) {
    std::string words =
        fit.after == 0
            ? fmt::format("under {}, the ranks ask for no tensor of OUT", fit.layout)
            : fmt::format("under {}, torch reads {:.2f} times the bytes that its ranks ask for",
                          fit.layout, fit.after);
    if (fit.before && *fit.before != 0) words += fmt::format("; it was {:.2f} times", *fit.before);
    words += "\n";
    for (const std::string& note : fit.notes) words += "note: " + note + "\n";
    return words;
  }

  /// Describes what became of values that belong to individual ranks.
  static std::string words_on_ranks(const ReshardReport& report) {
    std::string words;
    if (report.ranks != 0) {
      words += fmt::format("each of {} ranks keeps its own values\n", report.ranks);
    }
    if (!report.of_first.empty()) {
      words += fmt::format("the first rank's values for all: {}\n", join(report.of_first, ", "));
    }
    if (!report.dropped.empty()) {
      words += fmt::format("left out, because ranks differ: {}\n", join(report.dropped, ", "));
    }
    return words;
  }

  /// Describes what became of the other files in the checkpoint's directory.
  static std::string words_on_rest(const ReshardReport& report) {
    std::string words;
    if (!report.carried.empty()) {
      words += fmt::format("copied along: {}\n", join(report.carried, ", "));
    }
    if (!report.left_out.empty()) {
      words += fmt::format("left out: {}\n", join(report.left_out, ", "));
    }
    for (const Finding& note : report.notes) words += "note: " + note.message + "\n";
    return words;
  }

  ReshardReport write(Checkpoint& source, const StoredPath& to, const ReshardOptions& options,
                      const Console& console) const {
    HostDevice device("host", 0);
    ThreadTasks tasks(threads_);
    NoTrace trace;
    CommitTarget target{to.path};
    target.replace = force_;
    return written_by(
        [&](Progress& progress) {
          return reshard(source, target, options, {*to.store, device, tasks, trace, progress});
        },
        to, name(), console,
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
  }

  std::string source_;
  std::string target_;
  std::string layout_;
  std::string optimizer_;
  std::int64_t ranks_ = 0;
  std::vector<std::string> splits_;
  std::int64_t writers_ = 0;
  int threads_ = 1;
  std::string per_rank_;
  bool strides_ = false;
  std::vector<std::string> releases_;
  bool force_ = false;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_reshard() { return std::make_unique<ReshardVerb>(); }

}  // namespace reprise::cli
