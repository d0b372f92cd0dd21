#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/print.hpp"
#include "core/engine/reshard.hpp"
#include "scenarios/cli/checkpoint_argument.hpp"
#include "scenarios/cli/json_output.hpp"
#include "scenarios/cli/progress_line.hpp"
#include "scenarios/cli/split_rule.hpp"
#include "scenarios/cli/verb.hpp"

namespace reprise::cli {
namespace {

constexpr std::int64_t kWritersMax = 65536;

/// Are they the same, or is `inner` somewhere below `outer`? Links are followed.
bool lies_within(const std::string& inner, const std::string& outer) {
  const auto within = resolved(inner);
  const auto above = resolved(outer);
  return std::mismatch(above.begin(), above.end(), within.begin(), within.end()).first ==
         above.end();
}

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
           "  reprise reshard --writers 1 ckpt out             as it was cut, in one file\n";
  }
  void declare(Options& options) override {
    options.positional(source_, "IN", "a checkpoint")
        .positional(target_, "OUT", "directory to write; must not exist")
        .number(ranks_, "--ranks", 1, "cut dimension 0 of every tensor into N parts")
        .texts(splits_, "--split", "REGEX=DIM:N",
               "cut tensors whose key matches along DIM into N parts; the first match decides")
        .number(writers_, "--writers", 1, "number of writers (default: the ranks, or 1)")
        .flag(force_, "--force", "replace OUT if it is a checkpoint")
        .flag(unchecked_, "--no-checksums",
              "don't check checksums first: flipped bits are then written anew under right "
              "checksums, and nothing will ever tell")
        .flag(json_, "--json", "print one JSON document")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    const StoredPath from = stored_path(source_);
    const StoredPath to = stored_path(target_);
    ReshardOptions options{.rule = cut_rule(splits_, ranks_), .checksums = !unchecked_};
    options.writers = writers();
    if (to.path.empty()) throw Error(Code::kUsage, "OUT can't be the root of the file system");
    check_apart(from.display(), to);
    check_may_write(to);
    Checkpoint source = Checkpoint::open(*from.store, from.path);
    check_apart(from.store->display(source.location().directory), to);
    check_splits(splits_, source.catalog());
    const ReshardReport report = write(source, to, options, console);
    if (json_) {
      console.out << reshard_json(source_, target_, report);
    } else {
      console.out << fmt::format(
          "{} tensors, {} elements, {} objects: {} chunks became {}, in {} files, {}\n",
          with_commas(report.tensors), with_commas(report.elements), with_commas(report.objects),
          with_commas(report.chunks_before), with_commas(report.chunks_after),
          with_commas(report.files), human_bytes(report.bytes));
    }
    return ExitCode::kPass;
  }

 private:
  /// Writing to OUT removes what stands there and beside it under the names of the commit.
  static void check_apart(const std::string& in, const StoredPath& to) {
    const CommitTarget target{to.path};
    if (!lies_within(in, to.display()) && !lies_within(to.display(), in) &&
        !lies_within(in, to.store->display(target.saving())) &&
        !lies_within(in, to.store->display(target.replaced()))) {
      return;
    }
    throw Error(Code::kUsage,
                "IN and OUT are one directory or lie within each other, and writing OUT would "
                "remove IN; name an OUT apart from it",
                {.file = to.display()});
  }

  void check_may_write(const StoredPath& to) const {
    if (!to.store->stat(to.path)) return;
    if (!force_) {
      throw Error(Code::kUsage, "OUT is there already; name another, or give --force",
                  {.file = to.display()});
    }
    if (!holds_metadata(*to.store, to.path)) {
      throw Error(Code::kUsage,
                  "OUT is there and holds no .metadata itself: --force replaces checkpoints, "
                  "nothing else; remove it yourself, or name another",
                  {.file = to.display()});
    }
  }

  std::int32_t writers() const {
    const std::int64_t wanted = writers_ != 0 ? writers_ : std::max<std::int64_t>(ranks_, 1);
    if (wanted > kWritersMax) {
      throw Error(Code::kUsage, "more than " + std::to_string(kWritersMax) + " writers");
    }
    return static_cast<std::int32_t>(wanted);
  }

  ReshardReport write(Checkpoint& source, const StoredPath& to, const ReshardOptions& options,
                      const Console& console) const {
    HostDevice device("host", 0);
    ThreadTasks tasks(1);
    PosixClock clock;
    SilentTrace trace;
    ProgressLine progress(
        console, clock, "reshard",
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kIfTerminal);
    const CommitTarget target{to.path};
    return reshard(source, target, options, {*to.store, device, tasks, trace, progress});
  }

  std::string source_;
  std::string target_;
  std::int64_t ranks_ = 0;
  std::vector<std::string> splits_;
  std::int64_t writers_ = 0;
  bool force_ = false;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_reshard() { return std::make_unique<ReshardVerb>(); }

}  // namespace reprise::cli
