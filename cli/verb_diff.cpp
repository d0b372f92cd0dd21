#include <fmt/format.h>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/output/files_report.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/key_filter.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"
#include "cli/verb.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "core/diff/diff.hpp"

namespace reprise::cli {
namespace {

std::string form_of(const std::optional<TensorDiff::Side>& side) {
  return side ? fmt::format("{} {}", name_of(side->dtype), to_string(side->shape)) : "-";
}

/// Returns the remarks that follow the verdict in a tensor's row.
std::string words_for(const TensorDiff& tensor) {
  if (tensor.first) {
    return fmt::format("{} of {} elements, max_delta {:g}, first at {}: {} | {}",
                       with_commas(tensor.comparison.bit_mismatches),
                       with_commas(tensor.comparison.elements), tensor.comparison.max_delta,
                       to_string(*tensor.first), tensor.first_left, tensor.first_right);
  }
  return fmt::format("{} | {}{}", form_of(tensor.left), form_of(tensor.right),
                     tensor.reason.empty() ? "" : ", " + tensor.reason);
}

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

/// Quotes a word for a shell, as in 'a word'; quotes in the word are escaped.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
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
           "  reprise diff --ignore \"common_state\\['args'\\]\" A B     launch arguments aside\n"
           "  reprise diff --accept layout-bound tp2 tp4       the same content under two layouts\n"
           "  reprise diff --json A B | jq '.tensors[] | select(.verdict != \"same\").key'\n"
           "Exits with 0 if all that takes part was compared and is the same, 1 if anything "
           "differs, 2 if\n"
           "a checkpoint is damaged or can't be read, 3 if nothing differs and something was not "
           "compared:\n"
           "what is bound to a layout (random states, rerun states, buckets of a distributed "
           "optimizer)\n"
           "where the layouts differ, and objects and files beside the payload that are not "
           "interpreted and\n"
           "have other bytes. A key or file that only one of the checkpoints has is a difference, "
           "whatever it\n"
           "is.\n";
  }
  void declare(Options& options) override {
    options.positional(left_, "A", "a checkpoint")
        .positional(right_, "B", "another one")
        .texts(keys_, "--keys", "REGEX",
               "compare only keys that match (the common state's key is \"common_state\"; the key "
               "of a file next to the payload is its name)")
        .texts(ignored_, "--ignore", "REGEX", "skip keys that match, and paths in the common state")
        .texts(accepted_, "--accept", "layout-bound",
               "accept values that depend on a layout and can't be compared; they don't affect the "
               "exit code")
        .flag(unchecked_, "--no-checksums", "don't check checksums, which reads everything twice")
        .flag(json_, "--json", "print one JSON document")
        .text(report_, "--report", "DIR", "write report.json (lane files) and junit.xml there")
        .flag(quiet_, "-q,--quiet", "print only differences, no progress");
  }

  ExitCode run(const Console& console) override {
    PosixClock clock;
    const std::uint64_t start = clock.now_ns();
    const StoredPath left_path = stored_path(left_);
    const StoredPath right_path = stored_path(right_);
    Checkpoint left = Checkpoint::open(*left_path.store, left_path.path);
    Checkpoint right = Checkpoint::open(*right_path.store, right_path.path);
    const DiffRequest request = requested();
    const DiffReport report = compare(left, right, console);
    const DiffOutcome outcome = report.outcome(request.layout_bound);
    for (const Finding& finding : report.damage) {
      console.err << "reprise diff: " << finding << '\n';
    }
    if (json_) {
      console.out << diff_json(request, report);
    } else if (outcome != DiffOutcome::kDamaged) {
      print(report, request, console);
    }
    if (!report_.empty()) {
      write_files_report({diff_result(request, report)},
                         static_cast<double>(clock.now_ns() - start) * 1e-9, report_);
    }
    return exit_code_of(outcome);
  }

 private:
  DiffRequest requested() const {
    DiffRequest request{.left = left_, .right = right_};
    for (const auto& key : keys_) request.options += "--keys " + quoted(key) + " ";
    for (const auto& key : ignored_) request.options += "--ignore " + quoted(key) + " ";
    for (const auto& what : accepted_) {
      if (what != "layout-bound") {
        throw Error(Code::kUsage, "--accept '" + what + "': only layout-bound can be accepted");
      }
      request.layout_bound = LayoutBound::kAccepted;
      request.options += "--accept layout-bound ";
    }
    if (unchecked_) request.options += "--no-checksums ";
    return request;
  }

  DiffReport compare(Checkpoint& left, Checkpoint& right, const Console& console) const {
    const KeyFilter filter(keys_, ignored_);
    DiffOptions options{.checksums = !unchecked_};
    if (!filter.everything()) {
      options.wanted = [filter](std::string_view key) { return filter.wants(key); };
    }
    if (!ignored_.empty()) {
      options.path_ignored = [filter](std::string_view path) { return filter.ignores(path); };
    }
    HostDevice device("host", 0);
    PosixClock clock;
    ProgressLine progress(
        console, clock, "diff",
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kIfTerminal);
    return diff(left, right, device, options, progress);
  }

  void print(const DiffReport& report, const DiffRequest& request, const Console& console) const {
    print_objects(report.objects, console);
    print_objects(report.files, console);
    print_tensors(report, console);
    if (!quiet_) {
      for (const Finding& finding : report.notes) console.out << finding << '\n';
    }
    print_verdict(report, request.layout_bound, console);
  }

  void print_objects(const std::vector<ObjectDiff>& objects, const Console& console) const {
    for (const ObjectDiff& object : objects) {
      const bool worth_saying = object.verdict != DiffVerdict::kSame || (object.opaque && !quiet_);
      if (!worth_saying) continue;
      console.out << object.key << ": " << name_of(object.verdict)
                  << (object.reason.empty() ? "" : ", " + object.reason) << '\n';
      for (const auto& difference : object.differences) {
        console.out << "  " << difference.path << ": " << difference.left << " | "
                    << difference.right << '\n';
      }
    }
  }

  static void print_tensors(const DiffReport& report, const Console& console) {
    Table table({{"tensor"}, {"verdict"}, {"A | B"}});
    for (const TensorDiff& tensor : report.tensors) {
      if (tensor.verdict == DiffVerdict::kSame) continue;
      table.add({tensor.key, std::string(name_of(tensor.verdict)), words_for(tensor)});
    }
    if (!table.empty()) table.print(console);
  }

  static std::string words_for_files(const DiffReport& report) {
    return fmt::format(" and {} {} beside them", with_commas(report.files_compared),
                       report.files_compared == 1 ? "file" : "files");
  }

  /// Describes what was compared, followed by what was not compared.
  static std::string counts_of(const DiffReport& report, LayoutBound bound) {
    std::string text =
        fmt::format("{} elements ({}) of {} tensors and {} objects{} compared",
                    with_commas(report.elements), human_bytes(report.bytes),
                    with_commas(report.tensors_compared), with_commas(report.objects_compared),
                    report.files_compared == 0 ? std::string() : words_for_files(report));
    const auto add = [&text](std::uint64_t count, std::string_view what) {
      if (count != 0) text += fmt::format(", {} {}", with_commas(count), what);
    };
    add(report.objects_opaque, "of them as bytes");
    add(report.not_comparable(),
        bound == LayoutBound::kAccepted ? "not comparable and accepted" : "not comparable");
    add(report.not_known(), "not known");
    add(report.ignored_keys, report.ignored_keys == 1 ? "key ignored" : "keys ignored");
    add(report.ignored_differences, "differences in the common state ignored");
    return text + (report.checksums ? "" : ", checksums not checked");
  }

  static void print_verdict(const DiffReport& report, LayoutBound bound, const Console& console) {
    const std::string counts = counts_of(report, bound);
    switch (report.outcome(bound)) {
      case DiffOutcome::kSame:
        console.out << "same: " << counts << '\n';
        return;
      case DiffOutcome::kDifferent:
        console.out << fmt::format("different: {} differ; {}\n", report.different(), counts);
        return;
      case DiffOutcome::kNotAllCompared:
        console.out << "not all compared: nothing differs in " << counts << '\n';
        return;
      case DiffOutcome::kNothingCompared:
        console.out << "nothing was compared: " << counts << '\n';
        return;
      case DiffOutcome::kDamaged:
        return;  // the printed findings show the damage
    }
  }

  std::string left_;
  std::string right_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::vector<std::string> accepted_;
  std::string report_;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_diff() { return std::make_unique<DiffVerb>(); }

}  // namespace reprise::cli
