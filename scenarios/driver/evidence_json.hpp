#pragma once
// Writes the evidence that is judged across ranks as JSON, and reads it. The form is short because
// every box of every save has a line of it.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "properties/ruling_code.hpp"
#include "scenarios/driver/record.hpp"

namespace reprise::driver {

/// Writes a code by its name, and no code as the empty text.
nlohmann::json put_code(std::optional<RulingCode> code);
nlohmann::json put_all(const std::vector<AuditPage>& pages);
nlohmann::json put_all(const std::vector<LoadEvidence>& loads);
nlohmann::json put_all(const std::vector<SavePoint>& points);  ///< without their layouts
nlohmann::json put_all(const std::vector<SaveEvidence>& saves);
nlohmann::json put_all(const std::vector<sim::FaultState>& faults);
/// The take functions throw the exceptions of nlohmann's reader, and std::invalid_argument for a
/// malformed number or an unknown code.
std::optional<RulingCode> take_code(const nlohmann::json& json);
std::vector<AuditPage> take_audits(const nlohmann::json& json);
std::vector<LoadEvidence> take_loads(const nlohmann::json& json);
std::vector<SavePoint> take_points(const nlohmann::json& json);
std::vector<SaveEvidence> take_saves(const nlohmann::json& json);
std::vector<sim::FaultState> take_faults(const nlohmann::json& json);
Outcome take_outcome(const nlohmann::json& json);

}  // namespace reprise::driver
