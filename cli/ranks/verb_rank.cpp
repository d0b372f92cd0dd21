#include "cli/ranks/rank_verbs.hpp"
#include "driver/ranks/rank_process_main.hpp"

namespace reprise::cli {
namespace {

/// Runs one rank of a job in the lane mpi or gpu. The launcher of these lanes starts this verb;
/// users do not.
class RankVerb final : public Verb {
 public:
  std::string_view name() const override { return "rank"; }
  std::string_view summary() const override { return "Run one rank; reprise starts it"; }
  std::string_view examples() const override { return ""; }
  void declare(Options& options) override {
    options.text(lane_, "--lane", "mpi|gpu", "lane of the rank")
        .number(ranks_, "--ranks", 1, "number of ranks")
        .text(task_.scenario, "--scenario", "FILE", "the scenario")
        .number(life_, "--life", 0, "number of the life")
        .text(task_.store, "--store", "DIR", "directory of the checkpoints")
        .text(task_.records, "--records", "DIR", "directory of the record")
        .text(task_.mutant, "--mutant", "NAME", "a historical defect")
        .text(task_.log.level, "--log", "LEVEL", "off, info, debug")
        .text(task_.log.directory, "--logs", "DIR", "directory of the rank's log")
        .flag(task_.trace, "--trace", "leave beside the record what the rank did");
  }
  ExitCode run(const Console& console) override {
    task_.lane = driver::lane_named(lane_);
    task_.world = static_cast<std::int32_t>(ranks_);
    task_.life = static_cast<std::uint64_t>(life_);
    return driver::rank_process_main(task_, console.launched_as) == 0 ? ExitCode::kPass
                                                                      : ExitCode::kFail;
  }

 private:
  driver::RankArguments task_;
  std::string lane_ = "mpi";
  std::int64_t ranks_ = 1;
  std::int64_t life_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_rank() { return std::make_unique<RankVerb>(); }

}  // namespace reprise::cli
