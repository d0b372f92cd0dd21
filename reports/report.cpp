#include "reports/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "properties/ruling_code.hpp"
#include "reports/document.hpp"
#include "reprise/error.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;  // sorts the keys of objects

Json to_json_value(const RankResult& rank) {
  return {{"rank", rank.rank},
          {"loaded_step", rank.loaded_step},
          {"owns", rank.owns},
          {"compared", rank.compared},
          {"elements", rank.elements},
          {"max_delta", number_or_word(rank.max_delta)},
          {"bit_mismatches", rank.bit_mismatches},
          {"metrics_finite", rank.metrics_finite},
          {"not_stored", rank.not_stored},
          {"not_requested", rank.not_requested},
          {"excused", rank.excused},
          {"shape_mismatches", rank.shape_mismatches},
          {"dtype_mismatches", rank.dtype_mismatches}};
}

Json to_json_value(const Incarnation& life) {
  return {{"layout", life.layout},
          {"outcome", name_of(life.outcome)},
          {"code", life.code},
          {"exit_code", life.exit_code},
          {"first_step", life.first_step},
          {"last_step", life.last_step}};
}

Json number_or_null(const std::optional<double>& value) {
  return value ? number_or_word(*value) : Json(nullptr);
}

Json to_json_value(const TrainingPoint& point) {
  Json uninterrupted = nullptr;
  if (point.uninterrupted_loss) {
    uninterrupted = {{"loss", number_or_word(*point.uninterrupted_loss)},
                     {"lr", number_or_null(point.uninterrupted_lr)},
                     {"loss_scale", number_or_null(point.uninterrupted_loss_scale)}};
  }
  return {{"step", point.step},
          {"loss", number_or_word(point.loss)},
          {"lr", number_or_word(point.lr)},
          {"loss_scale", number_or_word(point.loss_scale)},
          {"uninterrupted", uninterrupted}};
}

Json to_json_value(const FirstDifference& first) {
  return {{"rank", first.rank},   {"key", first.key},       {"index", first.index},
          {"saved", first.saved}, {"loaded", first.loaded}, {"comes_from", first.comes_from}};
}

Json to_json_value(const Consequence& follows) {
  return {{"life", follows.life},
          {"ranks", follows.ranks},
          {"code", follows.code},
          {"text", follows.text}};
}

Json to_json_value(const WrongKey& wrong) {
  return {{"key", wrong.key}, {"code", wrong.code}, {"ranks", wrong.ranks}};
}

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class Item>
Json array_of(const std::vector<Item>& items, Json (*one)(const Item&)) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(one(item));
  return array;
}

Json to_json_value(const PlacedBox& box) {
  return {{"offset", box.offset}, {"extent", box.extent}, {"ranks", box.ranks}};
}

Json to_json_value(const TensorCut& cut) {
  return {{"life", cut.life},
          {"layout", cut.layout},
          {"boxes", array_of(cut.boxes, to_json_value)},
          {"boxes_left_out", cut.boxes_left_out}};
}

Json to_json_value(const TensorPlacement& placement) {
  return {{"key", placement.key},
          {"shape", placement.shape},
          {"rank", value_or_null(placement.rank)},
          {"index", placement.index},
          {"saved", placement.saved ? to_json_value(*placement.saved) : Json(nullptr)},
          {"loaded", placement.loaded ? to_json_value(*placement.loaded) : Json(nullptr)}};
}

Json to_json_value(const TimelineEvent::Part& part) {
  return {{"rank", part.rank}, {"begin_ns", part.begin_ns}};
}

Json to_json_value(const TimelineEvent& event) {
  return {{"kind", name_of(event.kind)},
          {"name", event.name},
          {"detail", event.detail},
          {"ranks", array_of(event.ranks, to_json_value)},
          {"end_ns", event.end_ns},
          {"missing", event.missing},
          {"cut", event.cut}};
}

Json to_json_value(const TimelineRank& rank) {
  return {{"rank", rank.rank}, {"place", rank.place}};
}

Json to_json_value(const Timeline& timeline) {
  return {{"life", timeline.life},
          {"ranks", array_of(timeline.ranks, to_json_value)},
          {"ranks_left_out", timeline.ranks_left_out},
          {"events", array_of(timeline.events, to_json_value)},
          {"events_left_out", timeline.events_left_out}};
}

Json to_json_value(const WrongKeys& wrong) {
  return {{"life", wrong.life},
          {"keys", array_of(wrong.keys, to_json_value)},
          {"left_out", wrong.left_out}};
}

Json to_json_value(const Failure& failure) {
  Json json = {{"cause", failure.cause},
               {"life", value_or_null(failure.life)},
               {"layout", failure.layout},
               {"step", value_or_null(failure.step)},
               {"phase", failure.phase},
               {"rank", value_or_null(failure.rank)},
               {"coordinates", failure.coordinates},
               {"key", failure.key},
               {"index", failure.index},
               {"saved", failure.saved},
               {"loaded", failure.loaded},
               {"comes_from", failure.comes_from},
               {"consequences", array_of(failure.consequences, to_json_value)},
               {"consequences_left_out", failure.consequences_left_out},
               {"timeline", failure.timeline ? to_json_value(*failure.timeline) : Json(nullptr)}};
  if (failure.wrong_keys) json["wrong_keys"] = to_json_value(*failure.wrong_keys);
  if (failure.placement) json["placement"] = to_json_value(*failure.placement);
  return json;
}

Json to_json_value(const FaultResult& fault) {
  return {{"kind", fault.kind},       {"rank", fault.rank},   {"armed", fault.armed},
          {"reached", fault.reached}, {"fired", fault.fired}, {"must_fire", fault.must_fire}};
}

Json to_json_value(const Generation& generation) {
  return {{"step", generation.step},
          {"life", generation.life},
          {"state", generation.state},
          {"loaded_by", generation.loaded_by},
          {"skipped_by", generation.skipped_by}};
}

Json to_json_value(const EarlierTry& earlier) {
  return {{"code", earlier.code}, {"reason", earlier.reason}, {"seconds", earlier.seconds}};
}

Json to_json_value(const ScenarioResult& result) {
  Json json = {{"name", result.name},
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
                 {"load", result.peak_bytes.load},
                 {"empty", result.peak_bytes.empty}}},
               {"ranks", array_of(result.ranks, to_json_value)},
               {"incarnations", array_of(result.incarnations, to_json_value)},
               {"replans", result.replans},
               {"diagnosis", result.diagnosis},
               {"content_digest", result.content_digest},
               {"doubled", result.doubled},
               {"left_to_time", result.left_to_time},
               {"trajectory", array_of(result.trajectory, to_json_value)},
               {"first_difference",
                result.first_difference ? to_json_value(*result.first_difference) : Json(nullptr)},
               {"failure", result.failure ? to_json_value(*result.failure) : Json(nullptr)},
               {"faults", array_of(result.faults, to_json_value)},
               {"replay", result.replay}};
  if (const auto& bound = result.bound_bytes) {
    json["bound_bytes"] = {{"stage", bound->stage}, {"load", bound->load}, {"empty", bound->empty}};
  }
  if (result.crashed) json["crashed"] = true;
  if (!result.earlier_tries.empty()) {
    json["earlier_tries"] = array_of(result.earlier_tries, to_json_value);
  }
  if (!result.generations.empty()) {
    json["generations"] = array_of(result.generations, to_json_value);
  }
  return json;
}

Json to_json_value(const PropertyResult& property) {
  Json json = {{"name", property.name},
               {"cases", property.cases},
               {"seed", property.seed},
               {"verdict", name_of(property.verdict)},
               {"distribution", property.distribution},
               {"counterexample", value_or_null(property.counterexample)}};
  if (!property.code.empty()) json["code"] = property.code;
  return json;
}

Json to_json_value(const MutantResult& mutant) {
  Json by = Json::array();
  for (const auto& one : mutant.caught_by) {
    Json& entry = by.emplace_back(Json{{"verdict", one.verdict}, {"reason", one.reason}});
    if (!one.scenario.empty()) entry["scenario"] = one.scenario;
    if (!one.property.empty()) entry["property"] = one.property;
  }
  return {{"name", mutant.name},
          {"defect", mutant.defect},
          {"caught", mutant.caught},
          {"property_cases", mutant.property_cases},
          {"caught_by", by}};
}

Json to_json_value(const Skipped& skipped) {
  return {{"scenario", skipped.scenario}, {"reason", skipped.reason}};
}

Json to_json_value(const ExhaustivePart& part) {
  return {{"part", part.part},       {"pairs", part.pairs},     {"passed", part.passed},
          {"refused", part.refused}, {"wrong", part.wrong},     {"elements", part.elements},
          {"objects", part.objects}, {"seconds", part.seconds}, {"first_wrong", part.first_wrong}};
}

Json to_json_value(const Exhaustive& exhaustive) {
  return {{"model", exhaustive.model},
          {"sharding", exhaustive.sharding},
          {"hsdp", exhaustive.hsdp},
          {"max_world", exhaustive.max_world},
          {"layouts", exhaustive.layouts},
          {"pairs", exhaustive.pairs},
          {"passed", exhaustive.passed()},
          {"of", exhaustive.of},
          {"parts", array_of(exhaustive.parts, to_json_value)}};
}

Json to_json_value(const Shard& shard) {
  return {{"work", shard.work}, {"number", shard.number}, {"of", shard.of}, {"whole", shard.whole}};
}

Json to_json_value(const Mark& mark) { return {{"name", mark.name}, {"count", mark.count}}; }

Json to_json_value(const CurvePoint& point) {
  return {{"runs", point.runs}, {"marks", point.marks}, {"tuples", point.tuples}};
}

Json to_json_value(const SearchFinding& finding) {
  return {{"signature", finding.signature}, {"code", finding.code},     {"reason", finding.reason},
          {"count", finding.count},         {"at_run", finding.at_run}, {"recipe", finding.recipe},
          {"file", finding.file},           {"status", finding.status}};
}

Json to_json_value(const Coverage& coverage) {
  return {{"seed", coverage.seed},
          {"runs", coverage.runs},
          {"branches", coverage.branches},
          {"inconclusive", coverage.inconclusive},
          {"marks", array_of(coverage.marks, to_json_value)},
          {"curve", array_of(coverage.curve, to_json_value)},
          {"findings", array_of(coverage.findings, to_json_value)}};
}

Verdict verdict_of(const Coverage& coverage) {
  if (has_findings(coverage)) return Verdict::kFail;
  return flaws_of(coverage).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_of(const Exhaustive& exhaustive) {
  if (is_wrong(exhaustive)) return Verdict::kFail;
  return flaws_of(exhaustive).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Json to_json_value(const MatrixRow& row) {
  return {{"mutant", row.mutant}, {"cells", row.cells}, {"caught", row.caught}};
}

Json to_json_value(const Matrix& matrix) {
  return {{"whole", matrix.whole},
          {"mutants", matrix.mutants},
          {"caught", matrix.caught()},
          {"scenarios", matrix.scenarios},
          {"left_out", matrix.left_out},
          {"codes", matrix.codes},
          {"rows", array_of(matrix.rows, to_json_value)}};
}

Verdict verdict_of(const Matrix& matrix) {
  if (has_survivor(matrix)) return Verdict::kFail;
  return flaws_of(matrix).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_of(const MutantResult& mutant) {
  return mutant.caught ? Verdict::kPass : Verdict::kFail;
}

/// Returns the worst verdict: fail, then inconclusive, then pass.
Verdict worst_of(const std::vector<Verdict>& verdicts) {
  for (const auto verdict : {Verdict::kFail, Verdict::kInconclusive, Verdict::kPass}) {
    if (std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end()) return verdict;
  }
  return Verdict::kNotRun;
}

constexpr std::array kVerdicts = {
    std::pair{Verdict::kPass, "pass"}, std::pair{Verdict::kFail, "fail"},
    std::pair{Verdict::kInconclusive, "inconclusive"}, std::pair{Verdict::kNotRun, "not_run"}};

constexpr std::array kReportLanes = {
    std::pair{ReportLane::kFiles, "files"}, std::pair{ReportLane::kGpu, "gpu"},
    std::pair{ReportLane::kMpi, "mpi"},     std::pair{ReportLane::kProgram, "program"},
    std::pair{ReportLane::kSim, "sim"},     std::pair{ReportLane::kWatch, "watch"}};

constexpr std::array<std::string_view, 5> kGenerationStates = {"kept", "pruned", "replaced",
                                                               "damaged", "unfinished"};

constexpr std::array kLifeOutcomes = {std::pair{LifeOutcome::kRan, "ran"},
                                      std::pair{LifeOutcome::kContinued, "continued"},
                                      std::pair{LifeOutcome::kFellBack, "fell_back"},
                                      std::pair{LifeOutcome::kRefused, "refused"},
                                      std::pair{LifeOutcome::kCutShort, "cut_short"},
                                      std::pair{LifeOutcome::kFailed, "failed"}};

}  // namespace

std::string name_of(Verdict verdict) {
  for (const auto& [known, name] : kVerdicts) {
    if (known == verdict) return name;
  }
  return "not_run";
}

std::optional<Verdict> verdict_named(std::string_view name) {
  for (const auto& [verdict, known] : kVerdicts) {
    if (name == known) return verdict;
  }
  return std::nullopt;
}

std::string name_of(LifeOutcome outcome) {
  for (const auto& [known, name] : kLifeOutcomes) {
    if (known == outcome) return name;
  }
  return "failed";
}

std::optional<LifeOutcome> life_outcome_named(std::string_view name) {
  for (const auto& [outcome, known] : kLifeOutcomes) {
    if (name == known) return outcome;
  }
  return std::nullopt;
}

std::span<const std::string_view> generation_states() { return kGenerationStates; }

std::string name_of(ReportLane lane) {
  for (const auto& [known, name] : kReportLanes) {
    if (known == lane) return name;
  }
  return "";
}

bool runs_programs(ReportLane lane) {
  return lane == ReportLane::kProgram || lane == ReportLane::kWatch;
}

std::optional<ReportLane> report_lane_named(std::string_view name) {
  for (const auto& [lane, known] : kReportLanes) {
    if (name == known) return lane;
  }
  return std::nullopt;
}

std::string no_lane(std::string_view name) {
  std::string names;
  for (const auto& [lane, known] : kReportLanes)
    names += (names.empty() ? "" : ", ") + std::string(known);
  return "'" + std::string(name) + "' is not a lane; the lanes are: " + names;
}

bool is_unreadable(const ScenarioResult& result) {
  return result.verdict == Verdict::kNotRun && !result.code.empty();
}

std::uint64_t runs_doubled(const Report& report) {
  return static_cast<std::uint64_t>(
      std::ranges::count(report.scenarios, true, &ScenarioResult::doubled));
}

std::uint64_t determinism_mismatches(const Report& report) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(report.scenarios, [](const ScenarioResult& result) {
        return result.doubled && (result.code == reprise::name_of(judged::kNotDeterministic) ||
                                  result.code == reprise::name_of(judged::kLanesDisagree));
      }));
}

Verdict overall(const std::vector<ScenarioResult>& scenarios) {
  std::vector<Verdict> verdicts;
  for (const auto& result : scenarios) verdicts.push_back(result.verdict);
  return worst_of(verdicts);
}

Verdict overall(const Report& report) {
  std::vector<Verdict> verdicts = {overall(report.scenarios)};
  for (const auto& property : report.properties) verdicts.push_back(property.verdict);
  for (const auto& mutant : report.mutants) verdicts.push_back(verdict_of(mutant));
  if (report.matrix) verdicts.push_back(verdict_of(*report.matrix));
  for (const auto& tried : report.exhaustive) verdicts.push_back(verdict_of(tried));
  if (report.coverage) verdicts.push_back(verdict_of(*report.coverage));
  if (determinism_mismatches(report) != 0) verdicts.push_back(Verdict::kFail);
  const bool unread = std::any_of(report.scenarios.begin(), report.scenarios.end(), is_unreadable);
  if (report.interrupted || unread) verdicts.push_back(Verdict::kInconclusive);
  return worst_of(verdicts);
}

MutantsFinding judge_mutants(const std::vector<MutantResult>& mutants) {
  std::string survivors;
  std::size_t caught = 0;
  for (const auto& mutant : mutants) {
    if (mutant.caught) ++caught;
    if (!mutant.caught) survivors += (survivors.empty() ? "" : ", ") + mutant.name;
  }
  if (survivors.empty()) return {};
  if (caught == 0) {
    return {
        std::string(reprise::name_of(judged::kValidatorVacuous)),
        "no mutant was caught, so nothing shows that the judges can fail; survivors: " + survivors};
  }
  return {std::string(reprise::name_of(judged::kMutantSurvived)),
          "not caught by any scenario or property: " + survivors};
}

std::string to_json(const Report& report) {
  Json tried = array_of(report.exhaustive, to_json_value);
  Json first_tried = tried.empty() ? Json(nullptr) : tried.front();
  if (!tried.empty()) tried.erase(0);
  const auto run =
      std::count_if(report.scenarios.begin(), report.scenarios.end(),
                    [](const auto& result) { return result.verdict != Verdict::kNotRun; });
  Json document = {
      {"schema_version", kSchemaVersion},
      {"policy", nullptr},
      {"project",
       {{"commit", report.project.commit},
        {"dirty", report.project.dirty},
        {"build", report.project.build}}},
      {"lane", name_of(report.lane)},
      {"machine",
       {{"cpu", report.machine.cpu},
        {"memory", report.machine.memory},
        {"gpus", report.machine.gpus},
        {"mpi", report.machine.mpi},
        {"nccl", report.machine.nccl},
        {"cuda", report.machine.cuda}}},
      {"started", report.started},
      {"seconds", report.seconds},
      {"mutant", report.mutant},
      {"seed", report.seed},
      {"interrupted", report.interrupted},
      {"verdict", name_of(report.verdict)},
      {"scenarios", array_of(report.scenarios, to_json_value)},
      {"lanes",
       {{"planned", report.planned},
        {"run", run},
        {"skipped", array_of(report.skipped, to_json_value)}}},
      {"properties", array_of(report.properties, to_json_value)},
      {"mutants", array_of(report.mutants, to_json_value)},
      {"matrix", report.matrix ? to_json_value(*report.matrix) : Json(nullptr)},
      {"exhaustive", std::move(first_tried)},
      {"exhaustive_more", std::move(tried)},
      {"coverage", report.coverage ? to_json_value(*report.coverage) : Json(nullptr)},
      {"determinism",
       {{"runs_doubled", runs_doubled(report)}, {"mismatches", determinism_mismatches(report)}}},
      {"not_claimed", report.not_claimed}};
  if (!report.shards.empty()) document["shards"] = array_of(report.shards, to_json_value);
  return text_of(document);
}

}  // namespace reprise::reports
