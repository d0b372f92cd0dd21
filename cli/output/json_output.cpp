#include "cli/output/json_output.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/output/describe.hpp"
#include "cli/output/diff_text.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/release_text.hpp"
#include "cli/output/value_json.hpp"
#include "core/base/hash.hpp"
#include "core/base/sha256.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/state/state_dict.hpp"
#include "core/summary/checkpoint_summary.hpp"
#include "core/verify/module_values.hpp"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

Json list_of(const Dims& dims) {
  Json list = Json::array();
  for (const auto extent : dims) list.push_back(extent);
  return list;
}

Json number_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  return value;
}

Json to_json(const Finding& finding) {
  Json json = {{"severity", name_of(finding.severity)},
               {"code", name_of(finding.code)},
               {"message", finding.message},
               {"key", finding.key},
               {"file", finding.file},
               {"offset", nullptr}};
  if (finding.offset) json["offset"] = *finding.offset;
  return json;
}

Json to_json(const Error& error) {
  const ErrorPlace& place = error.place();
  return {{"code", name_of(error.code())},
          {"message", error.message()},
          {"key", place.key},
          {"file", place.file},
          {"offset", place.offset ? Json(*place.offset) : Json(nullptr)},
          {"rank", place.rank ? Json(place.rank->value) : Json(nullptr)}};
}

Json to_json(const Findings& findings) {
  Json list = Json::array();
  for (const auto& finding : findings) list.push_back(to_json(finding));
  return list;
}

/// Numbers are null where no number of the tensor is finite.
Json to_json(const ElementStats& stats) {
  const auto number = [&stats](double value) {
    return stats.finite() == 0 ? Json(nullptr) : Json(value);
  };
  return {{"numbers", stats.numbers},      {"nan", stats.nan},
          {"infinite", stats.infinite},    {"zeros", stats.zero},
          {"denormals", stats.denormal},   {"min", number(stats.least)},
          {"max", number(stats.greatest)}, {"mean", number(stats.mean())},
          {"norm", number(stats.norm())}};
}

Json to_json(const HealthReport& health) {
  return {{"healthy", health.healthy()},
          {"tensors", health.tensors},
          {"numbers", health.numbers},
          {"buffers_not_judged", health.buckets},
          {"compared", health.compared ? Json(*health.compared) : Json(nullptr)},
          {"findings", to_json(health.findings)}};
}

Json to_json(const VerifyReport& report) {
  return {{"whole", report.whole()},
          {"health", report.health ? to_json(*report.health) : Json(nullptr)},
          {"verdict", name_of(report.verdict())},
          {"where", report.location ? Json(report.where) : Json(nullptr)},
          {"payload_read", report.payload_read},
          {"manifest", report.manifest},
          {"sealed", report.sealed},
          {"no_checksums", report.no_checksums},
          {"findings", to_json(report.findings)},
          {"errors", count_of(report.findings, Severity::kError)},
          {"warnings", count_of(report.findings, Severity::kWarning)},
          {"tensors", report.tensors},
          {"elements", report.elements},
          {"objects", report.objects},
          {"opaque", report.opaque},
          {"files", report.files},
          {"bytes", report.bytes},
          {"records_checked", report.records_checked}};
}

Json to_json(const std::optional<TensorDiff::Side>& side) {
  if (!side) return nullptr;
  return {{"dtype", name_of(side->dtype)}, {"shape", side->shape}};
}

/// Blocks are [begin, end] on B's side and where they begin on A's, along a dimension.
Json to_json(const TensorSource& source, const std::string& key) {
  Json json = {{"of", source.of_left ? "A" : "B"},
               {"key", source.key},
               {"alike", source.alike},
               {"sentence", sentence_of(source, key)},
               {"transposed", source.transposed},
               {"relation", nullptr},
               {"order", nullptr}};
  if (source.relation) {
    json["relation"] = {{"kind", name_of(source.relation->kind)},
                        {"dtype", name_of(source.relation->dtype)},
                        {"factor", source.relation->factor}};
  }
  if (source.order) {
    Json blocks = Json::array();
    for (const LineBlock& one : source.order->blocks) {
      blocks.push_back({{"begin", one.right.begin}, {"end", one.right.end}, {"from", one.left}});
    }
    json["order"] = {{"dimension", source.dimension},      {"lines", source.lines},
                     {"found", source.order->found()},     {"moved", source.order->moved()},
                     {"permuted", source.order->permuted}, {"blocks", blocks}};
  }
  return json;
}

Json to_json(const TensorDiff& tensor) {
  Json first = nullptr;
  if (tensor.first) {
    first = {{"index", list_of(*tensor.first)},
             {"left", tensor.first_left},
             {"right", tensor.first_right}};
  }
  return {{"key", tensor.key},
          {"verdict", name_of(tensor.verdict)},
          {"left", to_json(tensor.left)},
          {"right", to_json(tensor.right)},
          {"elements", tensor.comparison.elements},
          {"bit_mismatches", tensor.comparison.bit_mismatches},
          {"max_delta", number_of(tensor.comparison.max_delta)},
          {"share_that_differs", share_that_differs(tensor.comparison)},
          {"relative_change", tensor.change ? number_of(tensor.change->relative()) : Json(nullptr)},
          {"first_difference", first},
          {"compared_as", tensor.compared_as ? Json(name_of(*tensor.compared_as)) : Json(nullptr)},
          {"source", tensor.source ? to_json(*tensor.source, tensor.key) : Json(nullptr)},
          {"reason", tensor.reason}};
}

Json to_json(const ObjectDiff& object) {
  Json differences = Json::array();
  for (const auto& difference : object.differences) {
    differences.push_back(
        {{"path", difference.path}, {"left", difference.left}, {"right", difference.right}});
  }
  return {{"key", object.key},
          {"verdict", name_of(object.verdict)},
          {"opaque", object.opaque},
          {"differences", differences},
          {"reason", object.reason}};
}

Json file_of(const Catalog& catalog, FileIndex file) {
  return file == kNoFile ? Json(nullptr) : Json(catalog.files[file]);
}

Json to_json(const Catalog& catalog, const StoredTensor& tensor) {
  Json chunks = Json::array();
  for (const auto& chunk : tensor.chunks) {
    chunks.push_back({{"offset", unfolded_offset(chunk.box.offset, tensor.folded)},
                      {"extent", unfolded(chunk.box.extent, tensor.folded)},
                      {"file", file_of(catalog, chunk.file)},
                      {"file_offset", chunk.range.offset},
                      {"file_bytes", chunk.range.size}});
  }
  return {{"key", tensor.key},
          {"dtype", name_of(tensor.dtype)},
          {"shape", all_extents(tensor)},
          {"elements", elements_of(tensor)},
          {"bytes", bytes_of(tensor)},
          {"cut", describe_cut(tensor)},
          {"chunks", chunks}};
}

Json to_json(const Catalog& catalog, const StoredObject& object) {
  Json json = {{"key", object.key},
               {"file", file_of(catalog, object.file)},
               {"file_offset", object.range.offset},
               {"file_bytes", object.range.size}};
  if (const auto parsed = parse_object_key(object.key)) {
    json["object"] = parsed->key;
    json["coordinate"] = list_of(parsed->coordinate);
    json["grid"] = list_of(parsed->grid);
  }
  return json;
}

/// Sets `json["value"]`, or the reason why there is no value.
void add_value(const BytesItem& item, Json& json) {
  if (item.value) {
    json["value"] = value_json(*item.value);
  } else {
    json["opaque"] = item.opaque_because;
  }
}

Json grid_json(const std::optional<Dims>& grid, std::span<const std::string_view> axes) {
  if (!grid || grid->size() != axes.size()) return nullptr;
  Json json = Json::object();
  std::size_t d = 0;
  for (const std::string_view axis : axes) json[std::string(axis)] = (*grid)[d++];
  return json;
}

Json names_of(const std::set<ModulePart>& parts) {
  Json names = Json::array();
  for (const ModulePart part : parts) names.push_back(name_of(part));
  return names;
}

Json to_json(std::int64_t place, const StoredOptimizer& optimizer) {
  Json groups = Json::array();
  for (const auto& [index, group] : optimizer.groups) {
    groups.push_back(
        {{"dp_group_idx", index}, {"buckets", group.buckets}, {"metadata", names_of(group.parts)}});
  }
  return {
      {"suffix", chain_suffix(place)},
      {"metadata", names_of(optimizer.parts)},
      {"metadata_in_common_state", names_of(optimizer.common)},
      {"dp_groups", groups},
      {"sharding_type", optimizer.sharding_type ? Json(*optimizer.sharding_type) : Json(nullptr)}};
}

Json to_json(const StoredModule& module) {
  Json chain = Json::array();
  for (const auto& [place, optimizer] : module.chain) chain.push_back(to_json(place, optimizer));
  Json claim = nullptr;
  if (module.claim) {
    claim = {{"text", module.claim->layout}, {"sharding_type", nullptr}};
    for (const auto& [argument, size] : module.claim->sizes) claim[argument] = size;
    if (module.claim->sharding_type) claim["sharding_type"] = *module.claim->sharding_type;
  }
  return {{"name", module.name},
          {"keys", name_of(module.form())},
          {"tensors", module.tensors},
          {"elements", module.elements},
          {"bytes", module.bytes},
          {"objects", module.objects},
          {"optimizers", chain},
          {"chain_length", module.chain_length()},
          {"rng_grid", grid_json(module.rng_grid, kRngGridAxes)},
          {"expert_rng_grid", grid_json(module.expert_rng_grid, kExpertRngGridAxes)},
          {"layout", claim}};
}

/// Adds the entry "modules". If the checkpoint has no modules, the entry is left out.
void add_modules(Checkpoint& checkpoint, const std::optional<Checkpoint::Common>& common,
                 Json& json) {
  const bool readable = common && common->item.value;
  const auto modules = inspected_modules(checkpoint, readable ? &*common->item.value : nullptr);
  if (modules.empty()) return;
  json["modules"] = Json::array();
  for (const auto& module : modules.modules) json["modules"].push_back(to_json(module));
  json["own_optimizers"] = modules.own_optimizers;
}

Findings errors_in(Findings findings) {
  std::erase_if(findings, [](const Finding& f) { return f.severity != Severity::kError; });
  return findings;
}

/// Calls `add`. If `add` throws an Error, records the error in `json` and in `unread`.
template <class Add>
void add_or_tell(const ErrorPlace& place, Json& json, Findings& unread, const Add& add) {
  try {
    add();
  } catch (const Error& error) {
    const Error placed = error.within(place);
    json["error"] = to_json(placed);
    unread.push_back(finding_from(placed));
  }
}

void add_content(Checkpoint& checkpoint, const StoredObject& object, const InspectContent& content,
                 ChecksumTally& checksums, Json& json) {
  if (content.wanted.sha256) {
    checksums.add(*checkpoint.slice(object.key, object.file, object.range), object.key);
    json["sha256"] = hex(sha256_of(checkpoint.object_bytes(object)));
  }
  if (content.values) add_value(read_bytes_item(checkpoint.object_bytes(object)), json);
}

ErrorPlace place_of(const Checkpoint& checkpoint, const StoredObject& object) {
  if (object.file == kNoFile) return {.key = object.key};
  return {
      .key = object.key, .file = checkpoint.display(object.file), .offset = object.range.offset};
}

Json to_json(const std::optional<Version>& version) {
  return version ? Json(to_string(*version)) : Json(nullptr);
}

Json to_json(const std::vector<ToldReleases>& told) {
  Json all = Json::array();
  for (const ToldReleases& one : told) {
    all.push_back({{"program", one.program},
                   {"who", one.who},
                   {"first", to_json(one.first)},
                   {"last", to_json(one.last)},
                   {"none", one.none},
                   {"because", one.because}});
  }
  return all;
}

}  // namespace

std::string error_json(const Error& error) { return json_text({{"error", to_json(error)}}); }

namespace {

Json to_json(const VerifiedRoot& root) {
  Json beside = Json::array();
  for (const auto& each : root.beside)
    beside.push_back({{"path", each.path}, {"what", each.what}, {"unread", each.unread}});
  Json resume = Json::array();
  for (const auto& each : root.resume) {
    resume.push_back({{"program", each.program},
                      {"path", each.path.empty() ? Json(nullptr) : Json(each.path)},
                      {"why", each.why},
                      {"broken", each.broken},
                      {"good", each.good ? Json(*each.good) : Json(nullptr)}});
  }
  return {{"path", root.root},
          {"checkpoints", root.checkpoints},
          {"good", root.good},
          {"beside", std::move(beside)},
          {"resume", std::move(resume)}};
}

}  // namespace

std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints,
                        const std::vector<std::pair<std::string, Error>>& unread,
                        const std::vector<VerifiedRoot>& roots) {
  Json list = Json::array();
  for (const auto& [path, report] : checkpoints) {
    Json json = to_json(report);
    json["path"] = path;
    list.push_back(std::move(json));
  }
  Json not_read = Json::array();
  for (const auto& [path, error] : unread) {
    not_read.push_back({{"path", path}, {"error", to_json(error)}});
  }
  Json document{{"checkpoints", list}, {"unread", not_read}};
  for (const VerifiedRoot& root : roots) document["roots"].push_back(to_json(root));
  return json_text(std::move(document));
}

namespace {

/// Returns, for example, {"tensors": {"same": 4, "different": 2}, "files": {"only in A": 1}}.
Json to_json(const DiffCounts& counts) {
  Json json = Json::object();
  for (const auto& [verdict, by_subject] : counts.rows) {
    for (std::size_t s = 0; s < kDiffSubjects; ++s) {
      const std::string subject(name_of(static_cast<DiffSubject>(s)));
      if (by_subject[s] != 0) json[subject][std::string(name_of(verdict))] = by_subject[s];
    }
  }
  return json;
}

/// Adds "rename_hint", the first substitution for A's keys or null, and "rename_rules", which has
/// all of them and says whose keys they change.
void add_hint(const DiffReport& report, Json& json) {
  const auto hint = rename_hint(report);
  json["rename_hint"] = hint && hint->of_left ? Json(hint->substitutions.front()) : Json(nullptr);
  json["rename_rules"] = nullptr;
  if (hint) {
    json["rename_rules"] = {{"of", hint->of_left ? "A" : "B"}, {"rules", hint->substitutions}};
  }
}

/// Returns the options that were given: a list of values for each, and true for a flag.
Json options_of(const DiffRequest& request) {
  Json options = Json::object();
  for (const auto& [name, values] : request.given) {
    options[name] = values.empty() ? Json(true) : Json(values);
  }
  return options;
}

}  // namespace

std::string diff_json(const DiffRequest& request, const DiffReport& report) {
  const DiffOutcome outcome = report.outcome(request.layout_bound);
  Json tensors = Json::array();
  for (const auto& tensor : report.tensors) tensors.push_back(to_json(tensor));
  Json objects = Json::array();
  for (const auto& object : report.objects) objects.push_back(to_json(object));
  Json files = Json::array();
  for (const auto& file : report.files) files.push_back(to_json(file));
  Json json = {{"left", request.left},
               {"right", request.right},
               {"options", options_of(request)},
               {"same", outcome == DiffOutcome::kSame},
               {"outcome", name_of(outcome)},
               {"layout_bound_accepted", request.layout_bound == LayoutBound::kAccepted},
               {"checksums_checked", report.checksums},
               {"tensors", tensors},
               {"objects", objects},
               {"files_beside_payload", files},
               {"damage", to_json(report.damage)},
               {"unread", to_json(report.unread)},
               {"summary", to_json(counts_of(report))},
               {"notes", to_json(report.notes)},
               {"elements", report.elements},
               {"tensors_compared", report.tensors_compared},
               {"objects_compared", report.objects_compared},
               {"objects_opaque", report.objects_opaque},
               {"files_compared", report.files_compared},
               {"different", report.different()},
               {"not_comparable", report.not_comparable()},
               {"not_known", report.not_known()},
               {"ignored_keys", report.ignored_keys},
               {"ignored_differences", report.ignored_differences}};
  add_hint(report, json);
  return json_text(std::move(json));
}

std::string export_json(const ExportTold& told, const ExportReport& report) {
  Json lost = Json::array();
  for (const auto& one : report.lost) {
    lost.push_back({{"key", one.key}, {"elements", one.elements}, {"of", one.of}});
  }
  Json converted = Json::array();
  for (const auto& one : report.converted) {
    converted.push_back({{"key", one.key}, {"from", name_of(one.from)}, {"to", name_of(one.to)}});
  }
  Json values = Json::object();
  for (const auto& [name, value] : told.values) values[name] = value;
  return json_text({{"source", told.paths.first},
                    {"target", told.paths.second},
                    {"files", report.files},
                    {"tensors", report.tensors},
                    {"elements", report.elements},
                    {"bytes", report.bytes},
                    {"proved", report.proved},
                    {"lost", lost},
                    {"converted", converted},
                    {"left_out", told.left_out},
                    {"values", values},
                    {"contradicted", told.contradicted},
                    {"unsaid", told.unsaid},
                    {"notes", to_json(told.notes)}});
}

std::string reshard_json(const ReshardTold& told, const ReshardReport& report) {
  std::vector<std::string> releases;
  for (const Release release : told.releases) releases.push_back(to_string(release));
  Json document = {{"source", told.source},
                   {"target", told.target},
                   {"for", releases},
                   {"changes", told.changes},
                   {"tensors", report.tensors},
                   {"elements", report.elements},
                   {"objects", report.objects},
                   {"chunks_before", report.chunks_before},
                   {"chunks_after", report.chunks_after},
                   {"files", report.files},
                   {"bytes", report.bytes},
                   {"ranks", report.ranks},
                   {"of_first", report.of_first},
                   {"dropped", report.dropped},
                   {"carried", report.carried},
                   {"left_out", report.left_out},
                   {"notes", to_json(report.notes)}};
  if (const auto& change = told.optimizer) {
    document["optimizer"] = {{"from", change->from},
                             {"to", change->to},
                             {"tensors", change->tensors},
                             {"without_state", change->without_state}};
  }
  if (const auto& fit = told.fit) {
    document["for_layout"] = {
        {"layout", fit->layout},
        {"amplification_before", fit->before ? Json(*fit->before) : Json(nullptr)},
        {"amplification_after", fit->after},
        {"notes", fit->notes}};
  }
  return json_text(document);
}

namespace {

/// Returns a number as JSON has it, and a tuple as a list: for those who read, not for those who
/// compare.
Json plain_json(const Value& value) {
  if (const auto* number = value.as<double>()) return number_of(*number);
  const auto* tuple = value.as<Tuple>();
  const List* list = tuple != nullptr ? &tuple->items : value.as<List>();
  if (list == nullptr) return value_json(value);
  Json items = Json::array();
  for (const Value& item : *list) items.push_back(plain_json(item));
  return items;
}

Json optional_json(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json to_json(const OptimizerSummary& optimizer, const std::string& argument) {
  Json groups = Json::array();
  for (const ParamGroups& group : optimizer.groups) {
    Json settings = {{"count", group.count}};
    for (const auto& [name, value] : group.settings) settings[name] = plain_json(value);
    groups.push_back(std::move(settings));
  }
  return {{"kind", optimizer.kind.empty() ? Json(nullptr) : Json(optimizer.kind)},
          {"argument", argument.empty() ? Json(nullptr) : Json(argument)},
          {"slots", optimizer.slots},
          {"param_groups", std::move(groups)}};
}

Json to_json(const CheckpointSummary& summary) {
  const StoredIteration& iteration = summary.iteration;
  Json layout = Json::object();
  for (const auto& [name, size] : summary.layout) layout[name] = size;
  Json amounts = Json::array();
  for (const Amount& amount : summary.amounts) {
    amounts.push_back({{"use", name_of(amount.use)},
                       {"dtype", name_of(amount.dtype)},
                       {"tensors", amount.tensors},
                       {"elements", amount.elements},
                       {"bytes", amount.bytes}});
  }
  Json values = Json::object();
  for (const auto& [key, value] : summary.values) values[key] = plain_json(value);
  return {
      {"iteration",
       {{"of_name", optional_json(iteration.of_name)},
        {"of_state", optional_json(iteration.of_state)},
        {"state_key", iteration.state_key.empty() ? Json(nullptr) : Json(iteration.state_key)},
        {"agree",
         iteration.of_name && iteration.of_state ? Json(iteration.agree()) : Json(nullptr)}}},
      {"layout", std::move(layout)},
      {"random_states", summary.random_grid.empty() ? Json(nullptr) : Json(summary.random_grid)},
      {"writers", summary.writers == 0 ? Json(nullptr) : Json(summary.writers)},
      {"parameters", summary.parameters()},
      {"amounts", std::move(amounts)},
      {"optimizer", to_json(summary.optimizer, summary.optimizer_argument)},
      {"values", std::move(values)},
      {"values_not_read", summary.not_read}};
}

}  // namespace

std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, TensorContents& contents,
                         Findings& unread) {
  const Catalog& catalog = checkpoint.catalog();
  const ContentsWanted& wanted = content.wanted;
  auto read = contents.tensors.begin();
  Json tensors = Json::array();
  for (const auto& tensor : catalog.tensors) {
    if (!filter.wants(tensor.key)) continue;
    tensors.push_back(to_json(catalog, tensor));
    if (!wanted.any()) continue;
    if (wanted.digest) tensors.back()["digest"] = hex(read->digest);
    if (wanted.sha256) tensors.back()["sha256"] = hex(read->sha256);
    if (wanted.stats) tensors.back()["stats"] = to_json(read->stats);
    ++read;
  }
  ChecksumTally checksums;
  Json objects = Json::array();
  for (const auto& object : catalog.objects) {
    if (!filter.wants(object.key)) continue;
    objects.push_back(to_json(catalog, object));
    Json& json = objects.back();
    add_or_tell(place_of(checkpoint, object), json, unread,
                [&] { add_content(checkpoint, object, content, checksums, json); });
  }
  const Location& location = checkpoint.location();
  std::optional<Checkpoint::Common> common;
  Json state = Json::object();
  add_or_tell({}, state, unread, [&] {
    common = checkpoint.common();
    if (common && content.values) add_value(common->item, state);
  });
  Json json = {{"directory", checkpoint.store().display(location.directory)},
               {"step", location.step ? Json(location.step->value) : Json(nullptr)},
               {"kind", describe_kind(checkpoint)},
               {"findings", to_json(checkpoint.metadata().findings)},
               {"saved_as", checkpoint.metadata().checkpoint_id},
               {"version", checkpoint.metadata().version},
               {"common_state", common ? Json(common->source) : Json(nullptr)},
               {"common_state_lost", checkpoint.lost_common()},
               {"files", catalog.files},
               {"tensors", tensors},
               {"objects", objects}};
  const bool readable = common && common->item.value;
  json["summary"] = to_json(summary_of(checkpoint, readable ? &*common->item.value : nullptr));
  const ReleasesOf releases = releases_of(checkpoint);
  json["written_by"] = to_json(releases.writers);
  json["readable_by"] = to_json(releases.readers);
  json["reshard_for"] = Json::array();
  for (const Release release : releases.older) json["reshard_for"].push_back(to_string(release));
  json["reshard_optimizer"] = releases.flattened ? Json("fully_reshardable") : Json(nullptr);
  add_modules(checkpoint, common, json);
  if (wanted.any()) {
    for (Finding& finding : checksums.findings()) contents.damage.push_back(std::move(finding));
    json["damage"] = to_json(errors_in(contents.damage));
  }
  if (!state.empty()) json["common"] = std::move(state);
  return json_text(json);
}

}  // namespace reprise::cli
