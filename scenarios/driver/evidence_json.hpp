#pragma once
// The evidence of a record that is judged beside that of the other ranks, as JSON: short, since
// there is a line of it for every box of every save.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scenarios/driver/record.hpp"

namespace reprise::driver {

/// A code by its name; the empty text is none.
nlohmann::json put_code(std::optional<Code> code);
nlohmann::json put_all(const std::vector<AuditPage>& pages);
nlohmann::json put_all(const std::vector<LoadEvidence>& loads);
nlohmann::json put_all(const std::vector<SavePoint>& points);  ///< without their layouts
nlohmann::json put_all(const std::vector<SaveEvidence>& saves);
nlohmann::json put_all(const std::vector<sim::FaultState>& faults);
/// They throw what nlohmann's reader throws, and std::invalid_argument for a number that is none or
/// a code that nobody knows.
std::optional<Code> take_code(const nlohmann::json& json);
std::vector<AuditPage> take_audits(const nlohmann::json& json);
std::vector<LoadEvidence> take_loads(const nlohmann::json& json);
std::vector<SavePoint> take_points(const nlohmann::json& json);
std::vector<SaveEvidence> take_saves(const nlohmann::json& json);
std::vector<sim::FaultState> take_faults(const nlohmann::json& json);
Outcome take_outcome(const nlohmann::json& json);

}  // namespace reprise::driver
