#include <algorithm>
#include <map>

#include "reports/document.hpp"
#include "reports/evidence.hpp"
#include "reports/read_error.hpp"
#include "reports/renamed.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

template <class Item>
std::vector<Item> all_of(const JsonField& list, Item (*one)(const JsonField&)) {
  std::vector<Item> items;
  for (const auto& node : list.items()) items.push_back(one(node));
  return items;
}

Verdict verdict_at(const JsonField& node) {
  const auto verdict = verdict_named(node.text());
  if (!verdict) {
    node.refuse("'" + node.text() +
                "' is not a verdict; the verdicts are: pass, fail, inconclusive, not_run");
  }
  return *verdict;
}

LifeOutcome life_outcome_at(const JsonField& node) {
  const auto outcome = life_outcome_named(node.text());
  if (!outcome) {
    node.refuse("'" + node.text() +
                "' is not an outcome of a life; the outcomes are: ran, continued, fell_back, "
                "refused, cut_short, failed");
  }
  return *outcome;
}

ReportLane lane_at(const JsonField& node) {
  const auto lane = report_lane_named(node.text());
  if (!lane) node.refuse(no_lane(node.text()));
  return *lane;
}

RankResult rank_at(const JsonField& node) {
  return {.rank = node.at("rank").small_integer(),
          .loaded_step = node.at("loaded_step").integer(),
          .owns = node.at("owns").flag(),
          .compared = node.at("compared").count(),
          .elements = node.at("elements").count(),
          .max_delta = node.at("max_delta").number(),
          .bit_mismatches = node.at("bit_mismatches").count(),
          .metrics_finite = node.at("metrics_finite").flag(),
          .not_stored = node.at("not_stored").texts(),
          .not_requested = node.at("not_requested").texts(),
          .excused = node.at("excused").texts(),
          .shape_mismatches = node.at("shape_mismatches").texts(),
          .dtype_mismatches = node.at("dtype_mismatches").texts()};
}

Incarnation incarnation_at(const JsonField& node) {
  return {.layout = node.at("layout").text(),
          .outcome = life_outcome_at(node.at("outcome")),
          .code = node.at("code").text(),
          .exit_code = node.at("exit_code").small_integer(),
          .first_step = node.at("first_step").integer(),
          .last_step = node.at("last_step").integer()};
}

std::optional<double> number_or_nothing(const JsonField& node) {
  if (node.is_null()) return std::nullopt;
  return node.number();
}

TrainingPoint point_at(const JsonField& node) {
  TrainingPoint point{.step = node.at("step").integer(),
                      .loss = node.at("loss").number(),
                      .lr = node.at("lr").number(),
                      .loss_scale = node.at("loss_scale").number(),
                      .uninterrupted_loss = {},
                      .uninterrupted_lr = {}};
  const JsonField uninterrupted = node.at("uninterrupted");
  if (uninterrupted.is_null()) return point;
  point.uninterrupted_loss = uninterrupted.at("loss").number();
  point.uninterrupted_lr = number_or_nothing(uninterrupted.at("lr"));
  point.uninterrupted_loss_scale = number_or_nothing(uninterrupted.at("loss_scale"));
  return point;
}

std::optional<FirstDifference> first_difference_at(const JsonField& node) {
  if (node.is_null()) return std::nullopt;
  FirstDifference first{.rank = node.at("rank").small_integer(),
                        .key = node.at("key").text(),
                        .index = {},
                        .saved = node.at("saved").text(),
                        .loaded = node.at("loaded").text(),
                        .comes_from = node.at("comes_from").text()};
  for (const auto& at : node.at("index").items()) first.index.push_back(at.integer());
  return first;
}

Consequence consequence_at(const JsonField& node) {
  Consequence follows{.life = node.at("life").count(),
                      .code = node.at("code").text(),
                      .text = node.at("text").text()};
  for (const auto& rank : node.at("ranks").items()) follows.ranks.push_back(rank.small_integer());
  return follows;
}

WrongKey wrong_key_at(const JsonField& node) {
  WrongKey wrong{.key = node.at("key").text(), .code = node.at("code").text()};
  for (const auto& rank : node.at("ranks").items()) wrong.ranks.push_back(rank.small_integer());
  return wrong;
}

/// Reads the field `wrong_keys`; nothing if the report has none.
std::optional<WrongKeys> wrong_keys_at(const JsonField& failure) {
  if (!failure.has("wrong_keys")) return std::nullopt;
  const JsonField node = failure.at("wrong_keys");
  return WrongKeys{.life = node.at("life").count(),
                   .keys = all_of(node.at("keys"), wrong_key_at),
                   .left_out = node.at("left_out").count()};
}

PlacedBox placed_box_at(const JsonField& node) {
  PlacedBox box;
  for (const auto& at : node.at("offset").items()) box.offset.push_back(at.integer());
  for (const auto& at : node.at("extent").items()) box.extent.push_back(at.integer());
  for (const auto& rank : node.at("ranks").items()) box.ranks.push_back(rank.small_integer());
  return box;
}

std::optional<TensorCut> tensor_cut_at(const JsonField& node) {
  if (node.is_null()) return std::nullopt;
  return TensorCut{.life = node.at("life").count(),
                   .layout = node.at("layout").text(),
                   .boxes = all_of(node.at("boxes"), placed_box_at),
                   .boxes_left_out = node.at("boxes_left_out").count()};
}

/// Reads the field `placement`; nothing if the report has none.
std::optional<TensorPlacement> placement_at(const JsonField& failure) {
  if (!failure.has("placement")) return std::nullopt;
  const JsonField node = failure.at("placement");
  TensorPlacement placement{.key = node.at("key").text(),
                            .saved = tensor_cut_at(node.at("saved")),
                            .loaded = tensor_cut_at(node.at("loaded"))};
  for (const auto& length : node.at("shape").items()) placement.shape.push_back(length.integer());
  for (const auto& at : node.at("index").items()) placement.index.push_back(at.integer());
  if (const JsonField rank = node.at("rank"); !rank.is_null()) {
    placement.rank = rank.small_integer();
  }
  return placement;
}

TimelineEvent::Part timeline_part_at(const JsonField& node) {
  return {.rank = node.at("rank").small_integer(), .begin_ns = node.at("begin_ns").count()};
}

TimelineEvent timeline_event_at(const JsonField& node) {
  const JsonField word = node.at("kind");
  const auto kind = timeline_kind_named(word.text());
  if (!kind) {
    word.refuse("'" + word.text() +
                "' is not a kind of event; the kinds are: phase, step, store, collective, commit, "
                "fault, broken, end");
  }
  TimelineEvent event{.kind = *kind,
                      .name = node.at("name").text(),
                      .detail = node.at("detail").text(),
                      .ranks = all_of(node.at("ranks"), timeline_part_at),
                      .end_ns = node.at("end_ns").count(),
                      .cut = node.at("cut").flag()};
  if (event.ranks.empty()) node.at("ranks").refuse("is empty: an event must have a rank");
  for (const auto& rank : node.at("missing").items()) event.missing.push_back(rank.small_integer());
  return event;
}

TimelineRank timeline_rank_at(const JsonField& node) {
  return {.rank = node.at("rank").small_integer(), .place = node.at("place").text()};
}

/// Reads the field `timeline`; nothing if it is null, or if the report is older than the field.
std::optional<Timeline> timeline_at(const JsonField& failure) {
  if (!failure.has("timeline") || failure.at("timeline").is_null()) return std::nullopt;
  const JsonField node = failure.at("timeline");
  return Timeline{.life = node.at("life").count(),
                  .ranks = all_of(node.at("ranks"), timeline_rank_at),
                  .ranks_left_out = node.at("ranks_left_out").count(),
                  .events = all_of(node.at("events"), timeline_event_at),
                  .events_left_out = node.at("events_left_out").count()};
}

/// Reads the field `failure`; nothing if it is null, or if the report is older than the field.
std::optional<Failure> failure_at(const JsonField& scenario) {
  if (!scenario.has("failure") || scenario.at("failure").is_null()) return std::nullopt;
  const JsonField node = scenario.at("failure");
  Failure failure{.cause = node.at("cause").text(),
                  .layout = node.at("layout").text(),
                  .phase = node.at("phase").text(),
                  .coordinates = node.at("coordinates").text(),
                  .key = node.at("key").text(),
                  .saved = node.at("saved").text(),
                  .loaded = node.at("loaded").text(),
                  .comes_from = node.at("comes_from").text(),
                  .consequences = all_of(node.at("consequences"), consequence_at),
                  .consequences_left_out = node.at("consequences_left_out").count(),
                  .wrong_keys = wrong_keys_at(node),
                  .placement = placement_at(node),
                  .timeline = timeline_at(node)};
  if (const JsonField life = node.at("life"); !life.is_null()) failure.life = life.count();
  if (const JsonField step = node.at("step"); !step.is_null()) failure.step = step.integer();
  if (const JsonField rank = node.at("rank"); !rank.is_null()) failure.rank = rank.small_integer();
  for (const auto& at : node.at("index").items()) failure.index.push_back(at.integer());
  return failure;
}

Generation generation_at(const JsonField& node) {
  Generation generation{.step = node.at("step").integer(),
                        .life = node.at("life").count(),
                        .state = node.at("state").text()};
  const auto states = generation_states();
  if (std::find(states.begin(), states.end(), generation.state) == states.end()) {
    node.at("state").refuse("is '" + generation.state +
                            "', but must be kept, pruned, replaced, damaged or unfinished");
  }
  for (const auto& life : node.at("loaded_by").items()) {
    generation.loaded_by.push_back(life.count());
  }
  for (const auto& life : node.at("skipped_by").items()) {
    generation.skipped_by.push_back(life.count());
  }
  return generation;
}

/// Reads the field `generations`; nothing if the report was written before that field existed.
std::vector<Generation> generations_at(const JsonField& scenario) {
  if (!scenario.has("generations")) return {};
  return all_of(scenario.at("generations"), generation_at);
}

FaultResult fault_at(const JsonField& node) {
  return {.kind = node.at("kind").text(),
          .rank = node.at("rank").small_integer(),
          .armed = node.at("armed").flag(),
          .reached = node.at("reached").flag(),
          .fired = node.at("fired").flag(),
          .must_fire = node.at("must_fire").flag()};
}

/// Reads the field `empty`; 0 if the report was written before that field existed.
std::uint64_t empty_at(const JsonField& bytes) {
  return bytes.has("empty") ? bytes.at("empty").count() : 0;
}

/// Reads the field `bound_bytes`; nothing if the report was written before that field existed.
std::optional<BoundBytes> bound_bytes_at(const JsonField& node) {
  if (!node.has("bound_bytes")) return std::nullopt;
  const JsonField bound = node.at("bound_bytes");
  return BoundBytes{.stage = bound.at("stage").count(),
                    .load = bound.at("load").count(),
                    .empty = empty_at(bound)};
}

EarlierTry earlier_try_at(const JsonField& node) {
  return {.code = node.at("code").text(),
          .reason = node.at("reason").text(),
          .seconds = node.at("seconds").number()};
}

/// Reads the field `earlier_tries`; nothing if there was only one try.
std::vector<EarlierTry> earlier_tries_at(const JsonField& scenario) {
  if (!scenario.has("earlier_tries")) return {};
  return all_of(scenario.at("earlier_tries"), earlier_try_at);
}

ScenarioResult scenario_at(const JsonField& node) {
  const JsonField peak = node.at("peak_bytes");
  return {.name = node.at("name").text(),
          .file = node.at("file").text(),
          .proves = node.at("proves").text(),
          .verdict = verdict_at(node.at("verdict")),
          .code = node.at("code").text(),
          .reason = node.at("reason").text(),
          .seconds = node.at("seconds").number(),
          .event_hash = node.at("event_hash").text(),
          .world = node.at("world").small_integer(),
          .layouts = node.at("layouts").texts(),
          .peak_bytes = {.snapshot = peak.at("snapshot").count(),
                         .stage = peak.at("stage").count(),
                         .load = peak.at("load").count(),
                         .empty = empty_at(peak)},
          .bound_bytes = bound_bytes_at(node),
          .ranks = all_of(node.at("ranks"), rank_at),
          .incarnations = all_of(node.at("incarnations"), incarnation_at),
          .replans = node.at("replans").count(),
          .diagnosis = node.at("diagnosis").text(),
          .content_digest = node.at("content_digest").text(),
          .doubled = node.has("doubled") && node.at("doubled").flag(),
          .left_to_time = node.has("left_to_time") && node.at("left_to_time").flag(),
          .trajectory = all_of(node.at("trajectory"), point_at),
          .first_difference = first_difference_at(node.at("first_difference")),
          .failure = failure_at(node),
          .generations = generations_at(node),
          .faults = all_of(node.at("faults"), fault_at),
          .replay = node.at("replay").text(),
          .crashed = node.has("crashed") && node.at("crashed").flag(),
          .earlier_tries = earlier_tries_at(node)};
}

Skipped skipped_at(const JsonField& node) {
  return {.scenario = node.at("scenario").text(), .reason = node.at("reason").text()};
}

/// Returns a text field; empty if the report was written before that field existed.
std::string text_or_nothing(const JsonField& node, const std::string& key) {
  return node.has(key) ? node.at(key).text() : "";
}

PropertyResult property_at(const JsonField& node) {
  PropertyResult property{.name = node.at("name").text(),
                          .cases = node.at("cases").count(),
                          .seed = node.at("seed").count(),
                          .verdict = verdict_at(node.at("verdict"))};
  const JsonField counterexample = node.at("counterexample");
  if (!counterexample.is_null()) property.counterexample = counterexample.text();
  property.code = text_or_nothing(node, "code");
  for (const auto& [axis, values] : node.at("distribution").entries()) {
    for (const auto& [value, count] : values.entries()) {
      property.distribution[axis][value] = count.count();
    }
  }
  return property;
}

MutantResult mutant_at(const JsonField& node) {
  MutantResult mutant{.name = node.at("name").text(),
                      .defect = node.at("defect").text(),
                      .caught = node.at("caught").flag(),
                      .caught_by = {}};
  for (const auto& by : node.at("caught_by").items()) {
    mutant.caught_by.push_back({.scenario = text_or_nothing(by, "scenario"),
                                .verdict = by.at("verdict").text(),
                                .reason = by.at("reason").text(),
                                .property = text_or_nothing(by, "property")});
    const auto& read = mutant.caught_by.back();
    if (read.scenario.empty() == read.property.empty()) {
      by.refuse("names neither a scenario nor a property, or both");
    }
  }
  if (node.has("property_cases")) mutant.property_cases = node.at("property_cases").count();
  return mutant;
}

MatrixRow row_at(const JsonField& node) {
  MatrixRow row{.mutant = node.at("mutant").text(), .cells = node.at("cells").text()};
  for (const auto& [scenario, codes] : node.at("caught").entries()) {
    for (auto& code : codes.texts()) row.caught[scenario].insert(std::move(code));
  }
  return row;
}

/// Reads the field `matrix`; nothing if it is null, or if the report is older than the field.
std::optional<Matrix> matrix_at(const JsonField& root) {
  if (!root.has("matrix") || root.at("matrix").is_null()) return std::nullopt;
  const JsonField node = root.at("matrix");
  Matrix matrix{.whole = node.at("whole").flag(),
                .mutants = node.at("mutants").count(),
                .scenarios = node.at("scenarios").texts(),
                .rows = all_of(node.at("rows"), row_at),
                .codes = node.at("codes").texts()};
  for (const auto& [scenario, reason] : node.at("left_out").entries()) {
    matrix.left_out[scenario] = reason.text();
  }
  const JsonField caught = node.at("caught");
  if (caught.count() != matrix.caught()) {
    caught.refuse("says " + std::to_string(caught.count()) + ", but the rows make " +
                  std::to_string(matrix.caught()));
  }
  return matrix;
}

ExhaustivePart part_at(const JsonField& node) {
  ExhaustivePart part{.part = node.at("part").count(),
                      .pairs = node.at("pairs").count(),
                      .passed = node.at("passed").count(),
                      .wrong = node.at("wrong").count(),
                      .elements = node.at("elements").count(),
                      .objects = node.at("objects").count(),
                      .seconds = node.at("seconds").number(),
                      .first_wrong = node.at("first_wrong").text()};
  for (const auto& [code, pairs] : node.at("refused").entries()) part.refused[code] = pairs.count();
  return part;
}

Shard shard_at(const JsonField& node) {
  return {.work = node.at("work").text(),
          .number = node.at("number").count(),
          .of = node.at("of").count(),
          .whole = node.at("whole").count()};
}

Mark mark_at(const JsonField& node) {
  return {.name = node.at("name").text(), .count = node.at("count").count()};
}

CurvePoint curve_point_at(const JsonField& node) {
  return {.runs = node.at("runs").count(),
          .marks = node.at("marks").count(),
          .tuples = node.at("tuples").count()};
}

SearchFinding finding_at(const JsonField& node) {
  SearchFinding finding{.signature = node.at("signature").text(),
                        .code = node.at("code").text(),
                        .reason = node.at("reason").text(),
                        .count = node.at("count").count(),
                        .at_run = node.at("at_run").count(),
                        .recipe = node.at("recipe").text(),
                        .file = node.at("file").text(),
                        .status = node.at("status").text()};
  const std::string& status = finding.status;
  if (status != "new" && status != "ongoing" && status != "resolved") {
    node.at("status").refuse("is '" + status + "', but must be new, ongoing or resolved");
  }
  return finding;
}

/// Reads the field `coverage`; nothing if it is null, or if the report is older than the field.
std::optional<Coverage> coverage_at(const JsonField& root) {
  if (!root.has("coverage") || root.at("coverage").is_null()) return std::nullopt;
  const JsonField node = root.at("coverage");
  return Coverage{.seed = node.at("seed").count(),
                  .runs = node.at("runs").count(),
                  .branches = node.at("branches").count(),
                  .inconclusive = node.at("inconclusive").count(),
                  .marks = all_of(node.at("marks"), mark_at),
                  .curve = all_of(node.at("curve"), curve_point_at),
                  .findings = all_of(node.at("findings"), finding_at)};
}

Exhaustive tried_at(const JsonField& node) {
  Exhaustive exhaustive{.model = node.at("model").text(),
                        .sharding = node.at("sharding").text(),
                        .hsdp = node.has("hsdp") && node.at("hsdp").flag(),
                        .max_world = node.at("max_world").count(),
                        .layouts = node.at("layouts").count(),
                        .pairs = node.at("pairs").count(),
                        .of = node.at("of").count(),
                        .parts = all_of(node.at("parts"), part_at)};
  const JsonField passed = node.at("passed");
  if (passed.count() != exhaustive.passed()) {
    passed.refuse("says " + std::to_string(passed.count()) + ", but the parts make " +
                  std::to_string(exhaustive.passed()));
  }
  return exhaustive;
}

/// Reads the fields `exhaustive`, which may be null, and `exhaustive_more`. Reports that are older
/// than a field lack it.
std::vector<Exhaustive> exhaustive_at(const JsonField& root) {
  std::vector<Exhaustive> all;
  if (root.has("exhaustive") && !root.at("exhaustive").is_null()) {
    all.push_back(tried_at(root.at("exhaustive")));
  }
  if (!root.has("exhaustive_more")) return all;
  const JsonField node = root.at("exhaustive_more");
  for (auto& tried : all_of(node, tried_at)) {
    if (all.empty()) node.refuse("has an entry, but 'exhaustive' has none");
    all.push_back(std::move(tried));
  }
  return all;
}

Project project_at(const JsonField& node) {
  return {.commit = node.at("commit").text(),
          .dirty = node.at("dirty").flag(),
          .build = node.at("build").text()};
}

Machine machine_at(const JsonField& node) {
  return {.cpu = node.at("cpu").text(),
          .memory = node.at("memory").count(),
          .gpus = node.at("gpus").texts(),
          .mpi = node.at("mpi").text(),
          .nccl = node.at("nccl").text(),
          .cuda = node.at("cuda").text()};
}

/// Throws unless this program reads reports of that version: NewerError if it is a later one.
void check_version(const JsonField& version) {
  const std::int64_t number = version.integer();
  if (number == kSchemaVersion) return;
  const std::string reads = "is " + std::to_string(number) + "; this program reads 1 and " +
                            std::to_string(kSchemaVersion);  // see bring_up_to_date()
  if (number < kSchemaVersion) version.refuse(reads);
  try {
    version.refuse(reads + "; a newer reprise wrote the report");
  } catch (const ReadError& error) {
    throw NewerError(error.what());
  }
}

/// Counts the fields of `found` that `known` lacks. Lists of equal length are compared item by
/// item; all others hold no objects.
void count_unknown(const nlohmann::json& found, const nlohmann::json& known,
                   const std::string& path, std::map<std::string, std::uint64_t>& counts) {
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

/// Throws unless the stated number of scenarios is the number of those listed.
void check_count(const JsonField& stated, std::uint64_t listed, const std::string& what) {
  if (stated.count() == listed) return;
  stated.refuse("says " + std::to_string(stated.count()) + ", but " + std::to_string(listed) +
                " of the scenarios listed " + what);
}

bool ran(const ScenarioResult& result) { return result.verdict != Verdict::kNotRun; }

/// Marks the scenarios that ran twice in a report that was written before each said so itself: then
/// all of them or none.
void mark_doubled(const JsonField& doubled, std::vector<ScenarioResult>& scenarios) {
  if (doubled.count() == 0) return;
  check_count(doubled, static_cast<std::uint64_t>(std::ranges::count_if(scenarios, ran)), "ran");
  for (auto& result : scenarios) result.doubled = ran(result);
}

/// Throws unless the counts about determinism are those of the scenarios.
void check_doubled(const JsonField& root, Report& report) {
  const JsonField determinism = root.at("determinism");
  const auto entries = root.at("scenarios").items();
  const bool older =
      std::ranges::none_of(entries, [](const JsonField& entry) { return entry.has("doubled"); });
  if (older) mark_doubled(determinism.at("runs_doubled"), report.scenarios);
  check_count(determinism.at("runs_doubled"), runs_doubled(report), "ran twice");
  check_count(determinism.at("mismatches"), determinism_mismatches(report),
              "differed the second time");
}

}  // namespace

Report parse_report(const std::string& text, const std::string& file) {
  auto document = parse_document(text, file);
  bring_up_to_date(document);
  const JsonField root(document, file, "");
  check_version(root.at("schema_version"));
  const JsonField lanes = root.at("lanes");
  Report report{
      .project = project_at(root.at("project")),
      .lane = lane_at(root.at("lane")),
      .machine = machine_at(root.at("machine")),
      .started = root.at("started").text(),
      .seconds = root.at("seconds").number(),
      .mutant = root.at("mutant").text(),
      .seed = root.at("seed").count(),
      .interrupted = root.at("interrupted").flag(),
      .verdict = verdict_at(root.at("verdict")),
      .scenarios = all_of(root.at("scenarios"), scenario_at),
      .planned = lanes.at("planned").count(),
      .skipped = all_of(lanes.at("skipped"), skipped_at),
      .properties = all_of(root.at("properties"), property_at),
      .mutants = all_of(root.at("mutants"), mutant_at),
      .matrix = matrix_at(root),
      .exhaustive = exhaustive_at(root),
      .coverage = coverage_at(root),
      .shards = root.has("shards") ? all_of(root.at("shards"), shard_at) : std::vector<Shard>{},
      .not_claimed = root.at("not_claimed").texts()};
  check_count(lanes.at("run"),
              static_cast<std::uint64_t>(std::ranges::count_if(report.scenarios, ran)), "ran");
  check_doubled(root, report);
  return report;
}

std::vector<UnknownField> unknown_fields(const std::string& text, const std::string& file,
                                         const Report& report) {
  auto document = parse_document(text, file);
  bring_up_to_date(document);
  std::map<std::string, std::uint64_t> counts;
  // The writer writes every field that the reader knows.
  count_unknown(document, nlohmann::json::parse(to_json(report)), "", counts);
  std::vector<UnknownField> fields;
  for (const auto& [path, count] : counts) fields.push_back({path, count});
  return fields;
}

}  // namespace reprise::reports
