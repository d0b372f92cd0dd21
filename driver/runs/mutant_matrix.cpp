#include "driver/runs/mutant_matrix.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "driver/runs/run_jobs.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {
namespace {

using reports::Cell;
using reports::Matrix;
using reports::Verdict;

/// One field of the matrix.
struct Field {
  std::size_t scenario = 0;
  std::size_t row = 0;
  bool tried = false;  ///< false if an interruption came first
  Cell cell = Cell::kNotAsked;
  std::set<std::string> codes = {};
};

/// Returns the names of all codes that only judges use.
std::vector<std::string> codes_of_judges() {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < judged::kCount; ++i) {
    names.emplace_back(name_of(FindingCode(judged::kFirst + i)));
  }
  return names;
}

/// Runs the scenarios without a mutant, and drops those that can't judge one or were not run.
std::vector<RightRun> right_runs(std::vector<Scenario>& scenarios, const MutantRequest& request,
                                 const Started& started, MatrixRun& made) {
  std::vector<std::optional<RightRun>> runs(scenarios.size());
  run_jobs(scenarios.size(), request.jobs, [&](std::size_t i) {
    if (request.interrupted()) return;
    started(i, scenarios.size(), scenarios[i].name);
    runs[i] = run_right(scenarios[i], request.options);
  });
  std::vector<Scenario> kept;
  std::vector<RightRun> kept_runs;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!runs[i]) {
      ++made.untried;
      continue;
    }
    const auto& result = runs[i]->run.result;
    if (result.verdict == Verdict::kPass) {
      kept.push_back(std::move(scenarios[i]));
      kept_runs.push_back(std::move(*runs[i]));
    } else {
      made.matrix.left_out[result.name] =
          reports::name_of(result.verdict) + " without a mutant: " + result.reason;
    }
  }
  scenarios = std::move(kept);
  return kept_runs;
}

constexpr std::size_t kNoColumn = SIZE_MAX;

/// Returns the column of each scenario in the matrix; kNoColumn if a field of it was not tried.
std::vector<std::size_t> columns_of(std::size_t scenarios, const std::vector<Field>& fields) {
  std::vector<std::size_t> columns(scenarios, 0);
  for (const auto& field : fields) {
    if (!field.tried) columns[field.scenario] = kNoColumn;
  }
  std::size_t next = 0;
  for (auto& column : columns) {
    if (column != kNoColumn) column = next++;
  }
  return columns;
}

}  // namespace

Cell cell_of(const ScenarioRun& with) {
  if (with.broke_down) return Cell::kBrokeDown;
  if (with.unasked) return Cell::kNotCalled;
  if (with.result.verdict == Verdict::kFail) return Cell::kCaught;
  return with.result.verdict == Verdict::kPass ? Cell::kPassed : Cell::kUndecided;
}

std::set<std::string> new_codes(const ScenarioRun& without, const ScenarioRun& with) {
  std::set<std::string> codes = with.codes;
  for (const auto& code : without.codes) codes.erase(code);
  codes.insert(with.result.code);
  if (codes.size() > 1) codes.erase(std::string(name_of(FindingCode(Code::kPeerFailed))));
  return codes;
}

RightRun run_right(const Scenario& scenario, const LaneOptions& options) {
  RightRun right{.run = run_watched(scenario, LaneKind::kSim, options), .asked = {}};
  LaneOptions watching = options;
  watching.asked_seams = std::make_shared<sim::SeamSet>();
  const ScenarioRun watched = run_watched(scenario, LaneKind::kSim, watching);
  right.run.codes = watched.codes;
  right.asked = *watching.asked_seams;
  const bool same = watched.result.event_hash == right.run.result.event_hash &&
                    watched.result.verdict == right.run.result.verdict &&
                    watched.result.content_digest == right.run.result.content_digest;
  if (!same) right.asked.set();
  return right;
}

bool may_change(const sim::Mutant& mutant, const RightRun& right) {
  return (sim::seams_replaced_by(mutant) & right.asked).any();
}

MatrixRun run_matrix(const MutantRequest& request, const Started& started) {
  const auto mutants = wanted_mutants(request);
  Selection selection = request.selection;
  if (!request.whole) selection.rows_max = 1;
  auto scenarios = read_catalogue(selection);
  require_known_mutants(scenarios);

  MatrixRun made{.matrix = {.whole = request.whole,
                            .mutants = sim::mutants().size(),
                            .codes = codes_of_judges()}};
  Matrix& matrix = made.matrix;
  const auto right = right_runs(scenarios, request, started, made);

  std::vector<Field> fields;
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    for (std::size_t m = 0; m < mutants.size(); ++m) {
      if (may_change(*mutants[m], right[s])) fields.push_back({.scenario = s, .row = m});
    }
  }
  run_jobs(fields.size(), request.jobs, [&](std::size_t i) {
    if (request.interrupted()) return;
    Field& field = fields[i];
    field.tried = true;
    const std::string mutant(mutants[field.row]->name);
    started(i, fields.size(), scenarios[field.scenario].name + " with " + mutant);
    LaneOptions options = request.options;
    options.mutant = mutant;
    const auto with = run_watched(scenarios[field.scenario], LaneKind::kSim, options);
    field.cell = cell_of(with);
    if (field.cell == Cell::kCaught) field.codes = new_codes(right[field.scenario].run, with);
  });

  const auto columns = columns_of(scenarios.size(), fields);
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    if (columns[s] != kNoColumn) matrix.scenarios.push_back(scenarios[s].name);
  }
  made.untried += scenarios.size() - matrix.scenarios.size();
  for (const auto* mutant : mutants) {
    matrix.rows.push_back(
        {.mutant = std::string(mutant->name),
         .cells = std::string(matrix.scenarios.size(), static_cast<char>(Cell::kNotAsked))});
  }
  for (auto& field : fields) {
    if (columns[field.scenario] == kNoColumn) continue;
    auto& row = matrix.rows[field.row];
    row.cells[columns[field.scenario]] = static_cast<char>(field.cell);
    if (field.cell == Cell::kCaught) {
      row.caught[scenarios[field.scenario].name] = std::move(field.codes);
    }
  }
  return made;
}

}  // namespace reprise::driver
