#include "driver/witness/witness.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <set>

#include "reports/document.hpp"

namespace reprise::driver {
namespace {

using reports::JsonField;

constexpr std::array<std::string_view, 3> kMoments = {"save", "loaded", "end"};
constexpr std::size_t kDigestDigits = 16;

/// Refuses a field that docs/trainers.md does not define. Whoever wrote the field expects it to be
/// checked, and nothing would check it.
void refuse_others(const JsonField& field, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : field.entries()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    value.refuse("is unknown");
  }
}

std::uint64_t hex_of(const JsonField& field, std::size_t digits_least, std::size_t digits_most) {
  const std::string text = field.text();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool good = error == std::errc() && end == text.data() + text.size() &&
                    text.size() >= digits_least && text.size() <= digits_most &&
                    text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!good) field.refuse("expected lower-case hexadecimal digits, found '" + text + "'");
  return value;
}

/// Parses a number in the format of Python's float.hex.
double hex_float(const JsonField& field) {
  const std::string text = field.text();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool hex =
      text.find("0x") != std::string::npos || text == "nan" || text == "inf" || text == "-inf";
  if (!hex || end != text.c_str() + text.size()) {
    field.refuse("expected a hexadecimal floating-point number, found '" + text + "'");
  }
  return value;
}

Dims dims_of(const JsonField& field) {
  Dims dims;
  const auto items = field.items();
  if (items.size() > kMaxNdim) field.refuse("has too many dimensions");
  for (const auto& item : items) {
    const std::int64_t size = item.integer();
    if (size < 0) item.refuse("is negative");
    dims.push_back(size);
  }
  return dims;
}

DType dtype_in(const JsonField& field) {
  const auto dtype = dtype_named(field.text());
  if (!dtype) field.refuse("is not a dtype: " + field.text());
  return *dtype;
}

StateMoment moment_in(const JsonField& field) {
  const auto at = std::find(kMoments.begin(), kMoments.end(), field.text());
  if (at == kMoments.end()) field.refuse("is not a moment of a state: " + field.text());
  return static_cast<StateMoment>(at - kMoments.begin());
}

Box box_in(const JsonField& field, const Dims* shape) {
  const Box box{dims_of(field.at("at")), dims_of(field.at("size"))};
  bool inside = box.offset.size() == box.extent.size();
  if (inside && shape != nullptr) {
    inside = shape->size() == box.ndim();
    for (std::size_t d = 0; inside && d < box.ndim(); ++d) {
      inside = box.offset[d] <= (*shape)[d] && box.extent[d] <= (*shape)[d] - box.offset[d];
    }
  }
  if (!inside) field.refuse("is not a box of the tensor");
  return box;
}

WitnessTensor tensor_in(const JsonField& field) {
  refuse_others(field, {"key", "dtype", "shape", "boxes", "holders", "blank", "per_rank"});
  WitnessTensor tensor;
  tensor.key = field.at("key").text();
  tensor.dtype = dtype_in(field.at("dtype"));
  tensor.shape = dims_of(field.at("shape"));
  if (!checked_volume(tensor.shape)) field.at("shape").refuse("has too many elements");
  for (const auto& box : field.at("boxes").items()) {
    tensor.boxes.push_back(
        {box_in(box, &tensor.shape), hex_of(box.at("digest"), kDigestDigits, kDigestDigits)});
    refuse_others(box, {"at", "size", "digest"});
    if (tensor.boxes.back().box.empty()) tensor.boxes.pop_back();
  }
  if (field.has("blank")) {
    for (const auto& box : field.at("blank").items()) {
      tensor.blank.push_back(box_in(box, &tensor.shape));
      if (tensor.blank.back().empty()) tensor.blank.pop_back();
    }
  }
  if (field.has("per_rank")) tensor.per_rank = field.at("per_rank").flag();
  if (field.has("holders")) tensor.holders = field.at("holders").integer();
  if (tensor.holders < 1) field.at("holders").refuse("is less than one");
  return tensor;
}

WitnessObject object_in(const JsonField& field) {
  refuse_others(field, {"key", "digest", "shard", "stored", "per_rank", "value"});
  WitnessObject object;
  object.key = field.at("key").text();
  if (field.has("shard")) object.shard = field.at("shard").text();
  if (field.has("stored")) object.stored = field.at("stored").flag();
  if (field.has("per_rank")) object.per_rank = field.at("per_rank").flag();
  if (field.has("value")) object.value = field.at("value").text();
  const JsonField digest = field.at("digest");
  if (!digest.is_null()) object.digest = hex_of(digest, kDigestDigits, kDigestDigits);
  return object;
}

WitnessState state_in(const JsonField& field) {
  refuse_others(field, {"what", "when", "step", "tensors", "objects"});
  WitnessState state;
  state.when = moment_in(field.at("when"));
  state.step = field.at("step").integer();
  std::set<std::pair<std::string, Box>> boxes;
  for (const auto& tensor : field.at("tensors").items()) {
    state.tensors.push_back(tensor_in(tensor));
    for (const auto& box : state.tensors.back().boxes) {
      const bool added = boxes.emplace(state.tensors.back().key, box.box).second;
      if (!added) tensor.refuse("has the box " + to_string(box.box) + " a second time");
    }
  }
  std::set<std::pair<std::string, std::string>> names;
  for (const auto& object : field.at("objects").items()) {
    state.objects.push_back(object_in(object));
    const auto& name = state.objects.back();
    if (!names.emplace(name.key, name.shard).second) object.refuse("occurs twice");
  }
  return state;
}

WitnessStep step_in(const JsonField& field) {
  refuse_others(field, {"what", "step", "samples", "loss", "lr", "scale", "norm"});
  WitnessStep step;
  step.step = field.at("step").integer();
  for (const char* metric : kWitnessMetrics) {
    if (field.has(metric) && !field.at(metric).is_null()) {
      step.metrics[metric] = hex_float(field.at(metric));
    }
  }
  if (!field.has("samples")) return step;
  for (const auto& sample : field.at("samples").items()) step.samples.push_back(sample.integer());
  return step;
}

void add_start(const JsonField& field, RankWitness& witness) {
  refuse_others(field,
                {"what", "life", "rank", "world", "layout", "seed", "versions", "stand_ins"});
  witness.life = field.at("life").integer();
  witness.rank = field.at("rank").integer();
  witness.world = field.at("world").integer();
  for (const auto& [axis, size] : field.at("layout").entries()) {
    witness.layout[axis] = size.integer();
  }
  if (field.has("seed") && !field.at("seed").is_null()) witness.seed = field.at("seed").integer();
  if (field.has("versions")) {
    for (const auto& [package, version] : field.at("versions").entries()) {
      witness.versions[package] = version.text();
    }
  }
  if (field.has("stand_ins")) witness.stand_ins = field.at("stand_ins").texts();
}

void add_phase(const JsonField& field, RankWitness& witness) {
  refuse_others(field, {"what", "name", "edge", "step"});
  const std::string edge = field.at("edge").text();
  if (edge != "begin" && edge != "end") field.at("edge").refuse("is neither begin nor end");
  witness.phases.push_back({field.at("name").text(), edge == "begin", std::nullopt});
  if (field.has("step") && !field.at("step").is_null()) {
    witness.phases.back().step = field.at("step").integer();
  }
}

void add_line(const JsonField& field, std::size_t line, RankWitness& witness) {
  const std::string what = field.at("what").text();
  if ((line == 1) != (what == "start"))
    field.refuse("only the first line is, and must be, a start");
  if (witness.done && what != "phase") field.refuse("has entries after the end");
  if (what == "start") {
    add_start(field, witness);
  } else if (what == "step") {
    witness.steps.push_back(step_in(field));
    witness.steps.back().states_before = witness.states.size();
  } else if (what == "phase") {
    add_phase(field, witness);
  } else if (what == "state") {
    witness.states.push_back(state_in(field));
  } else if (what == "exit") {
    refuse_others(field, {"what", "code", "why"});
    witness.exit = field.at("code").integer();
    witness.exit_why = field.at("why").text();
  } else if (what == "done") {
    refuse_others(field, {"what"});
    witness.done = true;
  } else {
    field.refuse("has an unknown entry: '" + what + "'");
  }
}

/// Calls `take` for each complete line; returns true if the text ends with an incomplete line.
template <class Take>
bool for_each_line(const std::string& text, const std::string& file, const Take& take) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) return true;
    const std::string place = file + ":" + std::to_string(++number);
    const auto document = reports::parse_document(text.substr(at, end - at), place);
    take(JsonField(document, place, ""), number);
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string_view name_of(StateMoment moment) {
  return kMoments.at(static_cast<std::size_t>(moment));
}

RankWitness parse_witness(const std::string& text, const std::string& file) {
  RankWitness witness;
  witness.file = file;
  witness.torn = for_each_line(text, file, [&](const JsonField& field, std::size_t line) {
    add_line(field, line, witness);
  });
  return witness;
}

std::vector<WitnessValues> parse_values(const std::string& text, const std::string& file) {
  std::vector<WitnessValues> all;
  for_each_line(text, file, [&](const JsonField& field, std::size_t) {
    WitnessValues values;
    values.when = moment_in(field.at("when"));
    values.step = field.at("step").integer();
    values.key = field.at("key").text();
    values.dtype = dtype_in(field.at("dtype"));
    values.box = box_in(field, nullptr);
    for (const auto& word : field.at("bits").items()) values.words.push_back(hex_of(word, 1, 16));
    const std::size_t each = size_of(values.dtype) > 8 ? 2 : 1;
    if (values.words.size() != static_cast<std::size_t>(values.box.elements()) * each) {
      field.refuse("has a different number of elements than its box");
    }
    all.push_back(std::move(values));
  });
  return all;
}

}  // namespace reprise::driver
