#include "properties/origin.hpp"

#include <algorithm>
#include <vector>

namespace reprise {
namespace {

constexpr std::byte kPoison{0xBD};

struct Place {
  const GlobalTensor* tensor;
  Dims index;
};

bool filled_with(ByteSpan run, std::byte value) {
  return std::all_of(run.begin(), run.end(), [value](std::byte byte) { return byte == value; });
}

std::vector<Place> places_of(const GlobalState& state, DType dtype, ByteSpan run) {
  std::vector<Place> places;
  const std::size_t width = size_of(dtype);
  for (const auto& tensor : state.tensors) {
    if (tensor.dtype != dtype) continue;
    const Bytes& data = tensor.data;
    for (std::size_t at = 0; at + run.size() <= data.size(); at += width) {
      if (!std::equal(run.begin(), run.end(), data.begin() + static_cast<std::ptrdiff_t>(at))) {
        continue;
      }
      places.push_back({&tensor, index_at(static_cast<std::int64_t>(at / width), tensor.shape)});
    }
  }
  return places;
}

std::string print(const Place& place) {
  std::string text = place.tensor->key + to_string(place.index);
  const Box element{place.index, Dims::filled(place.index.size(), 1)};
  for (const auto& holder : place.tensor->holders) {
    if (!contains(holder.box, element)) continue;
    return text + ", which is rank " + std::to_string(holder.rank.value) + "'s";
  }
  return text;
}

}  // namespace

Origin origin_of(const GlobalState& saved, const std::string& key, const Dims& index, DType dtype,
                 ByteSpan run) {
  if (filled_with(run, std::byte{0})) return {Defect::kZeroFill, "nobody: it is zero"};
  if (filled_with(run, kPoison)) return {Defect::kNotFilled, "nobody: it was never filled"};
  const auto places = places_of(saved, dtype, run);
  const auto count = std::to_string(run.size() / size_of(dtype));
  if (places.empty()) {
    return {Defect::kBitMismatch, "nobody: no run of " + count + " such elements was saved"};
  }
  if (places.size() > 1) {
    return {Defect::kBitMismatch, "ambiguous: " + std::to_string(places.size()) +
                                      " places have this run of " + count + ", the first is " +
                                      print(places.front())};
  }
  const bool same_tensor = places.front().tensor->key == key;
  if (same_tensor && places.front().index == index) {
    return {Defect::kBitMismatch, "its own place, with other bits"};
  }
  return {same_tensor ? Defect::kShiftedBytes : Defect::kWrongOwner, print(places.front())};
}

}  // namespace reprise
