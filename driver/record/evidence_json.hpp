#pragma once
// Converts the evidence that judges compare between ranks to JSON and back. The encoding is
// compact, because there is an entry for every box of every save.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "driver/record/record.hpp"
#include "properties/ruling_code.hpp"

namespace reprise::driver {

/// Writes the name of the code; an empty string if there is no code.
nlohmann::json put_code(std::optional<RulingCode> code);
/// Writes the name of the diagnosis; an empty string if there is no diagnosis.
nlohmann::json put_diagnosis(sim::RerunDiagnosis diagnosis);
nlohmann::json put_all(const std::vector<AuditPage>& pages);
nlohmann::json put_all(const std::vector<LoadEvidence>& loads);
nlohmann::json put_all(const std::vector<SavePoint>& points);  ///< leaves out the layouts
nlohmann::json put_all(const std::vector<SaveEvidence>& saves);
nlohmann::json put_all(const std::vector<sim::FaultState>& faults);
/// The take...() functions throw the exceptions of nlohmann's JSON reader, and
/// std::invalid_argument for a malformed number or an unknown code.
std::optional<RulingCode> take_code(const nlohmann::json& json);
sim::RerunDiagnosis take_diagnosis(const nlohmann::json& json);
std::vector<AuditPage> take_audits(const nlohmann::json& json);
std::vector<LoadEvidence> take_loads(const nlohmann::json& json);
std::vector<SavePoint> take_points(const nlohmann::json& json);
std::vector<SaveEvidence> take_saves(const nlohmann::json& json);
std::vector<sim::FaultState> take_faults(const nlohmann::json& json);
Outcome take_outcome(const nlohmann::json& json);

}  // namespace reprise::driver
