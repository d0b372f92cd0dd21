#include "properties/origin.hpp"

#include <algorithm>
#include <optional>

#include "properties/finding_code.hpp"
#include "properties/unsettled.hpp"

namespace reprise {
namespace {

constexpr std::byte kPoison{0xBD};
/// Length in bytes of the shortest run of wrong elements whose source can be identified. The
/// content of a shorter run, such as one bf16 element, often occurs elsewhere by chance.
constexpr std::size_t kTellingBytes = 4;

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

bool holds(const Box& box, const Dims& index) {
  return box.ndim() == index.size() && contains(box, {index, Dims::filled(index.size(), 1)});
}

/// True if `a` and `b` are at the same position within their boxes, and the boxes differ but have
/// the same size.
bool parallel(const Box& box_a, const Dims& a, const Box& box_b, const Dims& b) {
  if (box_a == box_b || !(box_a.extent == box_b.extent)) return false;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d] - box_a.offset[d] != b[d] - box_b.offset[d]) return false;
  }
  return true;
}

class Search {
 public:
  Search(const GlobalState& saved, const WrongRun& wrong, const Suspects& suspects)
      : saved_(saved), wrong_(wrong), suspects_(suspects) {}

  Origin origin() const {
    const ByteSpan run = wrong_.elements;
    if (filled_with(run, std::byte{0})) return {judged::kZeroFill, "nowhere: it is zero"};
    if (filled_with(run, kPoison)) return {judged::kNotFilled, "nowhere: it was never filled"};
    if (filled_with(run, kUnsettled)) {
      return {judged::kTornSnapshot, "nowhere: its copy was not awaited"};
    }
    if (filled_with(run, kUnsettledLoad)) {
      return {judged::kNotFilled, "nowhere: the load did not wait for its copy"};
    }
    const auto places = places_of(saved_, wrong_.dtype, run);
    const bool tells = run.size() >= kTellingBytes;
    if (places.size() == 1 && tells) return from(places.front());
    if (auto elsewhere = from_others()) {
      if (tells) return *elsewhere;
      return {judged::kBitMismatch,
              "perhaps " + elsewhere->text + "; too few elements differ to tell"};
    }
    const auto count = std::to_string(run.size() / size_of(wrong_.dtype));
    if (places.size() == 1) {
      return {judged::kBitMismatch,
              "perhaps " + print(places.front()) + "; too few elements differ to tell"};
    }
    if (places.empty()) {
      return {judged::kBitMismatch, "nowhere: no run of " + count + " such elements was saved"};
    }
    return {judged::kBitMismatch, "one of " + std::to_string(places.size()) +
                                      " places that have this run of " + count + ", the first is " +
                                      print(places.front())};
  }

 private:
  Origin from(const Place& place) const {
    const std::string text = print(place);
    if (place.tensor->key != wrong_.key) return {judged::kWrongOwner, text};
    if (crosses_components(place.index)) {
      return {judged::kPermutedComponents, text + "; it is another component of the fused tensor"};
    }
    if (const auto shards = crosses_shards(place.index)) {
      return {judged::kPermutedShards, text + *shards};
    }
    return {judged::kShiftedBytes, text};
  }

  /// True if the wrong element and the element at `found` belong to the same rank and lie at
  /// the same position in two different boxes of equal size. Such boxes are components of a fused
  /// tensor.
  bool crosses_components(const Dims& found) const {
    const auto crosses = [&](const Box& a, const Box& b) {
      return holds(a, wrong_.index) && holds(b, found) && parallel(a, wrong_.index, b, found);
    };
    for (const auto& a : wrong_.pieces) {
      for (const auto& b : wrong_.pieces) {
        if (crosses(a.box, b.box)) return true;
      }
    }
    const auto held = holders(wrong_.key);
    for (const auto& a : held) {
      for (const auto& b : held) {
        if (a.rank == b.rank && crosses(a.box, b.box)) return true;
      }
    }
    return false;
  }

  std::optional<std::string> crosses_shards(const Dims& found) const {
    const auto held = holders(wrong_.key);
    const auto holder_of = [&held](const Dims& index) {
      return std::find_if(held.begin(), held.end(),
                          [&index](const Holder& holder) { return holds(holder.box, index); });
    };
    const auto own = holder_of(wrong_.index);
    const auto other = holder_of(found);
    if (own == held.end() || other == held.end() || own->rank == other->rank) return {};
    if (!parallel(own->box, wrong_.index, other->box, found)) return {};
    return "; rank " + std::to_string(other->rank.value) + "'s shard is in the place of rank " +
           std::to_string(own->rank.value) + "'s";
  }

  /// Searches the other states for the wrong values. Looks only at the same key and index.
  std::optional<Origin> from_others() const {
    std::optional<Origin> found;
    for (const auto& other : suspects_.others ? suspects_.others() : std::vector<OtherState>{}) {
      if (!has_run(*other.state)) continue;
      if (found) {
        found->text += ", or " + other.what;
      } else {
        found = Origin{other.code, "its own place " + other.what, other.line};
      }
    }
    return found;
  }

  bool has_run(const GlobalState& state) const {
    const GlobalTensor* tensor = state.tensor(wrong_.key);
    if (tensor == nullptr || tensor->dtype != wrong_.dtype) return false;
    if (tensor->shape.size() != wrong_.index.size()) return false;
    const auto at =
        static_cast<std::size_t>(linear_index(wrong_.index, tensor->shape)) * size_of(wrong_.dtype);
    const ByteSpan run = wrong_.elements;
    return at + run.size() <= tensor->data.size() &&
           std::equal(run.begin(), run.end(),
                      tensor->data.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<Holder> holders(const std::string& key) const {
    if (suspects_.holders) return suspects_.holders(key);
    const GlobalTensor* tensor = saved_.tensor(key);
    return tensor == nullptr ? std::vector<Holder>{} : tensor->holders;
  }

  std::string print(const Place& place) const {
    std::string text = place.tensor->key + to_string(place.index);
    for (const auto& holder : holders(place.tensor->key)) {
      if (!holds(holder.box, place.index)) continue;
      return text + ", which is rank " + std::to_string(holder.rank.value) + "'s";
    }
    return text;
  }

  const GlobalState& saved_;
  const WrongRun& wrong_;
  const Suspects& suspects_;
};

}  // namespace

Origin origin_of(const GlobalState& saved, const WrongRun& wrong, const Suspects& suspects) {
  return Search(saved, wrong, suspects).origin();
}

}  // namespace reprise
