#include <fmt/format.h>

#include <filesystem>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/shrink_file.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class ShrinkVerb final : public Verb {
 public:
  std::string_view name() const override { return "shrink"; }
  std::string_view summary() const override {
    return "Make a failing scenario smaller while it still fails in the same way";
  }
  std::string_view examples() const override {
    return "  reprise shrink mine.yaml                       writes mine.small.yaml\n"
           "  reprise shrink mine.yaml --out small.yaml\n"
           "  reprise shrink 'table.yaml[k=1,save=tp2-dp2]'  one row of a table\n"
           "  reprise shrink mine.yaml --mutant floor-vs-ceil-chunk\n";
  }
  void declare(Options& options) override {
    options.positional(file_, "FILE", "a scenario file, or one row of it: FILE[ROW]")
        .text(out_, "--out", "FILE", "the file to write; default: FILE with '.small' in its name")
        .text(mutant_, "--mutant", "NAME",
              "a historical defect to switch on; default: that of the file's record")
        .number(seed_, "--seed", 0,
                "seed of the simulated scheduler; default: that of the file's record, or 1")
        .number(tries_, "--tries", 0, "largest number of variants to run; default: 1000");
  }

  ExitCode run(const Console& console) override {
    const driver::Scenario scenario = scenario_of_argument();
    const std::string target = target_of(scenario);
    if (std::filesystem::exists(target)) {
      throw Error(Code::kUsage, "already exists; remove it or name another --out",
                  {.file = target});
    }
    const auto shrunk =
        driver::shrink_file(scenario, options_for(scenario), static_cast<std::size_t>(tries_));
    const auto& first = shrunk.first;
    console.out << fmt::format("{}: {}{}{}\n", file_, reports::name_of(first.verdict),
                               said(first.code), said(first.reason));
    if (first.verdict == reports::Verdict::kPass) {
      console.out << "it does not fail, so there is nothing to shrink\n";
      return ExitCode::kPass;
    }
    if (!shrunk.small) return ExitCode::kInconclusive;
    write(*shrunk.small, target);
    console.out << fmt::format(
                       "{} after {} runs of simpler variants; written to {}\n",
                       shrunk.simpler ? "made small" : "no simpler scenario fails in the same way",
                       shrunk.tries, target)
                << to_yaml(*shrunk.small);
    return ExitCode::kFail;
  }

 private:
  static std::string said(const std::string& text) { return text.empty() ? "" : ": " + text; }

  driver::Scenario scenario_of_argument() const {
    auto scenarios = driver::read_catalogue({.paths = {file_}});
    if (scenarios.size() == 1) return std::move(scenarios.front());
    throw Error(Code::kUsage,
                "holds " + std::to_string(scenarios.size()) + " scenarios; name one row, such as " +
                    scenarios.front().row,
                {.file = file_});
  }

  driver::LaneOptions options_for(const driver::Scenario& scenario) const {
    driver::LaneOptions options;
    if (scenario.recorded) {
      options.seed = scenario.recorded->seed;
      options.mutant = scenario.recorded->mutant;
    }
    if (seed_ >= 0) options.seed = static_cast<std::uint64_t>(seed_);
    if (!mutant_.empty()) options.mutant = mutant_;
    return options;
  }

  std::string target_of(const driver::Scenario& scenario) const {
    if (!out_.empty()) return out_;
    return std::filesystem::path(scenario.file).replace_extension(".small.yaml").string();
  }

  /// Writes the scenario, reads it again and compares, so that the file shows what was run.
  static void write(const driver::Scenario& small, const std::string& file) {
    const std::string text = to_yaml(small);
    const StoredPath target = stored_path(file);
    write_atomically(*target.store, target.path, as_bytes(text));
    if (to_yaml(driver::read_scenario(file)) == text) return;
    throw Error(Code::kInternal, "does not read back as it was written", {.file = file});
  }

  std::string file_;
  std::string out_;
  std::string mutant_;
  std::int64_t seed_ = -1;  ///< -1 if not given
  std::int64_t tries_ = 1000;
};

}  // namespace

std::unique_ptr<Verb> make_shrink() { return std::make_unique<ShrinkVerb>(); }

}  // namespace reprise::cli
