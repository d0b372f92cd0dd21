#include "reports/report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace reprise::reports {
namespace {

using Json = nlohmann::json;  // objects keep their keys sorted

Json delta(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  return value;
}

Json to_json_value(const RankResult& rank) {
  return {{"rank", rank.rank},
          {"loaded_step", rank.loaded_step},
          {"owns", rank.owns},
          {"compared", rank.compared},
          {"elements", rank.elements},
          {"max_delta", delta(rank.max_delta)},
          {"bit_mismatches", rank.bit_mismatches},
          {"metrics_finite", rank.metrics_finite},
          {"missing", rank.missing},
          {"unexpected", rank.unexpected},
          {"excused", rank.excused},
          {"shape_mismatches", rank.shape_mismatches},
          {"dtype_mismatches", rank.dtype_mismatches}};
}

Json to_json_value(const Incarnation& life) {
  return {{"layout", life.layout},
          {"exit_code", life.exit_code},
          {"first_step", life.first_step},
          {"last_step", life.last_step}};
}

Json to_json_value(const TrainingPoint& point) {
  Json uninterrupted = nullptr;
  if (point.uninterrupted_loss) {
    uninterrupted = {{"loss", *point.uninterrupted_loss},
                     {"lr", point.uninterrupted_lr.value_or(0)}};
  }
  return {{"step", point.step},
          {"loss", point.loss},
          {"lr", point.lr},
          {"loss_scale", point.loss_scale},
          {"uninterrupted", uninterrupted}};
}

Json to_json_value(const FirstDifference& first) {
  return {{"rank", first.rank},   {"key", first.key},       {"index", first.index},
          {"saved", first.saved}, {"loaded", first.loaded}, {"comes_from", first.comes_from}};
}

Json to_json_value(const FaultResult& fault) {
  return {{"kind", fault.kind},
          {"rank", fault.rank},
          {"armed", fault.armed},
          {"reached", fault.reached},
          {"fired", fault.fired}};
}

template <class Item>
Json array_of(const std::vector<Item>& items, Json (*one)(const Item&)) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(one(item));
  return array;
}

Json to_json_value(const ScenarioResult& result) {
  return {{"name", result.name},
          {"file", result.file},
          {"proves", result.proves},
          {"verdict", name_of(result.verdict)},
          {"code", result.code},
          {"reason", result.reason},
          {"seconds", result.seconds},
          {"event_hash", result.event_hash},
          {"world", result.world},
          {"layouts", result.layouts},
          {"peak_bytes",
           {{"snapshot", result.peak_bytes.snapshot},
            {"stage", result.peak_bytes.stage},
            {"load", result.peak_bytes.load}}},
          {"ranks", array_of(result.ranks, to_json_value)},
          {"incarnations", array_of(result.incarnations, to_json_value)},
          {"replans", result.replans},
          {"diagnosis", result.diagnosis},
          {"content_digest", result.content_digest},
          {"trajectory", array_of(result.trajectory, to_json_value)},
          {"first_difference",
           result.first_difference ? to_json_value(*result.first_difference) : Json(nullptr)},
          {"faults", array_of(result.faults, to_json_value)},
          {"replay", result.replay}};
}

Json to_json_value(const MutantResult& mutant) {
  Json by = Json::array();
  for (const auto& one : mutant.caught_by) {
    by.push_back({{"scenario", one.scenario}, {"verdict", one.verdict}, {"reason", one.reason}});
  }
  return {{"name", mutant.name},
          {"defect", mutant.defect},
          {"caught", mutant.caught},
          {"caught_by", by}};
}

Json to_json_value(const Skipped& skipped) {
  return {{"scenario", skipped.scenario}, {"reason", skipped.reason}};
}

constexpr int kSchemaVersion = 1;

}  // namespace

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kNotRun:
      return "not_run";
  }
  return "not_run";
}

Verdict overall(const std::vector<ScenarioResult>& scenarios) {
  const auto any = [&scenarios](Verdict verdict) {
    return std::any_of(scenarios.begin(), scenarios.end(),
                       [verdict](const auto& result) { return result.verdict == verdict; });
  };
  if (any(Verdict::kFail)) return Verdict::kFail;
  if (any(Verdict::kInconclusive)) return Verdict::kInconclusive;
  return any(Verdict::kPass) ? Verdict::kPass : Verdict::kNotRun;
}

std::string to_json(const Report& report) {
  const auto run =
      std::count_if(report.scenarios.begin(), report.scenarios.end(),
                    [](const auto& result) { return result.verdict != Verdict::kNotRun; });
  const Json document = {
      {"schema_version", kSchemaVersion},
      {"policy", nullptr},
      {"project",
       {{"commit", report.project.commit},
        {"dirty", report.project.dirty},
        {"build", report.project.build}}},
      {"lane", report.lane},
      {"machine",
       {{"cpu", report.machine.cpu},
        {"memory", report.machine.memory},
        {"gpus", report.machine.gpus},
        {"mpi", report.machine.mpi},
        {"nccl", report.machine.nccl},
        {"cuda", report.machine.cuda}}},
      {"started", report.started},
      {"seconds", report.seconds},
      {"verdict", name_of(report.verdict)},
      {"scenarios", array_of(report.scenarios, to_json_value)},
      {"lanes",
       {{"planned", report.planned},
        {"run", run},
        {"skipped", array_of(report.skipped, to_json_value)}}},
      {"properties", Json::array()},
      {"mutants", array_of(report.mutants, to_json_value)},
      {"exhaustive", nullptr},
      {"coverage", nullptr},
      {"determinism",
       {{"runs_doubled", report.runs_doubled}, {"mismatches", report.determinism_mismatches}}},
      {"not_claimed", report.not_claimed}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::reports
