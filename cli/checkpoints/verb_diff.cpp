#include <algorithm>
#include <optional>
#include <utility>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/rename_rule.hpp"
#include "cli/frame/verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/diff_page.hpp"
#include "cli/output/diff_text.hpp"
#include "cli/output/files_report.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/progress_line.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/bytes.hpp"
#include "core/base/shell_word.hpp"
#include "core/diff/diff.hpp"
#include "core/diff/diff_sources.hpp"
#include "core/diff/diff_summary.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise::cli {
namespace {

ExitCode exit_code_of(DiffOutcome outcome) {
  switch (outcome) {
    case DiffOutcome::kSame:
      return ExitCode::kPass;
    case DiffOutcome::kDifferent:
      return ExitCode::kFail;
    case DiffOutcome::kDamaged:
      return ExitCode::kUnusable;
    case DiffOutcome::kNotAllCompared:
    case DiffOutcome::kNothingCompared:
      break;
  }
  return ExitCode::kInconclusive;
}

class DiffVerb final : public Verb {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override {
    return "Compare the content of two checkpoints, whatever their sharding";
  }
  std::string_view examples() const override {
    return "  reprise diff before/iter_0000100 after/iter_0000100\n"
           "  reprise diff --keys '^model\\.' --ignore '\\._extra_state' A B\n"
           "  reprise diff --ignore \"common_state\\['args'\\]\" A B     ignore launch arguments\n"
           "  reprise diff --accept layout-bound tp2 tp4       the same content under two layouts\n"
           "  reprise diff --stat A B                          counts by kind and by group of "
           "keys\n"
           "  reprise diff --sort change A B                   what changed most comes first\n"
           "  reprise diff --rename 's/^model\\.//' A B        where A's keys have a prefix\n"
           "  reprise diff --values float32 bfloat16           by value, whatever the dtypes\n"
           "  reprise diff --json A B | jq '.tensors[] | select(.verdict != \"same\").key'\n"
           "  reprise diff --json A B | jq '.tensors[] | select(.max_delta != 0) | {key, "
           "max_delta}'\n"
           "Exits with 0 if all that takes part was compared and is the same, 1 if anything "
           "differs, 2 if\n"
           "a checkpoint is damaged or can't be opened, 3 if nothing differs but something was not "
           "compared:\n"
           "what depends on the layout (random states, rerun states, buckets of a distributed "
           "optimizer)\n"
           "if the layouts differ, objects and files beside the payload that are not interpreted "
           "and have\n"
           "different bytes, and files that can't be read. A key or file that only one of the "
           "checkpoints has is a\n"
           "difference, whatever it is.\n"
           "REGEX is an RE2 expression: Perl syntax without backreferences and lookaround.\n";
  }
  void declare(Options& options) override {
    options.positional(left_, "A", "a checkpoint")
        .positional(right_, "B", "another one")
        .texts(keys_, "--keys", "REGEX",
               "compare only keys that match (the common state's key is \"common_state\"; the key "
               "of a file next to the payload is its name)")
        .texts(ignored_, "--ignore", "REGEX", "skip keys and paths in the common state that match")
        .texts(accepted_, "--accept", "layout-bound",
               "accept values that depend on a layout and can't be compared; they don't affect the "
               "exit code")
        .texts(renames_, "--rename", "s/REGEX/TEXT/",
               "rename the keys of A, as sed does, before they are matched with those of B; may be "
               "given more than once, and the rules apply in order; in TEXT, & is the match and "
               "\\1 or $1 a group of it")
        .flag(values_, "--values",
              "compare tensors with different dtypes by their exact values; if the values are "
              "equal, the tensor is listed but does not count as a difference")
        .text(tolerance_, "--tolerance", "X",
              "not supported: diff compares bits without a tolerance; max_delta says how far apart "
              "values are")
        .flag(stat_, "--stat", "show counts by kind and by group of keys instead of listing keys")
        .text(sort_, "--sort", "key|change",
              "order of tensors and groups: by key (default), or what changed most first, which is "
              "where the norm of the difference is largest relative to that of A")
        .number(limit_, "--limit", 0,
                "show at most N rows, or all if N is 0 (default: 40; --json is never cut)")
        .flag(no_sources_, "--no-sources",
              "don't look for where values come from that differ, which reads the tensors that "
              "differ up to three times more")
        .jobs(threads_)
        .flag(unchecked_, "--no-checksums",
              "don't check checksums (checking reads everything twice)")
        .flag(json_, "--json", "print one JSON document")
        .text(report_, "--report", "DIR",
              "write report.json (lane files), junit.xml, report.html, summary.md, and diff.html, "
              "which shows where tensors differ, there")
        .flag(quiet_, "-q,--quiet", "print only differences and no progress");
  }

  ExitCode run(const Console& console) override {
    if (!tolerance_.empty()) refuse_tolerance();
    if (sort_ != "key" && sort_ != "change") {
      throw Error(Code::kUsage, "--sort '" + sort_ + "': neither key nor change");
    }
    PosixClock clock;
    const std::uint64_t start = clock.now_ns();
    const StoredPath left_path = stored_path(left_);
    const StoredPath right_path = stored_path(right_);
    auto [left, right] = opened_both(left_path, right_path);
    const DiffRequest request = requested();
    DiffReport report = compare(left, right, console);
    if (!no_sources_ && report.damage.empty()) name_sources(left, right, console, report);
    const DiffOutcome outcome = report.outcome(request.layout_bound);
    for (const Finding& finding : report.damage) {
      console.err << "reprise diff: " << finding << '\n';
    }
    if (json_) {
      if (sort_ == "change") {
        std::ranges::stable_sort(report.tensors, changed_more, &TensorDiff::change);
      }
      console.out << diff_json(request, report);
    } else {
      print_diff(report,
                 {.limit = static_cast<std::uint64_t>(limit_),
                  .groups = stat_,
                  .quiet = quiet_,
                  .by_change = sort_ == "change",
                  .layout_bound = request.layout_bound},
                 console);
    }
    if (!report_.empty()) {
      write_files_report({diff_result(request, report)},
                         static_cast<double>(clock.now_ns() - start) * 1e-9, report_);
      const std::string page = diff_page(request, report);
      PosixStore store(report_);
      write_atomically(store, "diff.html", as_bytes(page));
    }
    return exit_code_of(outcome);
  }

 private:
  [[noreturn]] static void refuse_tolerance() {
    throw Error(
        Code::kUsage,
        "there is no tolerance: diff compares bits, so that no small difference is overlooked. "
        "max_delta, in each row and in --json, says how far apart values are; for example, reprise "
        "diff --json A B | jq '.tensors[] | select(.max_delta != 0) | {key, max_delta}'");
  }

  /// Opens both at a time. Of two failures, A's is thrown.
  std::pair<Checkpoint, Checkpoint> opened_both(const StoredPath& a, const StoredPath& b) const {
    std::optional<Checkpoint> left;
    std::optional<Checkpoint> right;
    ThreadTasks tasks(std::min(threads_, 2));
    const auto opening_left = tasks.start([&] { left.emplace(opened(a, renames_)); });
    const auto opening_right =
        tasks.start([&] { right.emplace(Checkpoint::open_any(*b.store, b.path)); });
    opening_left->wait();
    opening_right->wait();
    return {std::move(*left), std::move(*right)};
  }

  DiffRequest requested() const {
    DiffRequest request{.left = left_, .right = right_};
    for (const auto& what : accepted_) {
      if (what != "layout-bound") {
        throw Error(Code::kUsage, "--accept '" + what + "': only layout-bound can be accepted");
      }
      request.layout_bound = LayoutBound::kAccepted;
    }
    add_option("keys", keys_, request);
    add_option("ignore", ignored_, request);
    add_option("rename", renames_, request);
    add_option("accept", accepted_, request);
    if (values_) add_flag("values", request);
    if (no_sources_) add_flag("no-sources", request);
    if (unchecked_) add_flag("no-checksums", request);
    return request;
  }

  static void add_option(const std::string& name, const std::vector<std::string>& values,
                         DiffRequest& request) {
    for (const auto& value : values) request.options += "--" + name + " " + shell_word(value) + " ";
    if (!values.empty()) request.given[name] = values;
  }

  static void add_flag(const std::string& name, DiffRequest& request) {
    request.options += "--" + name + " ";
    std::string word = name;
    std::replace(word.begin(), word.end(), '-', '_');
    request.given.try_emplace(word);
  }

  DiffReport compare(Checkpoint& left, Checkpoint& right, const Console& console) const {
    const KeyFilter filter(keys_, ignored_);
    DiffOptions options{.checksums = !unchecked_, .values = values_};
    if (!filter.everything()) {
      options.wanted = [filter](std::string_view key) { return filter.wants(key); };
    }
    if (!ignored_.empty()) {
      options.path_ignored = [filter](std::string_view path) { return filter.ignores(path); };
    }
    HostDevice device("host", 0);
    PosixClock clock;
    ProgressLine progress(console, clock, "diff",
                          quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes,
                          ProgressUnit::kBytes);
    ThreadTasks tasks(threads_);
    options.tasks = &tasks;
    return diff(left, right, device, options, progress);
  }

  /// Nothing is read if no tensor differs.
  void name_sources(Checkpoint& left, Checkpoint& right, const Console& console,
                    DiffReport& report) const {
    HostDevice device("host", 0);
    PosixClock clock;
    ProgressLine progress(console, clock, "diff: sources",
                          quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes,
                          ProgressUnit::kBytes);
    ThreadTasks tasks(threads_);
    find_sources(left, right, {device, tasks, progress}, report);
  }

  std::string left_;
  std::string right_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::vector<std::string> accepted_;
  std::vector<std::string> renames_;
  std::string tolerance_;
  std::string sort_ = "key";
  std::int64_t limit_ = 40;
  int threads_ = 1;
  bool no_sources_ = false;
  std::string report_;
  bool values_ = false;
  bool stat_ = false;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_diff() { return std::make_unique<DiffVerb>(); }

}  // namespace reprise::cli
