#include "driver/record/evidence_json.hpp"

#include <sstream>

#include "core/base/codes.hpp"
#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

using Json = nlohmann::json;

constexpr int kHexadecimal = 16;

std::uint64_t number(const std::string& digits) {
  return std::stoull(digits, nullptr, kHexadecimal);
}

Json put(const Dims& dims) { return std::vector<std::int64_t>(dims.begin(), dims.end()); }

Dims take_dims(const Json& json) {
  const auto numbers = json.get<std::vector<std::int64_t>>();
  Dims dims = Dims::filled(numbers.size(), 0);
  for (std::size_t d = 0; d < numbers.size(); ++d) dims[d] = numbers[d];
  return dims;
}

/// Writes the item as [key, offset, extent, replica, hashes].
Json put(const HeldItem& item) {
  std::string hashes;
  for (const auto hash : item.hashes) hashes += (hashes.empty() ? "" : " ") + hex(hash);
  return {item.key, put(item.box.offset), put(item.box.extent), item.replica, hashes};
}

HeldItem take_item(const Json& json) {
  HeldItem item{json.at(0).get<std::string>(),
                {take_dims(json.at(1)), take_dims(json.at(2))},
                json.at(3).get<std::int32_t>(),
                {}};
  std::istringstream hashes(json.at(4).get<std::string>());
  for (std::string digits; hashes >> digits;) item.hashes.push_back(number(digits));
  return item;
}

Json put(const AuditPage& page) {
  Json items = Json::array();
  for (const auto& item : page.items) items.push_back(put(item));
  Json common = Json::array();
  for (const auto& entry : page.common) common.push_back({entry.path, hex(entry.hash)});
  return {{"rank", page.rank.value}, {"step", page.step}, {"items", items}, {"common", common}};
}

AuditPage take_page(const Json& json) {
  AuditPage page{
      {json.at("rank").get<std::int32_t>()}, json.at("step").get<std::int64_t>(), {}, {}};
  for (const auto& item : json.at("items")) page.items.push_back(take_item(item));
  for (const auto& entry : json.at("common")) {
    page.common.push_back({entry.at(0).get<std::string>(), number(entry.at(1).get<std::string>())});
  }
  return page;
}

Json put(const Turn& turn) {
  return {{"at", turn.at.value},
          {"incarnation", turn.incarnation},
          {"optimizer", turn.optimizer},
          {"release", turn.release}};
}

Turn take_turn(const Json& json) {
  Turn turn;
  json.at("at").get_to(turn.at.value);
  json.at("incarnation").get_to(turn.incarnation);
  json.at("optimizer").get_to(turn.optimizer);
  json.at("release").get_to(turn.release);
  return turn;
}

Json put(const SavePoint& point) {
  Json ages = Json::object();
  for (const auto& [module, age] : point.ages) ages[module] = {age.host, age.expert};
  Json turns = Json::array();
  for (const auto& turn : point.turns) turns.push_back(put(turn));
  return {{"step", point.step.value},
          {"incarnation", point.incarnation},
          {"parent_step", point.parent_step ? Json(*point.parent_step) : Json(nullptr)},
          {"ages", ages},
          {"turns", turns},
          {"certain", point.certain},
          {"damaged", point.damaged},
          {"random", point.random},
          {"optimizer", point.optimizer},
          {"release", point.release},
          {"beside", point.beside}};
}

SavePoint take_save_point(const Json& json) {
  SavePoint point;
  json.at("step").get_to(point.step.value);
  json.at("incarnation").get_to(point.incarnation);
  const Json& parent = json.at("parent_step");
  if (!parent.is_null()) point.parent_step = parent.get<std::int64_t>();
  for (const auto& [module, age] : json.at("ages").items()) {
    point.ages[module] = {age.at(0).get<std::int64_t>(), age.at(1).get<std::int64_t>()};
  }
  for (const auto& turn : json.at("turns")) point.turns.push_back(take_turn(turn));
  json.at("certain").get_to(point.certain);
  json.at("damaged").get_to(point.damaged);
  json.at("random").get_to(point.random);
  json.at("optimizer").get_to(point.optimizer);
  json.at("release").get_to(point.release);
  json.at("beside").get_to(point.beside);
  return point;
}

Json put(const sim::BadResult& bad) {
  return {{"kind", sim::name_of(bad.kind)},
          {"fatal", bad.fatal},
          {"value", sim::name_of(bad.value)},
          {"call", bad.call},
          {"run", bad.run},
          {"iteration", bad.iteration},
          {"device", bad.device}};
}

sim::BadResult take_bad(const Json& json) {
  sim::BadResult bad;
  bad.kind = sim::result_fault_named(json.at("kind").get<std::string>()).value();
  json.at("fatal").get_to(bad.fatal);
  bad.value = sim::bad_value_named(json.at("value").get<std::string>()).value();
  json.at("call").get_to(bad.call);
  json.at("run").get_to(bad.run);
  json.at("iteration").get_to(bad.iteration);
  json.at("device").get_to(bad.device);
  return bad;
}

Json put(const sim::FaultState& fault) {
  const sim::FaultPlace& place = fault.spec.place;
  return {{"kind", sim::name_of(fault.spec.kind)},
          {"rank", place.rank.value},
          {"phase", place.phase},
          {"step", place.step},
          {"moment", sim::name_of(place.moment)},
          {"nth", place.nth},
          {"file", place.file ? sim::name_of(*place.file) : ""},
          {"delay_ns", fault.spec.delay_ns},
          {"bit", fault.spec.bit},
          {"result", put(fault.spec.result)},
          {"armed", fault.armed},
          {"reached", fault.reached},
          {"fired", fault.fired},
          {"where", fault.where}};
}

sim::FaultState take_fault(const Json& json) {
  sim::FaultState fault;
  fault.spec.kind = sim::fault_named(json.at("kind").get<std::string>()).value();
  sim::FaultPlace& place = fault.spec.place;
  place.rank = GlobalRank{json.at("rank").get<std::int32_t>()};
  json.at("phase").get_to(place.phase);
  json.at("step").get_to(place.step);
  place.moment = sim::moment_named(json.at("moment").get<std::string>()).value();
  json.at("nth").get_to(place.nth);
  place.file = sim::file_kind_named(json.at("file").get<std::string>());
  json.at("delay_ns").get_to(fault.spec.delay_ns);
  json.at("bit").get_to(fault.spec.bit);
  fault.spec.result = take_bad(json.at("result"));
  json.at("armed").get_to(fault.armed);
  json.at("reached").get_to(fault.reached);
  json.at("fired").get_to(fault.fired);
  json.at("where").get_to(fault.where);
  return fault;
}

}  // namespace

Json put_code(std::optional<RulingCode> code) { return code ? name_of(*code) : ""; }

std::optional<RulingCode> take_code(const Json& json) {
  const auto name = json.get<std::string>();
  if (name.empty()) return std::nullopt;
  const auto code = ruling_code_named(name);
  if (!code) throw std::invalid_argument("there is no code " + name);
  return code;
}

Json put_all(const std::vector<SavePoint>& points) {
  Json json = Json::array();
  for (const auto& point : points) json.push_back(put(point));
  return json;
}

Json put_all(const std::vector<SaveEvidence>& saves) {
  Json json = Json::array();
  for (const auto& save : saves) {
    json.push_back({{"point", put(save.point)},
                    {"code", put_code(save.code)},
                    {"live", save.live},
                    {"stored", save.stored},
                    {"reused", save.reused},
                    {"padded", save.padded}});
  }
  return json;
}

Json put_all(const std::vector<sim::FaultState>& faults) {
  Json json = Json::array();
  for (const auto& fault : faults) json.push_back(put(fault));
  return json;
}

std::vector<SavePoint> take_points(const Json& json) {
  std::vector<SavePoint> points;
  for (const auto& point : json) points.push_back(take_save_point(point));
  return points;
}

std::vector<SaveEvidence> take_saves(const Json& json) {
  std::vector<SaveEvidence> saves;
  for (const auto& save : json) {
    saves.push_back({take_save_point(save.at("point")), take_code(save.at("code")),
                     save.at("live").get<Inventory>(), save.at("stored").get<Inventory>(),
                     save.at("reused").get<bool>(), save.at("padded").get<Inventory>()});
  }
  return saves;
}

std::vector<sim::FaultState> take_faults(const Json& json) {
  std::vector<sim::FaultState> faults;
  for (const auto& fault : json) faults.push_back(take_fault(fault));
  return faults;
}

Json put_diagnosis(sim::RerunDiagnosis diagnosis) {
  return diagnosis == sim::RerunDiagnosis::kNone ? "" : std::string(name_of(diagnosis));
}

sim::RerunDiagnosis take_diagnosis(const Json& json) {
  const auto name = json.get<std::string>();
  return name.empty() ? sim::RerunDiagnosis::kNone : sim::rerun_diagnosis_named(name);
}

Outcome take_outcome(const Json& json) {
  for (const Outcome outcome : {Outcome::kContinued, Outcome::kFellBack, Outcome::kRefused}) {
    if (json == name_of(outcome)) return outcome;
  }
  throw std::invalid_argument("there is no such outcome");
}

Json put_all(const std::vector<AuditPage>& pages) {
  Json json = Json::array();
  for (const auto& page : pages) json.push_back(put(page));
  return json;
}

Json put_all(const std::vector<LoadEvidence>& loads) {
  Json json = Json::array();
  for (const auto& load : loads) {
    json.push_back({{"step", load.step},
                    {"requested", load.requested},
                    {"stored", load.stored},
                    {"excused", load.excused},
                    {"bytes_read", load.bytes_read},
                    {"bytes_allowed", load.bytes_allowed}});
  }
  return json;
}

std::vector<AuditPage> take_audits(const Json& json) {
  std::vector<AuditPage> pages;
  for (const auto& page : json) pages.push_back(take_page(page));
  return pages;
}

std::vector<LoadEvidence> take_loads(const Json& json) {
  std::vector<LoadEvidence> loads;
  for (const auto& load : json) {
    loads.push_back({load.at("step").get<std::int64_t>(), load.at("requested").get<Inventory>(),
                     load.at("stored").get<Inventory>(),
                     load.at("excused").get<std::vector<std::string>>(),
                     load.at("bytes_read").get<std::uint64_t>(),
                     load.at("bytes_allowed").get<std::uint64_t>()});
  }
  return loads;
}

}  // namespace reprise::driver
