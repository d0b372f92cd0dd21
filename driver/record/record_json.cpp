#include <nlohmann/json.hpp>

#include "driver/record/record.hpp"
#include "reports/binder.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

// The files that the processes of a life leave for the driver, and the one that tells them of the
// lives before. Their fields are in the order of record.hpp and of the headers that it includes.

namespace reprise {
namespace {

using reports::Slot;

constexpr const char* kRecord = "rank's record";  ///< what errors call the document

std::optional<driver::Outcome> outcome_named(std::string_view name) {
  using driver::Outcome;
  for (const Outcome outcome : {Outcome::kContinued, Outcome::kFellBack, Outcome::kRefused}) {
    if (name == name_of(outcome)) return outcome;
  }
  return std::nullopt;
}

std::optional<sim::RerunDiagnosis> diagnosis_named(std::string_view name) {
  return sim::rerun_diagnosis_named(name);
}

/// Binds a value by its name; `named` returns the value with a name, if there is one. What may be
/// absent then has an empty name.
template <class Value>
class ByName {
 public:
  using Named = std::optional<Value> (*)(std::string_view);

  explicit ByName(Named named) : named_(named) {}

  void operator()(Slot& slot, Value& value) const {
    std::string name(slot.reading() ? "" : name_of(value));
    slot.bind(name);
    if (slot.reading()) value = found(slot, name);
  }
  void operator()(Slot& slot, std::optional<Value>& value) const {
    std::string name(value ? name_of(*value) : "");
    slot.bind(name);
    if (slot.reading() && !name.empty()) value = found(slot, name);
  }

 private:
  Value found(const Slot& slot, const std::string& name) const {
    const auto value = named_(name);
    if (!value) slot.from().refuse("has the unknown name '" + name + "'");
    return *value;
  }

  Named named_;
};

/// Returns the document without blanks: there is an entry for every box of every save.
std::string text_of(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void bind_dims(Slot& slot, Dims& dims) {
  std::vector<std::int64_t> sizes(dims.begin(), dims.end());
  slot.bind(sizes);
  if (!slot.reading()) return;
  for (const auto size : sizes) dims.push_back(size);
}

void bind_rank(Slot& slot, GlobalRank& rank) { slot.bind(rank.value); }

}  // namespace

void bind(Slot& slot, HeldItem& item) {
  slot.field("key", item.key);
  slot.field("offset", item.box.offset, bind_dims);
  slot.field("extent", item.box.extent, bind_dims);
  slot.field("replica", item.replica);
  slot.field("hashes", item.hashes);
}

void bind(Slot& slot, HeldCommon& common) {
  slot.field("path", common.path);
  slot.field("hash", common.hash);
}

void bind(Slot& slot, AuditPage& page) {
  slot.field("rank", page.rank.value);
  slot.field("step", page.step);
  slot.field("items", page.items);
  slot.field("common", page.common);
}

namespace judged {

/// Leaves out what rank's own findings never have.
void bind(Slot& slot, Finding& finding) {
  slot.field("code", finding.code, ByName(finding_code_named));
  slot.field("key", finding.key);
  slot.field("text", finding.text);
  slot.field("rank", finding.rank, bind_rank);
  slot.field("phase", finding.phase);
  slot.field("step", finding.step);
}

void bind(Slot& slot, Findings& findings) {
  std::vector<Finding> all(findings.begin(), findings.end());
  slot.bind(all);
  if (!slot.reading()) return;
  for (const auto& finding : all) findings.append(finding);
}

}  // namespace judged

namespace sim {

void bind(reports::Slot& slot, BadResult& bad) {
  slot.field("kind", bad.kind, ByName(result_fault_named));
  slot.field("fatal", bad.fatal);
  slot.field("value", bad.value, ByName(bad_value_named));
  slot.field("call", bad.call);
  slot.field("run", bad.run);
  slot.field("iteration", bad.iteration);
  slot.field("device", bad.device);
}

void bind(reports::Slot& slot, FaultSpec& spec) {
  slot.field("kind", spec.kind, ByName(fault_named));
  slot.field("rank", spec.place.rank.value);
  slot.field("phase", spec.place.phase);
  slot.field("step", spec.place.step);
  slot.field("moment", spec.place.moment, ByName(moment_named));
  slot.field("nth", spec.place.nth);
  slot.field("file", spec.place.file, ByName(file_kind_named));
  slot.field("delay_ns", spec.delay_ns);
  slot.field("bit", spec.bit);
  slot.field("result", spec.result);
}

void bind(reports::Slot& slot, FaultState& fault) {
  slot.field("spec", fault.spec);
  slot.field("armed", fault.armed);
  slot.field("reached", fault.reached);
  slot.field("fired", fault.fired);
  slot.field("where", fault.where);
}

}  // namespace sim

namespace driver {

void bind(Slot& slot, StreamAges& ages) {
  slot.field("host", ages.host);
  slot.field("expert", ages.expert);
}

void bind(Slot& slot, Turn& turn) {
  slot.field("at", turn.at.value);
  slot.field("incarnation", turn.life);
  slot.field("optimizer", turn.optimizer);
  slot.field("release", turn.release);
}

/// Leaves out the modules.
void bind(Slot& slot, SavePoint& point) {
  slot.field("step", point.step.value);
  slot.field("incarnation", point.life);
  slot.field("parent_step", point.parent_step);
  slot.field("ages", point.ages);
  slot.field("certain", point.certain);
  slot.field("damaged", point.damaged);
  slot.field("random", point.random);
  slot.field("optimizer", point.optimizer);
  slot.field("release", point.release);
  slot.field("beside", point.beside);
  slot.field("turns", point.turns);
}

void bind(Slot& slot, Past& past) {
  slot.field("saves", past.saves);
  slot.field("faults", past.faults);
  slot.field("tracker_damaged", past.tracker_damaged);
}

void bind(Slot& slot, LoadEvidence& load) {
  slot.field("step", load.step);
  slot.field("requested", load.requested);
  slot.field("stored", load.stored);
  slot.field("excused", load.excused);
  slot.field("bytes_read", load.bytes_read);
  slot.field("bytes_allowed", load.bytes_allowed);
}

void bind(Slot& slot, SaveEvidence& save) {
  slot.field("point", save.point);
  slot.field("code", save.code, ByName(finding_code_named));
  slot.field("live", save.live);
  slot.field("stored", save.stored);
  slot.field("reused", save.reused);
  slot.field("padded", save.padded);
}

void bind(Slot& slot, RankRecord& record) {
  slot.field("ending", record.ending);
  slot.field("code", record.code, ByName(finding_code_named));
  slot.field("message", record.message);
  slot.field("result", record.result);
  slot.field("first_step", record.first_step);
  slot.field("last_step", record.last_step);
  slot.field("phase", record.phase);
  slot.field("trajectory", record.trajectory);
  slot.field("first_difference", record.first_difference);
  slot.field("findings", record.findings);
  slot.field("audits", record.audits);
  slot.field("loads", record.loads);
  slot.field("read_began", record.read_began);
  slot.field("saves", record.saves);
  slot.field("outcome", record.outcome, ByName(outcome_named));
  slot.field("exit_code", record.exit_code);
  slot.field("diagnosis", record.diagnosis, ByName(diagnosis_named));
  slot.field("replans", record.replans);
  slot.field("skipped", record.skipped);
  slot.field("log", record.log);
  slot.field("faults", record.faults);
  slot.field("absent", record.absent);
  slot.field("unended", record.unended);
  slot.field("content_digest", record.content_digest);
  slot.field("peak_bytes", record.peak_bytes);
  slot.field("bound_bytes", record.bound_bytes);
  slot.field("asked", record.asked);
}

std::string to_json(const RankRecord& record) { return text_of(reports::written(record)); }

std::string to_json(const Past& past) { return text_of(reports::written(past)); }

RankRecord parse_record(const std::string& text, const std::string& file) try {
  const auto document = reports::parse_document(text, kRecord);
  return reports::read<RankRecord>({document, kRecord, ""});
} catch (const std::exception& error) {
  throw Error(Code::kTornFile, std::string("no ") + error.what(), {.file = file});
}

Past parse_past(const std::string& text, const Scenario& scenario) {
  const auto document = reports::parse_document(text, kRecord);
  auto past = reports::read<Past>({document, kRecord, ""});
  for (auto& save : past.saves) save.modules = modules_of(scenario, save.life);
  return past;
}

}  // namespace driver
}  // namespace reprise
