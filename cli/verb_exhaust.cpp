#include <fmt/format.h>

#include "cli/evidence_verb.hpp"
#include "cli/frame/interrupts.hpp"
#include "core/base/print.hpp"
#include "driver/exhaust/exhaust.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class ExhaustVerb final : public EvidenceVerb {
 public:
  std::string_view name() const override { return "exhaust"; }
  bool is_subject() const override { return true; }
  std::string_view summary() const override {
    return "Save under every small layout, load under every other, compare every element";
  }
  std::string_view examples() const override {
    return "  reprise search exhaust --jobs 2              all pairs of layouts of 1 to 8 ranks\n"
           "  reprise search exhaust --max-world 4         a quick look: layouts of 1 to 4 ranks\n"
           "  reprise search exhaust --hsdp --jobs 2       also dp split into replicate x shard\n"
           "  reprise search exhaust --shard 2/4 --report out  the second of four machines\n"
           "  reprise search exhaust --max-world 4 --mutant replica-zero-axis/tp  must turn red\n";
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
        .text(mutant_, "--mutant", "NAME", "switch on a historical defect");
    declare_evidence(options);
  }

  ExitCode run(const Console& console) override {
    driver::ExhaustRequest request = request_of_arguments();
    const Interrupts interrupts;
    require_report(mutant_);
    request.interrupted = Interrupts::came;
    const auto result = run_all(request, console);
    print(request, result, console);
    if (!result.interrupted) {
      add_to_report([&](reports::Report& report) {
        put_work(report.exhaustive, driver::reported(request, result));
      });
    }
    return exit_code_for(driver::verdict_of(result));
  }

 private:
  driver::ExhaustRequest request_of_arguments() const {
    const PartOfWork part = part_of_work(part_);
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
            .jobs = jobs()};
  }

  driver::ExhaustResult run_all(driver::ExhaustRequest& request, const Console& console) {
    ProgressLine line = progress_line(console);
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

  static constexpr std::int64_t kWorldMax = 64;

  std::int64_t world_max_ = 8;
  std::string sharding_ = "fully_reshardable";
  std::string part_;
  std::string mutant_;
  bool hsdp_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_exhaust() { return std::make_unique<ExhaustVerb>(); }

}  // namespace reprise::cli
