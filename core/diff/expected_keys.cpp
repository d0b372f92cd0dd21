#include "core/diff/expected_keys.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/nearest.hpp"
#include "core/base/print.hpp"
#include "core/format/json_document.hpp"
#include "core/geometry/dtype.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const ErrorPlace& place, const std::string& key, const std::string& what) {
  throw Error(Code::kUsage, "the entry '" + key + "' " + what, place);
}

DType dtype_of(const std::string& key, const Json& name, const ErrorPlace& place) {
  if (!name.is_string()) refuse(place, key, "has a dtype that is no text");
  std::string_view word = name.get_ref<const std::string&>();
  if (word.starts_with("torch.")) word.remove_prefix(6);
  if (const auto dtype = dtype_named(word)) return *dtype;
  std::vector<std::string> known;
  for (const DType each : all_dtypes()) known.emplace_back(name_of(each));
  refuse(place, key,
         "has the dtype '" + std::string(word) + "', which is not known; the nearest are " +
             join(nearest(word, std::move(known), 3), ", "));
}

TensorDiff::Side tensor_of(const std::string& key, const Json& entry, const ErrorPlace& place) {
  const auto shape = entry.find("shape");
  const auto dtype = entry.find("dtype");
  if (shape == entry.end() || dtype == entry.end() || !shape->is_array()) {
    refuse(place, key, R"(must be {"shape": [...], "dtype": "..."}, or {} for an object)");
  }
  TensorDiff::Side side{.dtype = dtype_of(key, *dtype, place), .shape = {}};
  for (const Json& extent : *shape) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kMax) {
      refuse(place, key, "has a shape that is not of sizes");
    }
    side.shape.push_back(extent.get<std::int64_t>());
  }
  return side;
}

std::string object_name(const StoredObject& object) {
  const std::string name(name_of(object));
  const auto parsed = parse_object_key(name);
  return parsed ? parsed->key : name;
}

DiffVerdict compare(const TensorDiff::Side& left, const TensorDiff::Side& right, Types types) {
  if (left.shape != right.shape) return DiffVerdict::kShape;
  return left.dtype == right.dtype || types == Types::kMayDiffer ? DiffVerdict::kSame
                                                                 : DiffVerdict::kDtype;
}

}  // namespace

std::vector<ExpectedKey> read_expected_keys(ByteSpan json, const ErrorPlace& place) {
  std::vector<ExpectedKey> expected;
  const Json document = parse_json_object(json, place, kExpectedBytesMax);
  for (const auto& [key, entry] : document.items()) {
    if (!entry.is_object()) {
      refuse(place, key, R"(must be {"shape": [...], "dtype": "..."}, or {} for an object)");
    }
    expected.push_back({key, {}});
    if (!entry.empty()) expected.back().tensor = tensor_of(key, entry, place);
  }
  return expected;
}

DiffReport match_keys(const Catalog& catalog, const std::vector<ExpectedKey>& expected, Types types,
                      const std::function<bool(std::string_view)>& wanted) {
  std::map<std::string, TensorDiff> tensors;
  std::map<std::string, ObjectDiff> objects;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string key(name_of(tensor));
    if (!wanted(key)) continue;
    TensorDiff& row = tensors[key];
    row.key = key;
    row.verdict = DiffVerdict::kOnlyLeft;
    row.left = TensorDiff::Side{tensor.dtype, all_extents(tensor)};
  }
  for (const StoredObject& object : catalog.objects) {
    const std::string key = object_name(object);
    if (!wanted(key)) continue;
    ObjectDiff& row = objects[key];
    row.key = key;
    row.verdict = DiffVerdict::kOnlyLeft;
  }
  for (const ExpectedKey& each : expected) {
    if (!wanted(each.key)) continue;
    if (!each.tensor) {
      const auto [row, is_new] = objects.try_emplace(each.key);
      row->second.key = each.key;
      row->second.verdict = is_new ? DiffVerdict::kOnlyRight : DiffVerdict::kSame;
      continue;
    }
    const auto [row, is_new] = tensors.try_emplace(each.key);
    row->second.key = each.key;
    row->second.right = each.tensor;
    row->second.verdict =
        is_new ? DiffVerdict::kOnlyRight : compare(*row->second.left, *each.tensor, types);
  }
  DiffReport report;
  for (auto& [key, row] : tensors) report.tensors.push_back(std::move(row));
  for (auto& [key, row] : objects) report.objects.push_back(std::move(row));
  return report;
}

}  // namespace reprise
