#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/health_limits.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/files_report.hpp"
#include "cli/output/json_output.hpp"
#include "cli/output/progress_line.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "core/checkpoint/checkpoints_below.hpp"
#include "core/format/integrity.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/resume/resume_point.hpp"
#include "core/seal/seal.hpp"
#include "core/verify/health_against.hpp"
#include "core/verify/verify.hpp"

namespace reprise::cli {
namespace {

/// Returns the text after the verdict "whole", which says what was not checked. Returns empty text
/// if everything was checked.
std::string_view reservation(const VerifyReport& report) {
  if (report.verdict() != VerifyVerdict::kWhole) return "";
  if (report.sealed) return "; every byte is as it was sealed";
  if (report.manifest) return "";
  if (!report.payload_read) return "; the payload was not read";
  if (report.no_checksums) {
    return "; safetensors has no checksums: all bytes were read, but changed values can't be "
           "detected";
  }
  if (is_of_torch_save(report.location->form)) {
    return report.files > 1 ? "; files from another save could not be detected" : "";
  }
  if (report.partial_manifest) {
    return "; integrity.json does not list every file, so files from another save could not be "
           "detected";
  }
  return "; there is no integrity.json, so files from another save could not be detected";
}

std::size_t warnings_for_strict(const VerifyReport& report) {
  return report.strict_warnings() +
         (report.health ? count_of(report.health->findings, Severity::kWarning) : 0);
}

ExitCode exit_code_of(const VerifyReport& report, bool strict) {
  switch (report.verdict()) {
    case VerifyVerdict::kDamaged:
      return ExitCode::kFail;
    case VerifyVerdict::kUnreadable:
    case VerifyVerdict::kNotSupported:
      return ExitCode::kUnusable;
    case VerifyVerdict::kEmpty:
      return ExitCode::kInconclusive;
    case VerifyVerdict::kWhole:
      break;
  }
  if (report.health && !report.health->healthy()) return ExitCode::kFail;
  if (report.health && report.health->numbers == 0) return ExitCode::kInconclusive;
  if (report.health && report.health->compared == 0) return ExitCode::kInconclusive;
  return strict && warnings_for_strict(report) != 0 ? ExitCode::kFail : ExitCode::kPass;
}

/// Describes what --health found.
std::string health_line(const HealthReport& health) {
  const auto errors = count_of(health.findings, Severity::kError);
  const auto warnings = count_of(health.findings, Severity::kWarning);
  const std::string buckets =
      health.buckets == 0 ? "" : ", " + counted(health.buckets, "buffer") + " not judged";
  if (errors == 0 && health.numbers == 0) return "not judged: there are no numbers" + buckets;
  return fmt::format("{}: {} in {} looked at{}{}, {}, {}", errors == 0 ? "healthy" : "not healthy",
                     counted(health.numbers, "number"), counted(health.tensors, "tensor"), buckets,
                     health.compared
                         ? fmt::format(", {} of them compared with the older checkpoint",
                                       with_commas(*health.compared))
                         : "",
                     counted(errors, "error"), counted(warnings, "warning"));
}

/// At most this many findings of one kind are printed; any further ones are only counted.
constexpr std::size_t kShownOfOneKind = 20;

std::string verdict_line(const VerifyReport& report) {
  const auto errors = counted(count_of(report.findings, Severity::kError), "error");
  const auto warnings = counted(count_of(report.findings, Severity::kWarning), "warning");
  const auto verdict = name_of(report.verdict());
  if (!report.location) return fmt::format("{}: can't be read, {}", verdict, errors);
  return fmt::format("{}: {}, {}, {}, {}, {}{}", verdict, counted(report.tensors, "tensor"),
                     counted(report.elements, "element"), counted(report.objects, "object"), errors,
                     warnings, reservation(report));
}

/// Returns the name of the directory that was looked at, in parentheses, if it is not the one that
/// was named: the tracker of a root chose it, or a crash left it.
std::string place_in(const std::string& named, const VerifyReport& report) {
  if (!report.location || report.location->path() == named) return "";
  const std::string& directory = report.location->directory;
  return " (" + printable(directory.substr(directory.rfind('/') + 1)) + ")";
}

class VerifyVerb final : public Verb {
 public:
  std::string_view name() const override { return "verify"; }
  std::string_view summary() const override { return "Check whether a checkpoint is whole"; }
  std::string_view examples() const override {
    return "  reprise verify runs/llm                  the checkpoint that the tracker names\n"
           "  reprise verify runs/llm/iter_*           several; the worst decides the exit code\n"
           "  reprise verify --all runs/llm            each checkpoint below a directory, one line "
           "each,\n"
           "                                           and from which of them a job would resume\n"
           "  reprise verify --no-payload ckpt         only names, sizes and coverage: fast\n"
           "  reprise verify --strict ckpt             warnings are errors\n"
           "  reprise verify mimo/iter_0000003         also says which module's metadata is "
           "missing\n"
           "  reprise verify --health ckpt             also NaN, infinite, uninitialized weights\n"
           "  reprise verify --health --limit abs=1e4 --limit zeros=0.9 ckpt\n"
           "  reprise verify --health --against runs/iter_0000100 runs/iter_0000200\n"
           "  reprise verify --health --against A --limit norm-growth=2 B\n"
           "  reprise verify --sealed ckpt             is every byte as 'reprise seal' found it?\n"
           "  reprise verify --json ckpt | jq '.checkpoints[].findings[].message'\n";
  }
  void declare(Options& options) override {
    options
        .positional(paths_, "CKPT",
                    "directory with .metadata, a root with a tracker, safetensors,\n"
                    "or a file of torch.save")
        .flag(all_, "--all", "CKPT is a directory: verify each checkpoint below it")
        .flag(skip_payload_, "--no-payload", "don't read payload files")
        .flag(strict_, "--strict", "warnings are errors (exit 1)")
        .flag(
            health_, "--health",
            "also look at the numbers: NaN or infinite ones are errors (exit 1); weights that are "
            "all the same or denormal are warnings")
        .texts(limits_, "--limit", "KIND=N",
               "with --health: the most that each tensor may have: nan=COUNT, inf=COUNT, "
               "zeros=SHARE, denormals=SHARE, abs=VALUE; more is an error. With --against also "
               "abs-growth=FACTOR and norm-growth=FACTOR")
        .text(
            against_, "--against", "OLDER",
            "with --health: compare with an older checkpoint of the same run: numbers that became "
            "NaN or infinite, and weights that became zero or of one value, are errors; weights "
            "that did not change are warnings")
        .flag(sealed_, "--sealed",
              "compare every byte with the seal that 'reprise seal' made there")
        .text(seal_, "--seal", "FILE", "compare every byte with this seal")
        .jobs(threads_)
        .flag(json_, "--json", "print one JSON document")
        .text(report_, "--report", "DIR",
              "write report.json (lane files), junit.xml, report.html and summary.md there")
        .flag(quiet_, "-q,--quiet", "don't print progress or notes");
  }

  ExitCode run(const Console& console) override {
    if (!limits_.empty() && !health_) throw Error(Code::kUsage, "--limit needs --health");
    if (health_ && skip_payload_) {
      throw Error(Code::kUsage, "--health reads the payload, which --no-payload leaves out");
    }
    if (!seal_.empty() && (paths_.size() != 1 || all_)) {
      throw Error(Code::kUsage, "--seal is of one checkpoint; --sealed takes that of each");
    }
    limits_of_health_ = parse_health_limits(limits_);
    if (!against_.empty() && !health_) throw Error(Code::kUsage, "--against needs --health");
    if (!against_.empty() && (paths_.size() != 1 || all_)) {
      throw Error(Code::kUsage, "--against is for one checkpoint");
    }
    const bool growth = limits_of_health_.absolute_growth || limits_of_health_.norm_growth;
    if (growth && against_.empty()) throw Error(Code::kUsage, "limits of growth need --against");
    ExitCode worst = ExitCode::kPass;
    PosixClock clock;
    const std::uint64_t start = clock.now_ns();
    std::vector<std::pair<std::string, VerifyReport>> examined;
    std::vector<std::pair<std::string, Error>> unread;
    std::vector<VerifiedRoot> roots;
    const auto verify_one = [&](const std::string& path) {
      try {
        examined.emplace_back(path, examine(path, console));
        const auto& report = examined.back().second;
        if (!json_) all_ ? print_line(path, report, console) : print(path, report, console);
        const ExitCode code = exit_code_of(report, strict_);
        worst = worse_of(worst, code);
        return code == ExitCode::kPass;
      } catch (const Error& error) {
        unread.emplace_back(path, error);
      } catch (const std::bad_alloc& caught) {
        unread.emplace_back(path, limit_from(caught, path));
      }
      console.err << "reprise verify: " << unread.back().second.what() << '\n';
      worst = ExitCode::kUnusable;
      return false;
    };
    for (const auto& path : paths_) {
      if (!all_) {
        verify_one(path);
        continue;
      }
      roots.push_back(verify_below(path, verify_one));
      worst = worse_of(worst, exit_code_beside(roots.back()));
      if (!json_) print_root(roots.back(), console);
    }
    if (json_) console.out << verify_json(examined, unread, roots);
    if (!report_.empty()) {
      std::vector<reports::ScenarioResult> results;
      for (const auto& [path, report] : examined) results.push_back(verify_result(path, report));
      write_files_report(std::move(results), static_cast<double>(clock.now_ns() - start) * 1e-9,
                         report_);
    }
    return worst;
  }

 private:
  /// Judges what is no checkpoint.
  static ExitCode exit_code_beside(const VerifiedRoot& root) {
    if (std::ranges::any_of(root.beside, &BesideCheckpoints::unread)) return ExitCode::kUnusable;
    if (std::ranges::any_of(root.resume, &VerifiedRoot::Resume::broken)) return ExitCode::kFail;
    return root.checkpoints == 0 ? ExitCode::kInconclusive : ExitCode::kPass;
  }

  /// Verifies each checkpoint below a directory. `verify_one` returns if one is good.
  template <class VerifyOne>
  static VerifiedRoot verify_below(const std::string& path, const VerifyOne& verify_one) {
    const StoredPath stored = stored_path(path);
    Store& store = *stored.store;
    const auto entry = store.stat(stored.path);
    if (!entry) throw Error(Code::kNotFound, "it does not exist", {.file = stored.display()});
    if (!entry->directory) {
      throw Error(Code::kUsage, "--all takes a directory", {.file = stored.display()});
    }
    CheckpointsBelow below = checkpoints_below(store, stored.path);
    std::map<std::string, bool> good;
    for (const std::string& checkpoint : below.checkpoints) {
      good[checkpoint] = verify_one(store.display(checkpoint));
    }
    VerifiedRoot root{.root = path,
                      .checkpoints = good.size(),
                      .good = 0,
                      .beside = std::move(below.beside),
                      .resume = resumes(store, stored.path, good)};
    for (const auto& [name, is_good] : good) root.good += is_good ? 1 : 0;
    for (BesideCheckpoints& beside : root.beside) beside.path = store.display(beside.path);
    return root;
  }

  /// Returns from what programs would resume that have checkpoints in `root` or below it.
  static std::vector<VerifiedRoot::Resume> resumes(Store& store, const std::string& root,
                                                   const std::map<std::string, bool>& good) {
    std::set<std::string> directories{root};
    for (const auto& [checkpoint, is_good] : good) {
      for (std::string up = checkpoint; up.size() > root.size();) {
        up = parent_path(up);
        directories.insert(up);
      }
    }
    std::vector<VerifiedRoot::Resume> found;
    for (const std::string& directory : directories) {
      if (good.contains(directory)) continue;
      for (const ResumePoint& point : resume_points(store, directory)) {
        const std::string path = point.name.empty() ? "" : join_path(directory, point.name);
        VerifiedRoot::Resume resume{
            point.program, path.empty() ? "" : store.display(path), point.why, {}, point.broken};
        for (const auto& [checkpoint, is_good] : good) {
          const bool within = checkpoint == path || checkpoint.starts_with(path + "/");
          if (!path.empty() && within) resume.good = resume.good.value_or(true) && is_good;
        }
        found.push_back(std::move(resume));
      }
    }
    return found;
  }

  /// Prints one line with the first error, or else the first warning.
  static void print_line(const std::string& path, const VerifyReport& report,
                         const Console& console) {
    std::string first;
    for (const Severity severity : {Severity::kError, Severity::kWarning}) {
      for (const Findings* findings :
           {&report.findings, report.health ? &report.health->findings : nullptr}) {
        if (findings == nullptr || !first.empty()) continue;
        const auto found = std::ranges::find(*findings, severity, &Finding::severity);
        if (found == findings->end()) continue;
        first = found->key.empty() ? found->message : found->key + ": " + found->message;
      }
    }
    console.out << printable(path) << ": " << verdict_line(report);
    if (report.health) console.out << "; " << health_line(*report.health);
    console.out << (first.empty() ? "" : "; " + printable(first)) << '\n';
  }

  static void print_root(const VerifiedRoot& root, const Console& console) {
    const std::string path = printable(root.root);
    console.out << fmt::format("{}: {} below it, {} good\n", path,
                               counted(root.checkpoints, "checkpoint"), with_commas(root.good));
    for (const VerifiedRoot::Resume& each : root.resume) {
      const std::string_view state = !each.good   ? ""
                                     : *each.good ? ", which is good"
                                                  : ", which is not good";
      console.out << fmt::format("{}: {} would resume from {}{}\n", path, each.program,
                                 each.path.empty() ? "nothing: " + printable(each.why)
                                 : each.broken     ? printable(each.path + " (" + each.why + ")")
                                                   : printable(each.path),
                                 state);
    }
    for (std::size_t i = 0; i < std::min(root.beside.size(), kShownOfOneKind); ++i) {
      console.out << fmt::format("{}: no checkpoint: {}: {}\n", path,
                                 printable(root.beside[i].path), root.beside[i].what);
    }
    if (root.beside.size() > kShownOfOneKind) {
      console.out << fmt::format("{}: no checkpoint: {} more; --json lists them\n", path,
                                 with_commas(root.beside.size() - kShownOfOneKind));
    }
  }

  VerifyReport examine(const std::string& path, const Console& console) const {
    const StoredPath stored = stored_path(path);
    PosixClock clock;
    ProgressLine progress(console, clock, "verify",
                          quiet_ || json_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes,
                          ProgressUnit::kBytes);
    HostDevice device("host", 0);
    ThreadTasks tasks(threads_);
    const HealthRequest health{limits_of_health_, device};
    VerifyReport report = verify(*stored.store, stored.path,
                                 skip_payload_ ? PayloadCheck::kSkip : PayloadCheck::kRead,
                                 {tasks, progress}, health_ ? &health : nullptr);
    const SurveyPorts ports{device, tasks, progress};
    if (sealed_ || !seal_.empty()) compare_with_seal(*stored.store, ports, report);
    if (!against_.empty() && report.health) compare_with_older(stored, ports, *report.health);
    return report;
  }

  void compare_with_older(const StoredPath& stored, const SurveyPorts& ports,
                          HealthReport& health) const {
    try {
      Checkpoint checkpoint = Checkpoint::open_any(*stored.store, stored.path);
      compare_with_older(checkpoint, ports, health);
    } catch (const Error& error) {  // the verdict on the checkpoint itself stands
      health.compared = 0;
      Finding finding = finding_from(error, Severity::kWarning);
      finding.message = "not compared with the older checkpoint: " + finding.message;
      health.findings.push_back(std::move(finding));
    }
  }

  void compare_with_older(Checkpoint& checkpoint, const SurveyPorts& ports,
                          HealthReport& health) const {
    const StoredPath older_path = stored_path(against_);
    Checkpoint older = Checkpoint::open_any(*older_path.store, older_path.path);
    older.require_sound();
    HealthAgainst against =
        health_against(checkpoint, health.stats, older, ports, limits_of_health_);
    for (Finding& finding : against.findings) health.findings.push_back(std::move(finding));
    if (against.others != 0) {
      health.findings.push_back({Severity::kNote, Code::kNotStored,
                                 counted(against.others, "tensor") + " of it " +
                                     (against.others == 1 ? "is" : "are") +
                                     " not in the older checkpoint with that type and shape"});
    }
    health.compared = against.compared;
  }

  /// Adds what differs from the seal. A seal that is missing or can't be read is an error.
  void compare_with_seal(Store& store, const SurveyPorts& ports, VerifyReport& report) const {
    if (!report.location) return;
    const std::string& directory = report.location->directory;
    const StoredPath own = seal_.empty() ? StoredPath{} : stored_path(seal_);
    Store& of_seal = seal_.empty() ? store : *own.store;
    const std::string path =
        seal_.empty() ? join_path(directory, std::string(kSealFile)) : own.path;
    const ErrorPlace place{.file = of_seal.display(path)};
    if (!of_seal.stat(path)) {
      throw Error(Code::kNotFound, "there is no seal: 'reprise seal' makes one", place);
    }
    const Seal seal = read_seal(read_all(of_seal, path, kSealBytesMax), place);
    for (Finding& finding : reprise::compare_with_seal(store, directory, seal, ports)) {
      report.findings.push_back(std::move(finding));
    }
    report.sealed = true;
  }

  void print(const std::string& given, const VerifyReport& report, const Console& console) const {
    const std::string path = printable(given);
    std::map<std::pair<Severity, Code>, std::size_t> of_kind;
    Findings all = report.findings;
    if (report.health) {
      all.insert(all.end(), report.health->findings.begin(), report.health->findings.end());
    }
    for (const Finding& finding : all) {
      if (quiet_ && finding.severity == Severity::kNote) continue;
      if (of_kind[{finding.severity, finding.code}]++ >= kShownOfOneKind) continue;
      console.out << path << ": " << finding << '\n';
    }
    for (const auto& [kind, count] : of_kind) {
      if (count <= kShownOfOneKind) continue;
      console.out << fmt::format("{}: {} {}: and {} more; --json lists them\n", path,
                                 name_of(kind.first), name_of(kind.second),
                                 with_commas(count - kShownOfOneKind));
    }
    console.out << path << place_in(stored_path(given).path, report) << ": " << verdict_line(report)
                << '\n';
    if (report.health) console.out << path << ": " << health_line(*report.health) << '\n';
    if (strict_ && report.verdict() == VerifyVerdict::kWhole && warnings_for_strict(report) != 0) {
      console.out << fmt::format("{}: refused by --strict: {}\n", path,
                                 counted(warnings_for_strict(report), "warning"));
    }
  }

  std::vector<std::string> paths_;
  std::string report_;
  std::vector<std::string> limits_;
  HealthLimits limits_of_health_;
  std::string seal_;
  std::string against_;
  int threads_ = 1;
  bool sealed_ = false;
  bool all_ = false;
  bool health_ = false;
  bool skip_payload_ = false;
  bool strict_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_verify() { return std::make_unique<VerifyVerb>(); }

}  // namespace reprise::cli
