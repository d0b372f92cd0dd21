#pragma once
// Chooses what is drawn of a report. Each function returns figures as HTML, or an empty text if
// there is nothing to show.

#include <string>

#include "reports/report.hpp"

namespace reprise::reports {

/// The lives of a scenario over the steps that they trained, and its planned faults.
std::string lives_figure(const ScenarioResult& result);

/// Draws how the wrong tensor was cut when it was saved, and how it is cut when it is loaded.
std::string placement_figures(const Failure& failure);

/// The checkpoints that the lives saved, and what became of each.
std::string generations_figure(const ScenarioResult& result);
/// Returns text such as "2 kept, 4 pruned, 1 damaged, 1 fallen back from".
std::string generations_text(const ScenarioResult& result);

/// Draws what the ranks did at the end of the life that failed, if the report has it: ranks as
/// columns, virtual time downwards.
std::string spacetime_figure(const ScenarioResult& result);

/// Draws what is wrong on each rank, by kind. Ranks with equal counts share a row.
std::string ranks_figure(const ScenarioResult& result);

/// Draws which keys are wrong on which ranks in the life that failed.
std::string wrong_keys_figure(const ScenarioResult& result);

/// The loss beside that of the uninterrupted run, if they differ at some step.
std::string loss_figure(const ScenarioResult& result);
/// Returns a sentence that compares the trajectory with the uninterrupted run's.
std::string loss_sentence(const ScenarioResult& result);

/// Draws how much new behaviour a search saw.
std::string search_figures(const Coverage& coverage);

/// Each mutant in each family of scenarios, and each mutant with each code that found it.
std::string matrix_figures(const Matrix& matrix);

}  // namespace reprise::reports
