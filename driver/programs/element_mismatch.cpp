#include "driver/programs/element_mismatch.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/geometry/compare.hpp"
#include "core/geometry/dtype.hpp"
#include "driver/programs/program_life.hpp"
#include "driver/witness/stored_root.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

/// All elements of a tensor at one moment, and the rank that reported each of them.
struct WholeValues {
  DType dtype = DType::kFloat32;
  Dims shape;
  Bytes elements;
  std::vector<std::int64_t> ranks;  ///< rank that reported each element; -1 if none did
};

std::vector<WitnessValues> all_values(const std::string& work, std::size_t life) {
  std::vector<WitnessValues> all;
  for (std::size_t rank = 0;; ++rank) {
    if (!fs::exists(witness_file(work, life, rank, ".jsonl"))) break;
    const std::string file = witness_file(work, life, rank, "-values.jsonl");
    try {
      for (auto& values : parse_values(text_of(file), file)) {
        values.rank = static_cast<std::int64_t>(rank);
        all.push_back(std::move(values));
      }
    } catch (const reports::ReadError&) {
      continue;  // the process was killed while it wrote this file
    }
  }
  return all;
}

std::int64_t index_in(const Dims& shape, const Dims& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
  return index;
}

/// Calls `visit` for each element of the box, in the box's order, with the element's index in the
/// whole tensor.
template <class Visit>
void for_each_index(const Dims& shape, const Box& box, const Visit& visit) {
  Dims at = box.offset;
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    visit(index_in(shape, at), i);
    for (std::size_t d = box.ndim(); d-- > 0;) {
      if (++at[d] < box.offset[d] + box.extent[d]) break;
      at[d] = box.offset[d];
    }
  }
}

void put_values(const WitnessValues& values, WholeValues& whole) {
  const std::size_t width = size_of(whole.dtype);
  const std::size_t each = width > 8 ? 2 : 1;
  for_each_index(whole.shape, values.box, [&](std::int64_t index, std::int64_t i) {
    const auto element = static_cast<std::size_t>(index);
    if (element >= whole.ranks.size()) return;
    std::memcpy(whole.elements.data() + element * width,
                values.words.data() + static_cast<std::size_t>(i) * each, width);
    if (whole.ranks[element] < 0) whole.ranks[element] = values.rank;
  });
}

std::optional<WholeValues> whole_values(const std::string& work, std::size_t life,
                                        const std::string& key, StateMoment when,
                                        std::int64_t step) {
  WholeValues whole;
  bool any = false;
  const auto all = all_values(work, life);
  const auto fits = [&](const WitnessValues& values) {
    return values.key == key && values.when == when && values.step == step;
  };
  for (const auto& values : all) {
    if (!fits(values)) continue;
    if (!any) whole.shape = Dims::filled(values.box.ndim(), 0);
    any = true;
    whole.dtype = values.dtype;
    for (std::size_t d = 0; d < whole.shape.size(); ++d) {
      whole.shape[d] = std::max(whole.shape[d], values.box.offset[d] + values.box.extent[d]);
    }
  }
  if (!any) return std::nullopt;
  const auto count = static_cast<std::size_t>(volume(whole.shape));
  whole.elements.resize(count * size_of(whole.dtype));
  whole.ranks.assign(count, -1);
  for (const auto& values : all) {
    if (fits(values)) put_values(values, whole);
  }
  return whole;
}

std::string value_text(DType dtype, const std::byte* element) {
  const Scalar value = scalar_at(dtype, element);
  std::ostringstream text;
  text.precision(9);
  text << value.first;
  if (value.second != 0) text << (value.second < 0 ? "" : "+") << value.second << "i";
  return text.str();
}

std::vector<std::int64_t> place_of(const Dims& shape, std::size_t element) {
  std::vector<std::int64_t> at(shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = rest % shape[d];
    rest /= shape[d];
  }
  return at;
}

std::string place_text(const Dims& shape, std::size_t element) {
  std::string text;
  for (const auto at : place_of(shape, element)) {
    text += (text.empty() ? "" : ", ") + std::to_string(at);
  }
  return "[" + text + "]";
}

/// Searches the saved tensor for a sequence of wrong values: the value at `wrong`, and up to three
/// wrong values after it. Returns the index at which the sequence occurs in the saved tensor;
/// nothing if it does not occur, or occurs more than once.
std::optional<std::size_t> source_of(const WholeValues& saved, const Bytes& loaded,
                                     std::size_t wrong) {
  const std::size_t width = size_of(saved.dtype);
  const auto same = [&](std::size_t a, std::size_t b) {
    return std::memcmp(saved.elements.data() + a * width, loaded.data() + b * width, width) == 0;
  };
  const std::size_t count = saved.ranks.size();
  std::size_t length = 1;
  while (wrong + length < count && length < 4 && !same(wrong + length, wrong + length)) ++length;
  std::optional<std::size_t> found;
  for (std::size_t from = 0; from + length <= count; ++from) {
    bool equal = true;
    for (std::size_t i = 0; equal && i < length; ++i) equal = same(from + i, wrong + i);
    if (!equal) continue;
    if (found) return std::nullopt;  // the values occur more than once
    found = from;
  }
  return found;
}

ElementMismatch describe(const std::string& key, const WholeValues& saved, const Bytes& loaded,
                         const Comparison& compared) {
  const std::size_t width = size_of(saved.dtype);
  const auto first = static_cast<std::size_t>(*compared.first);
  ElementMismatch found;
  found.first.key = key;
  found.first.index = place_of(saved.shape, first);
  found.first.rank = static_cast<std::int32_t>(std::max<std::int64_t>(saved.ranks[first], 0));
  found.first.saved = value_text(saved.dtype, saved.elements.data() + first * width);
  found.first.loaded = value_text(saved.dtype, loaded.data() + first * width);
  found.code = judged::kBitMismatch;
  found.elements = compared.bit_mismatches;
  found.max_delta = compared.max_delta;
  if (const auto source = source_of(saved, loaded, first)) {
    const std::int64_t owner = saved.ranks[*source];
    const FindingCode code =
        owner == saved.ranks[first] ? judged::kShiftedBytes : judged::kWrongOwner;
    if (may_state(SourceLine::here(), code)) found.code = code;
    found.first.comes_from = "element " + place_text(saved.shape, *source) +
                             " of the same tensor, " + "which rank " + std::to_string(owner) +
                             " held";
  }
  return found;
}

/// Returns the stored or loaded elements that the finding calls wrong.
std::optional<Bytes> wrong_elements(const std::string& work, const Finding& finding) {
  if (finding.phase == "load") {
    const auto loaded = whole_values(work, finding.life.value_or(0), finding.key,
                                     StateMoment::kLoaded, finding.step.value_or(0));
    if (!loaded) return std::nullopt;
    return loaded->elements;
  }
  const std::string root = checkpoints_in(work);
  for (const auto& stored : read_root(root)) {
    if (stored.step && stored.step != finding.step) continue;
    return stored_elements(root, stored, finding.key);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ElementMismatch> first_mismatch(const std::string& work, std::size_t lives,
                                              const Finding& finding) {
  if (!finding.other_elements || !finding.step) return std::nullopt;
  std::optional<WholeValues> saved;
  for (std::size_t life = 0; life < lives && life <= finding.life.value_or(0); ++life) {
    auto told = whole_values(work, life, finding.key, StateMoment::kSave, *finding.step);
    if (told) saved = std::move(told);
  }
  auto wrong = wrong_elements(work, finding);
  if (!saved || !wrong || wrong->size() != saved->elements.size()) return std::nullopt;
  const std::size_t width = size_of(saved->dtype);
  for (std::size_t i = 0; i < saved->ranks.size(); ++i) {
    if (saved->ranks[i] >= 0) continue;  // no rank told it, so it can't be compared
    std::memcpy(wrong->data() + i * width, saved->elements.data() + i * width, width);
  }
  const Comparison compared = compare_elements(saved->dtype, saved->elements.data(), wrong->data(),
                                               static_cast<std::int64_t>(saved->ranks.size()));
  if (compared.same()) return std::nullopt;
  return describe(finding.key, *saved, *wrong, compared);
}

}  // namespace reprise::driver
