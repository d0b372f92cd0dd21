#include "driver/record/record.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "driver/record/evidence_json.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using Json = nlohmann::json;

constexpr std::array kEndings = {
    std::pair{Ending::kReturned, "returned"}, std::pair{Ending::kFailed, "failed"},
    std::pair{Ending::kDefect, "defect"}, std::pair{Ending::kHung, "hung"},
    std::pair{Ending::kLost, "lost"}};

Ending ending_named(const std::string& name) {
  for (const auto& [ending, known] : kEndings) {
    if (name == known) return ending;
  }
  throw std::invalid_argument("there is no ending " + name);
}

Json put_delta(double delta) {
  if (std::isnan(delta)) return "nan";
  if (std::isinf(delta)) return "inf";
  return delta;
}

double take_delta(const Json& json) {
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  return json.get<double>();
}

Json put(const reports::RankResult& result) {
  return {{"rank", result.rank},
          {"loaded_step", result.loaded_step},
          {"owns", result.owns},
          {"compared", result.compared},
          {"elements", result.elements},
          {"max_delta", put_delta(result.max_delta)},
          {"bit_mismatches", result.bit_mismatches},
          {"metrics_finite", result.metrics_finite},
          {"not_stored", result.not_stored},
          {"not_requested", result.not_requested},
          {"excused", result.excused}};
}

reports::RankResult take_result(const Json& json) {
  reports::RankResult result;
  json.at("rank").get_to(result.rank);
  json.at("loaded_step").get_to(result.loaded_step);
  json.at("owns").get_to(result.owns);
  json.at("compared").get_to(result.compared);
  json.at("elements").get_to(result.elements);
  result.max_delta = take_delta(json.at("max_delta"));
  json.at("bit_mismatches").get_to(result.bit_mismatches);
  json.at("metrics_finite").get_to(result.metrics_finite);
  json.at("not_stored").get_to(result.not_stored);
  json.at("not_requested").get_to(result.not_requested);
  json.at("excused").get_to(result.excused);
  return result;
}

Json put(const reports::TrainingPoint& point) {
  Json json = {{"step", point.step},
               {"loss", point.loss},
               {"lr", point.lr},
               {"loss_scale", point.loss_scale}};
  if (point.uninterrupted_loss) {
    json["uninterrupted_loss"] = *point.uninterrupted_loss;
    json["uninterrupted_lr"] = point.uninterrupted_lr.value_or(0);
    json["uninterrupted_loss_scale"] = point.uninterrupted_loss_scale.value_or(0);
  }
  return json;
}

reports::TrainingPoint take_training_point(const Json& json) {
  reports::TrainingPoint point{.step = json.at("step").get<std::int64_t>(),
                               .loss = json.at("loss").get<double>(),
                               .lr = json.at("lr").get<double>(),
                               .loss_scale = json.at("loss_scale").get<double>(),
                               .uninterrupted_loss = {},
                               .uninterrupted_lr = {}};
  if (json.contains("uninterrupted_loss")) {
    point.uninterrupted_loss = json.at("uninterrupted_loss").get<double>();
    point.uninterrupted_lr = json.at("uninterrupted_lr").get<double>();
    point.uninterrupted_loss_scale = json.at("uninterrupted_loss_scale").get<double>();
  }
  return point;
}

Json put(const reports::FirstDifference& first) {
  return {{"rank", first.rank},   {"key", first.key},       {"index", first.index},
          {"saved", first.saved}, {"loaded", first.loaded}, {"comes_from", first.comes_from}};
}

reports::FirstDifference take_first(const Json& json) {
  return {.rank = json.at("rank").get<std::int32_t>(),
          .key = json.at("key").get<std::string>(),
          .index = json.at("index").get<std::vector<std::int64_t>>(),
          .saved = json.at("saved").get<std::string>(),
          .loaded = json.at("loaded").get<std::string>(),
          .comes_from = json.at("comes_from").get<std::string>()};
}

}  // namespace

std::string name_of(Ending ending) {
  for (const auto& [known, name] : kEndings) {
    if (known == ending) return name;
  }
  return "lost";
}

std::string to_json(const Past& past) {
  std::vector<sim::FaultState> faults;
  for (const auto& spec : past.faults) faults.push_back({.spec = spec});
  return Json{{"saves", put_all(past.saves)},
              {"faults", put_all(faults)},
              {"tracker_damaged", past.tracker_damaged}}
             .dump() +
         "\n";
}

Past parse_past(const std::string& text, const Scenario& scenario) {
  const Json json = Json::parse(text);
  Past past{take_points(json.at("saves")), {}, json.at("tracker_damaged").get<bool>()};
  for (auto& save : past.saves) save.modules = modules_of(scenario, save.incarnation);
  for (const auto& fault : take_faults(json.at("faults"))) past.faults.push_back(fault.spec);
  return past;
}

std::string to_json(const RankRecord& record) {
  Json trajectory = Json::array();
  for (const auto& point : record.trajectory) trajectory.push_back(put(point));
  Json rulings = Json::array();
  for (const auto& ruling : record.rulings) {
    rulings.push_back({{"code", put_code(ruling.code)},
                       {"text", ruling.text},
                       {"key", ruling.key},
                       {"phase", ruling.phase},
                       {"step", ruling.step ? Json(*ruling.step) : Json(nullptr)}});
  }
  const Json json = {
      {"ending", name_of(record.ending)},
      {"code", put_code(record.code)},
      {"message", record.message},
      {"result", put(record.result)},
      {"first_step", record.first_step},
      {"last_step", record.last_step},
      {"phase", record.phase},
      {"trajectory", trajectory},
      {"first_difference", record.first_difference ? put(*record.first_difference) : Json(nullptr)},
      {"rulings", rulings},
      {"audits", put_all(record.audits)},
      {"loads", put_all(record.loads)},
      {"read_began", record.read_began},
      {"absent", record.absent},
      {"unended", record.unended},
      {"content_digest", record.content_digest},
      {"saves", put_all(record.saves)},
      {"outcome", record.outcome ? Json(name_of(*record.outcome)) : Json(nullptr)},
      {"exit_code", record.exit_code},
      {"diagnosis", put_diagnosis(record.diagnosis)},
      {"replans", record.replans},
      {"skipped", record.skipped},
      {"log", record.log},
      {"faults", put_all(record.faults)},
      {"peak_snapshot", record.peak_bytes.snapshot},
      {"peak_stage", record.peak_bytes.stage},
      {"peak_load", record.peak_bytes.load},
      {"peak_empty", record.peak_bytes.empty},
      {"bound_empty", record.bound_bytes.empty},
      {"bound_stage", record.bound_bytes.stage},
      {"bound_load", record.bound_bytes.load},
      {"asked", record.asked}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RankRecord parse_record(const std::string& text, const std::string& file) try {
  const Json json = Json::parse(text);
  RankRecord record;
  record.ending = ending_named(json.at("ending").get<std::string>());
  record.code = take_code(json.at("code"));
  json.at("message").get_to(record.message);
  record.result = take_result(json.at("result"));
  json.at("first_step").get_to(record.first_step);
  json.at("last_step").get_to(record.last_step);
  json.at("phase").get_to(record.phase);
  for (const auto& point : json.at("trajectory"))
    record.trajectory.push_back(take_training_point(point));
  const Json& first = json.at("first_difference");
  if (!first.is_null()) record.first_difference = take_first(first);
  for (const auto& ruling : json.at("rulings")) {
    record.rulings.push_back({.code = take_code(ruling.at("code")).value(),
                              .text = ruling.at("text").get<std::string>(),
                              .key = ruling.at("key").get<std::string>(),
                              .phase = ruling.at("phase").get<std::string>()});
    const Json& step = ruling.at("step");
    if (!step.is_null()) record.rulings.back().step = step.get<std::int64_t>();
  }
  record.audits = take_audits(json.at("audits"));
  record.loads = take_loads(json.at("loads"));
  json.at("read_began").get_to(record.read_began);
  json.at("absent").get_to(record.absent);
  json.at("unended").get_to(record.unended);
  json.at("content_digest").get_to(record.content_digest);
  record.saves = take_saves(json.at("saves"));
  if (!json.at("outcome").is_null()) record.outcome = take_outcome(json.at("outcome"));
  json.at("exit_code").get_to(record.exit_code);
  record.diagnosis = take_diagnosis(json.at("diagnosis"));
  json.at("replans").get_to(record.replans);
  json.at("skipped").get_to(record.skipped);
  json.at("log").get_to(record.log);
  record.faults = take_faults(json.at("faults"));
  json.at("peak_snapshot").get_to(record.peak_bytes.snapshot);
  json.at("peak_stage").get_to(record.peak_bytes.stage);
  json.at("peak_load").get_to(record.peak_bytes.load);
  json.at("peak_empty").get_to(record.peak_bytes.empty);
  json.at("bound_empty").get_to(record.bound_bytes.empty);
  json.at("bound_stage").get_to(record.bound_bytes.stage);
  json.at("bound_load").get_to(record.bound_bytes.load);
  json.at("asked").get_to(record.asked);
  return record;
} catch (const std::exception& error) {
  throw Error(Code::kTornFile, std::string("no rank's record: ") + error.what(), {.file = file});
}

bool is_logged(const IncarnationRecord& life, std::string_view text) {
  for (const auto& rank : life.ranks) {
    for (const auto& line : rank.log) {
      if (line.find(text) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace reprise::driver
