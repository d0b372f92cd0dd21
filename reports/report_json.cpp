#include <algorithm>
#include <array>
#include <map>

#include "reports/binder.hpp"
#include "reports/evidence.hpp"
#include "reports/read_error.hpp"
#include "reports/report.hpp"

// The fields of report.json, in the order of report.hpp and of the headers that it includes.

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kFindingStatuses = {"new", "ongoing", "resolved"};

bool ran(const ScenarioResult& result) { return result.verdict != Verdict::kNotRun; }

/// Binds `exhaustive`, which may be null, and `exhaustive_more`, which has the further ones.
void bind_exhaustive(Slot& slot, std::vector<Exhaustive>& all) {
  std::optional<Exhaustive> first;
  std::vector<Exhaustive> more;
  if (!all.empty()) {
    first = all.front();
    more.assign(all.begin() + 1, all.end());
  }
  slot.newer_field("exhaustive", first);
  slot.newer_field("exhaustive_more", more);
  if (!slot.reading()) return;
  if (!first && !more.empty()) {
    slot.from().at("exhaustive_more").refuse("has an entry, but 'exhaustive' has none");
  }
  if (first) all.push_back(std::move(*first));
  all.insert(all.end(), more.begin(), more.end());
}

/// Marks the scenarios that ran twice in a report that was written before each said so itself: then
/// all of them or none.
void mark_doubled(const JsonField& root, std::vector<ScenarioResult>& scenarios) {
  const auto entries = root.at("scenarios").items();
  const bool older =
      std::ranges::none_of(entries, [](const JsonField& entry) { return entry.has("doubled"); });
  if (!older || root.at("determinism").at("runs_doubled").count() == 0) return;
  for (auto& result : scenarios) result.doubled = ran(result);
}

/// Throws unless this program reads reports of that version: NewerError if it is a later one.
void check_version(const JsonField& version) {
  const std::int64_t number = version.integer();
  if (number == kSchemaVersion) return;
  const std::string reads =
      "is " + std::to_string(number) + "; this program reads " + std::to_string(kSchemaVersion);
  if (number < kSchemaVersion) version.refuse(reads + "; " + kReadOlder);
  try {
    version.refuse(reads + "; a newer reprise wrote the report");
  } catch (const ReadError& error) {
    throw NewerError(error.what());
  }
}

/// Counts the fields of `found` that `known` lacks. Lists of equal length are compared item by
/// item; all others hold no objects.
void count_unknown(const Json& found, const Json& known, const std::string& path,
                   std::map<std::string, std::uint64_t>& counts) {
  if (found.is_array() && known.is_array()) {
    for (std::size_t i = 0; i < std::min(found.size(), known.size()); ++i) {
      count_unknown(found[i], known[i], path + "[]", counts);
    }
  }
  if (!found.is_object() || !known.is_object()) return;
  for (const auto& [key, value] : found.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    const auto at = known.find(key);
    if (at == known.end()) {
      ++counts[name];
    } else {
      count_unknown(value, *at, name, counts);
    }
  }
}

}  // namespace

void bind(Slot& slot, RankGpu& gpu) {
  slot.field("node", gpu.node);
  slot.field("name", gpu.name);
  slot.field("uuid", gpu.uuid);
  slot.field("bus_id", gpu.bus_id);
  slot.field("transports", gpu.transports);
}

void bind(Slot& slot, RankResult& rank) {
  slot.field("rank", rank.rank);
  slot.field("loaded_step", rank.loaded_step);
  slot.field("owns", rank.owns);
  slot.field("compared", rank.compared);
  slot.field("elements", rank.elements);
  slot.field("max_delta", rank.max_delta);
  slot.field("bit_mismatches", rank.bit_mismatches);
  slot.field("metrics_finite", rank.metrics_finite);
  slot.field("not_stored", rank.not_stored);
  slot.field("not_requested", rank.not_requested);
  slot.field("excused", rank.excused);
  slot.field("shape_mismatches", rank.shape_mismatches);
  slot.field("dtype_mismatches", rank.dtype_mismatches);
  slot.rare_field("gpu", rank.gpu);
}

void bind(Slot& slot, Life& life) {
  slot.field("layout", life.layout);
  slot.field("outcome", life.outcome);
  slot.field("code", life.code);
  slot.field("exit_code", life.exit_code);
  slot.field("first_step", life.first_step);
  slot.field("last_step", life.last_step);
}

void bind(Slot& slot, TrainingPoint& point) {
  slot.field("step", point.step);
  slot.field("loss", point.loss);
  slot.field("lr", point.lr);
  slot.field("loss_scale", point.loss_scale);
  const auto uninterrupted = [&point](Slot& other, double& loss) {
    other.field("loss", loss);
    other.field("lr", point.uninterrupted_lr);
    other.field("loss_scale", point.uninterrupted_loss_scale);
  };
  slot.field("uninterrupted", point.uninterrupted_loss, uninterrupted);
}

void bind(Slot& slot, FirstDifference& first) {
  slot.field("rank", first.rank);
  slot.field("key", first.key);
  slot.field("index", first.index);
  slot.field("saved", first.saved);
  slot.field("loaded", first.loaded);
  slot.field("comes_from", first.comes_from);
}

void bind(Slot& slot, PeakBytes& bytes) {
  slot.field("snapshot", bytes.snapshot);
  slot.field("stage", bytes.stage);
  slot.field("load", bytes.load);
  slot.newer_field("empty", bytes.empty);
}

void bind(Slot& slot, BoundBytes& bytes) {
  slot.field("stage", bytes.stage);
  slot.field("load", bytes.load);
  slot.newer_field("empty", bytes.empty);
}

void bind(Slot& slot, Generation& generation) {
  slot.field("step", generation.step);
  slot.field("life", generation.life);
  slot.field_in("state", generation.state,
                {"a state of a checkpoint", "states", generation_states()});
  slot.field("loaded_by", generation.loaded_by);
  slot.field("skipped_by", generation.skipped_by);
}

void bind(Slot& slot, FaultResult& fault) {
  slot.field("kind", fault.kind);
  slot.field("rank", fault.rank);
  slot.field("armed", fault.armed);
  slot.field("reached", fault.reached);
  slot.field("fired", fault.fired);
  slot.field("must_fire", fault.must_fire);
}

void bind(Slot& slot, EarlierTry& earlier) {
  slot.field("code", earlier.code);
  slot.field("reason", earlier.reason);
  slot.field("seconds", earlier.seconds);
}

void bind(Slot& slot, Consequence& follows) {
  slot.field("life", follows.life);
  slot.field("ranks", follows.ranks);
  slot.field("code", follows.code);
  slot.field("text", follows.text);
}

void bind(Slot& slot, PlacedBox& box) {
  slot.field("offset", box.offset);
  slot.field("extent", box.extent);
  slot.field("ranks", box.ranks);
}

void bind(Slot& slot, TensorCut& cut) {
  slot.field("life", cut.life);
  slot.field("layout", cut.layout);
  slot.field("boxes", cut.boxes);
  slot.field("boxes_left_out", cut.boxes_left_out);
}

void bind(Slot& slot, TensorPlacement& placement) {
  slot.field("key", placement.key);
  slot.field("shape", placement.shape);
  slot.field("rank", placement.rank);
  slot.field("index", placement.index);
  slot.field("saved", placement.saved);
  slot.field("loaded", placement.loaded);
}

void bind(Slot& slot, WrongKey& wrong) {
  slot.field("key", wrong.key);
  slot.field("code", wrong.code);
  slot.field("ranks", wrong.ranks);
}

void bind(Slot& slot, WrongKeys& wrong) {
  slot.field("life", wrong.life);
  slot.field("keys", wrong.keys);
  slot.field("left_out", wrong.left_out);
}

void bind(Slot& slot, TimelineEvent::Part& part) {
  slot.field("rank", part.rank);
  slot.field("begin_ns", part.begin_ns);
}

void bind(Slot& slot, TimelineEvent& event) {
  slot.field("kind", event.kind);
  slot.field("name", event.name);
  slot.field("detail", event.detail);
  slot.field("ranks", event.ranks);
  slot.field("end_ns", event.end_ns);
  slot.field("missing", event.missing);
  slot.field("cut", event.cut);
  if (slot.reading() && event.ranks.empty()) {
    slot.from().at("ranks").refuse("is empty: an event must have a rank");
  }
}

void bind(Slot& slot, TimelineRank& rank) {
  slot.field("rank", rank.rank);
  slot.field("place", rank.place);
}

void bind(Slot& slot, Timeline& timeline) {
  slot.field("life", timeline.life);
  slot.field("ranks", timeline.ranks);
  slot.field("ranks_left_out", timeline.ranks_left_out);
  slot.field("events", timeline.events);
  slot.field("events_left_out", timeline.events_left_out);
}

void bind(Slot& slot, Failure& failure) {
  slot.field("cause", failure.cause);
  slot.field("life", failure.life);
  slot.field("layout", failure.layout);
  slot.field("step", failure.step);
  slot.field("phase", failure.phase);
  slot.field("rank", failure.rank);
  slot.field("coordinates", failure.coordinates);
  slot.field("key", failure.key);
  slot.field("index", failure.index);
  slot.field("saved", failure.saved);
  slot.field("loaded", failure.loaded);
  slot.field("comes_from", failure.comes_from);
  slot.field("consequences", failure.consequences);
  slot.field("consequences_left_out", failure.consequences_left_out);
  slot.rare_field("wrong_keys", failure.wrong_keys);
  slot.rare_field("placement", failure.placement);
  slot.newer_field("timeline", failure.timeline);
}

void bind(Slot& slot, ScenarioResult& result) {
  slot.field("name", result.name);
  slot.field("file", result.file);
  slot.field("proves", result.proves);
  slot.field("verdict", result.verdict);
  slot.field("code", result.code);
  slot.field("reason", result.reason);
  slot.field("seconds", result.seconds);
  slot.field("event_hash", result.event_hash);
  slot.field("world", result.world);
  slot.field("layouts", result.layouts);
  slot.field("peak_bytes", result.peak_bytes);
  slot.rare_field("bound_bytes", result.bound_bytes);
  slot.field("ranks", result.ranks);
  slot.field("incarnations", result.lives);
  slot.field("replans", result.replans);
  slot.field("diagnosis", result.diagnosis);
  slot.field("content_digest", result.content_digest);
  slot.newer_field("doubled", result.doubled);
  slot.newer_field("left_to_time", result.left_to_time);
  slot.field("trajectory", result.trajectory);
  slot.field("first_difference", result.first_difference);
  slot.newer_field("failure", result.failure);
  slot.rare_field("generations", result.generations);
  slot.field("faults", result.faults);
  slot.field("replay", result.replay);
  slot.rare_field("crashed", result.crashed);
  slot.rare_field("earlier_tries", result.earlier_tries);
}

void bind(Slot& slot, PropertyResult& property) {
  slot.field("name", property.name);
  slot.field("cases", property.cases);
  slot.field("seed", property.seed);
  slot.field("verdict", property.verdict);
  slot.field("counterexample", property.counterexample);
  slot.rare_field("code", property.code);
  slot.field("distribution", property.distribution);
}

void bind(Slot& slot, MutantResult::By& by) {
  slot.rare_field("scenario", by.scenario);
  slot.rare_field("property", by.property);
  slot.field("verdict", by.verdict);
  slot.field("reason", by.reason);
  if (slot.reading() && by.scenario.empty() == by.property.empty()) {
    slot.from().refuse("names neither a scenario nor a property, or both");
  }
}

void bind(Slot& slot, MutantResult& mutant) {
  slot.field("name", mutant.name);
  slot.field("defect", mutant.defect);
  slot.field("caught", mutant.caught);
  slot.field("caught_by", mutant.caught_by);
  slot.newer_field("property_cases", mutant.property_cases);
}

void bind(Slot& slot, MatrixRow& row) {
  slot.field("mutant", row.mutant);
  slot.field("cells", row.cells);
  slot.field("caught", row.caught);
}

void bind(Slot& slot, Matrix& matrix) {
  slot.field("whole", matrix.whole);
  slot.field("mutants", matrix.mutants);
  slot.field("scenarios", matrix.scenarios);
  slot.field("rows", matrix.rows);
  slot.field("left_out", matrix.left_out);
  slot.field("codes", matrix.codes);
  slot.derived_field("caught", matrix.caught(), "the rows make {}");
}

void bind(Slot& slot, ExhaustivePart& part) {
  slot.field("part", part.part);
  slot.field("pairs", part.pairs);
  slot.field("passed", part.passed);
  slot.field("refused", part.refused);
  slot.field("wrong", part.wrong);
  slot.field("elements", part.elements);
  slot.field("objects", part.objects);
  slot.field("seconds", part.seconds);
  slot.field("first_wrong", part.first_wrong);
}

void bind(Slot& slot, Exhaustive& exhaustive) {
  slot.field("model", exhaustive.model);
  slot.field("sharding", exhaustive.sharding);
  slot.newer_field("hsdp", exhaustive.hsdp);
  slot.field("max_world", exhaustive.max_world);
  slot.field("layouts", exhaustive.layouts);
  slot.field("pairs", exhaustive.pairs);
  slot.field("of", exhaustive.of);
  slot.field("parts", exhaustive.parts);
  slot.derived_field("passed", exhaustive.passed(), "the parts make {}");
}

void bind(Slot& slot, Mark& mark) {
  slot.field("name", mark.name);
  slot.field("count", mark.count);
}

void bind(Slot& slot, CurvePoint& point) {
  slot.field("runs", point.runs);
  slot.field("marks", point.marks);
  slot.field("tuples", point.tuples);
}

void bind(Slot& slot, SearchFinding& finding) {
  slot.field("signature", finding.signature);
  slot.field("code", finding.code);
  slot.field("reason", finding.reason);
  slot.field("count", finding.count);
  slot.field("at_run", finding.at_run);
  slot.field("recipe", finding.recipe);
  slot.field("file", finding.file);
  slot.field_in("status", finding.status, {"a status of a finding", "statuses", kFindingStatuses});
}

void bind(Slot& slot, Coverage& coverage) {
  slot.field("seed", coverage.seed);
  slot.field("runs", coverage.runs);
  slot.field("branches", coverage.branches);
  slot.field("inconclusive", coverage.inconclusive);
  slot.field("marks", coverage.marks);
  slot.field("curve", coverage.curve);
  slot.field("findings", coverage.findings);
}

void bind(Slot& slot, Shard& shard) {
  slot.field("work", shard.work);
  slot.field("number", shard.number);
  slot.field("of", shard.of);
  slot.field("whole", shard.whole);
}

void bind(Slot& slot, Skipped& skipped) {
  slot.field("scenario", skipped.scenario);
  slot.field("reason", skipped.reason);
}

void bind(Slot& slot, Project& project) {
  slot.field("commit", project.commit);
  slot.field("dirty", project.dirty);
  slot.field("build", project.build);
}

void bind(Slot& slot, Machine& machine) {
  slot.field("cpu", machine.cpu);
  slot.field("memory", machine.memory);
  slot.field("gpus", machine.gpus);
  slot.field("mpi", machine.mpi);
  slot.field("nccl", machine.nccl);
  slot.field("cuda", machine.cuda);
}

void bind(Slot& slot, Report& report) {
  slot.field("project", report.project);
  slot.field("lane", report.lane);
  slot.field("machine", report.machine);
  slot.field("started", report.started);
  slot.field("seconds", report.seconds);
  slot.field("mutant", report.mutant);
  slot.field("seed", report.seed);
  slot.field("interrupted", report.interrupted);
  slot.field("verdict", report.verdict);
  slot.field("scenarios", report.scenarios);
  slot.field("lanes", report, [](Slot& lanes, Report& all) {
    lanes.field("planned", all.planned);
    lanes.derived_field("run",
                        static_cast<std::uint64_t>(std::ranges::count_if(all.scenarios, ran)),
                        "{} of the scenarios listed ran");
    lanes.field("skipped", all.skipped);
  });
  slot.field("properties", report.properties);
  slot.field("mutants", report.mutants);
  slot.newer_field("matrix", report.matrix);
  bind_exhaustive(slot, report.exhaustive);
  slot.newer_field("coverage", report.coverage);
  slot.rare_field("shards", report.shards);
  slot.field("not_claimed", report.not_claimed);
  if (slot.reading()) mark_doubled(slot.from(), report.scenarios);
  slot.field("determinism", report, [](Slot& determinism, Report& all) {
    determinism.derived_field("runs_doubled", runs_doubled(all),
                              "{} of the scenarios listed ran twice");
    determinism.derived_field("mismatches", determinism_mismatches(all),
                              "{} of the scenarios listed differed the second time");
  });
}

std::string to_json(const Report& report) {
  Json document = written(report);
  document["schema_version"] = kSchemaVersion;
  document["policy"] = nullptr;
  return text_of(document);
}

Report parse_report(const std::string& text, const std::string& file) {
  const Json document = parse_document(text, file);
  const JsonField root(document, file, "");
  check_version(root.at("schema_version"));
  return read<Report>(root);
}

std::vector<UnknownField> unknown_fields(const std::string& text, const std::string& file,
                                         const Report& report) {
  std::map<std::string, std::uint64_t> counts;
  // The writer writes every field that the reader knows.
  count_unknown(parse_document(text, file), Json::parse(to_json(report)), "", counts);
  std::vector<UnknownField> fields;
  for (const auto& [path, count] : counts) fields.push_back({path, count});
  return fields;
}

}  // namespace reprise::reports
