#include <fmt/format.h>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "core/engine/diff.hpp"
#include "scenarios/cli/checkpoint_argument.hpp"
#include "scenarios/cli/files_report.hpp"
#include "scenarios/cli/json_output.hpp"
#include "scenarios/cli/key_filter.hpp"
#include "scenarios/cli/progress_line.hpp"
#include "scenarios/cli/table.hpp"
#include "scenarios/cli/verb.hpp"

namespace reprise::cli {
namespace {

std::string form_of(const std::optional<TensorDiff::Side>& side) {
  return side ? fmt::format("{} {}", name_of(side->dtype), to_string(side->shape)) : "-";
}

/// What a tensor's row says beyond its verdict.
std::string words_for(const TensorDiff& tensor) {
  if (tensor.first) {
    return fmt::format("{} of {} elements, max_delta {:g}, first at {}: {} | {}",
                       with_commas(tensor.comparison.bit_mismatches),
                       with_commas(tensor.comparison.elements), tensor.comparison.max_delta,
                       to_string(*tensor.first), tensor.first_left, tensor.first_right);
  }
  return fmt::format("{} | {}", form_of(tensor.left), form_of(tensor.right));
}

class DiffVerb final : public Verb {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override {
    return "Do two checkpoints hold the same content, whatever their sharding?";
  }
  std::string_view examples() const override {
    return "  reprise diff before/iter_0000100 after/iter_0000100\n"
           "  reprise diff --keys '^model\\.' --ignore '\\._extra_state' A B\n"
           "  reprise diff --ignore \"common_state\\['args'\\]\" A B     launch arguments aside\n"
           "  reprise diff --json A B | jq '.tensors[] | select(.verdict != \"same\").key'\n";
  }
  void declare(Options& options) override {
    options.positional(left_, "A", "a checkpoint")
        .positional(right_, "B", "another one")
        .texts(keys_, "--keys", "REGEX",
               "only keys in which this is found (the common state's key is \"common_state\")")
        .texts(ignored_, "--ignore", "REGEX",
               "not these keys; paths in the common state count, too")
        .flag(unchecked_, "--no-checksums", "don't read everything twice to check checksums")
        .flag(json_, "--json", "print one JSON document")
        .text(report_, "--report", "DIR", "write report.json (lane files) and junit.xml there")
        .flag(quiet_, "-q,--quiet", "print differences alone, no progress");
  }

  ExitCode run(const Console& console) override {
    PosixClock clock;
    const std::uint64_t start = clock.now_ns();
    const StoredPath left_path = stored_path(left_);
    const StoredPath right_path = stored_path(right_);
    Checkpoint left = Checkpoint::open(*left_path.store, left_path.path);
    Checkpoint right = Checkpoint::open(*right_path.store, right_path.path);
    const DiffReport report = compare(left, right, console);
    for (const Finding& finding : report.damage) {
      console.err << "reprise diff: " << finding << '\n';
    }
    if (json_) {
      console.out << diff_json(left_, right_, report);
    } else if (report.damage.empty()) {
      print(report, console);
    }
    if (!report_.empty()) {
      write_files_report({diff_result(left_, right_, report)},
                         static_cast<double>(clock.now_ns() - start) * 1e-9, report_);
    }
    if (!report.damage.empty()) return ExitCode::kUnusable;
    if (report.empty()) return ExitCode::kInconclusive;
    return report.different() == 0 ? ExitCode::kPass : ExitCode::kFail;
  }

 private:
  DiffReport compare(Checkpoint& left, Checkpoint& right, const Console& console) const {
    const KeyFilter filter(keys_, ignored_);
    DiffOptions options{.checksums = !unchecked_};
    if (!filter.everything()) {
      options.wanted = [filter](std::string_view key) { return filter.wants(key); };
    }
    HostDevice device("host", 0);
    PosixClock clock;
    ProgressLine progress(
        console, clock, "diff",
        quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kIfTerminal);
    return diff(left, right, device, options, progress);
  }

  void print(const DiffReport& report, const Console& console) const {
    print_objects(report, console);
    print_tensors(report, console);
    if (!quiet_) {
      for (const Finding& finding : report.notes) console.out << finding << '\n';
    }
    print_verdict(report, console);
  }

  void print_objects(const DiffReport& report, const Console& console) const {
    for (const ObjectDiff& object : report.objects) {
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

  static void print_verdict(const DiffReport& report, const Console& console) {
    const std::string compared = fmt::format(
        "{} elements ({}) of {} tensors and {} objects compared{}", with_commas(report.elements),
        human_bytes(report.bytes), with_commas(report.tensors.size()),
        with_commas(report.objects_compared),
        report.objects_opaque == 0 ? ""
                                   : fmt::format(", {} of them as bytes", report.objects_opaque));
    const std::string bound = report.not_comparable() == 0
                                  ? ""
                                  : fmt::format(", {} not comparable", report.not_comparable());
    if (report.empty()) {
      console.out << "nothing was compared" << bound << '\n';
    } else if (report.different() == 0) {
      console.out << "same: " << compared << bound << '\n';
    } else {
      console.out << fmt::format("different: {} differ; {}{}\n", report.different(), compared,
                                 bound);
    }
  }

  std::string left_;
  std::string right_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
  std::string report_;
  bool unchecked_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_diff() { return std::make_unique<DiffVerb>(); }

}  // namespace reprise::cli
