#include <fmt/format.h>

#include "cli/arguments/part_of_work.hpp"
#include "cli/interrupts.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/verb.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "driver/exhaust/exhaust.hpp"
#include "driver/runs/run.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class ExhaustVerb final : public Verb {
 public:
  std::string_view name() const override { return "exhaust"; }
  std::string_view summary() const override {
    return "Save under every small layout, load under every other, compare every element";
  }
  std::string_view examples() const override {
    return "  reprise exhaust --jobs 2                     all pairs of layouts of 1 to 8 ranks\n"
           "  reprise exhaust --max-world 4                a quick look: layouts of 1 to 4 ranks\n"
           "  reprise exhaust --hsdp --jobs 2              also dp split into replicate x shard\n"
           "  reprise exhaust --shard 2/4 --report out     the second of four machines\n"
           "  reprise exhaust --max-world 4 --mutant replica-zero-axis/tp    must turn red\n";
  }
  void declare(Options& options) override {
    options
        .number(world_max_, "--max-world,--world", 1,
                "largest number of ranks in a layout; default: 8")
        .text(sharding_, "--sharding", "NAME",
              "sharding of the optimizer's state in checkpoints; default: fully_reshardable")
        .flag(hsdp_, "--hsdp", "also split dp in every way into replicate x shard")
        .text(part_, "--shard,--part", "I/N",
              "run only shard I of N, for several machines; 'reprise merge' joins their reports")
        .text(mutant_, "--mutant", "NAME", "switch on a historical defect")
        .number(jobs_, "--jobs", 1, "number of threads")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there; if there already is "
              "a report, add the pairs to it")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    driver::ExhaustRequest request = request_of_arguments();
    const Interrupts interrupts;
    reports::Report report;
    if (!report_.empty()) {
      driver::require_writable(report_);
      report = driver::report_to_add_to(report_, reports::ReportLane::kSim);
    }
    request.interrupted = Interrupts::came;
    const auto result = run_all(request, console);
    print(request, result, console);
    if (!report_.empty() && !result.interrupted) write(request, result, report_, report);
    return exit_code(driver::verdict_of(result));
  }

 private:
  driver::ExhaustRequest request_of_arguments() const {
    const PartOfWork part = part_of_work(part_);
    if (!mutant_.empty()) sim::mutant_named(mutant_);  // rejects an unknown name at once
    if (!mutant_.empty() && !report_.empty()) {
      throw Error(Code::kUsage,
                  "a run with a mutant proves nothing about this program: leave out --report");
    }
    if (world_max_ > kWorldMax) {
      throw Error(Code::kUsage, "--max-world is " + std::to_string(world_max_) +
                                    "; the number of pairs grows fast, and the maximum is " +
                                    std::to_string(kWorldMax));
    }
    return {.world_max = static_cast<std::int32_t>(world_max_),
            .cuts = hsdp_ ? driver::DpCuts::kCopiesAndShards : driver::DpCuts::kShards,
            .subject = {.sharding = sim::sharding_named(sharding_)},
            .mutant = mutant_,
            .part = part.number,
            .parts = part.of,
            .jobs = static_cast<std::size_t>(jobs_)};
  }

  driver::ExhaustResult run_all(driver::ExhaustRequest& request, const Console& console) const {
    PosixClock clock;
    ProgressLine line(console, clock, "exhaust",
                      quiet_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
    request.progress = [&line](const std::string& what, std::uint64_t done, std::uint64_t total) {
      line.advance(what, done, total);
    };
    return driver::exhaust(request);
  }

  void print(const driver::ExhaustRequest& request, const driver::ExhaustResult& result,
             const Console& console) const {
    auto& out = console.out;
    out << fmt::format(
        "model {}, {}: {} tensors, {} or more objects; {} layouts of 1 to {} ranks{}\n",
        request.subject.model, name_of(request.subject.sharding), result.tensors,
        result.objects_least, with_commas(result.layouts), request.world_max,
        hsdp_ ? ", dp split into replicate x shard" : "");
    out << fmt::format("saved {} in {:.1f} s\n", human_bytes(result.saved_bytes),
                       result.save_seconds);
    for (const auto& failure : result.failures) {
      out << fmt::format("{}: {}: {}\n", failure.pair, failure.code, failure.what);
    }
    if (result.wrong > result.failures.size()) {
      out << fmt::format("... and {} more\n", with_commas(result.wrong - result.failures.size()));
    }
    if (result.interrupted) {
      out << "interrupted: the other pairs were not run\n" << left_as_it_was(report_);
    }
    if (result.unasked)
      out << "the mutant's code was never called, so this shows nothing about it\n";
    for (const auto& [code, pairs] : result.refused) {
      out << fmt::format("{} pairs correctly refused with {}\n", with_commas(pairs), code);
    }
    out << fmt::format(
        "{}{}: {} of {} pairs, {} of them refused; {} elements and {} objects compared, {} objects "
        "of other layouts left behind; {:.1f} s\n",
        request.parts > 1 ? fmt::format("part {} of {}: ", request.part, request.parts) : "",
        reports::name_of(driver::verdict_of(result)), with_commas(result.passed()),
        with_commas(result.planned), with_commas(result.refusals()), with_commas(result.elements),
        with_commas(result.objects), with_commas(result.left), result.seconds);
  }

  static void write(const driver::ExhaustRequest& request, const driver::ExhaustResult& result,
                    const std::string& directory, reports::Report& report) {
    put_work(report.exhaustive, driver::reported(request, result));
    report.verdict = overall(report);
    driver::write_report(report, directory);
  }

  static ExitCode exit_code(reports::Verdict verdict) {
    if (verdict == reports::Verdict::kPass) return ExitCode::kPass;
    return verdict == reports::Verdict::kFail ? ExitCode::kFail : ExitCode::kInconclusive;
  }

  static constexpr std::int64_t kWorldMax = 64;

  std::int64_t world_max_ = 8;
  std::string sharding_ = "fully_reshardable";
  std::string part_;
  std::string mutant_;
  std::string report_;
  std::int64_t jobs_ = 1;
  bool hsdp_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_exhaust() { return std::make_unique<ExhaustVerb>(); }

}  // namespace reprise::cli
