#include "properties/derived.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "core/base/codes.hpp"
#include "core/geometry/compare.hpp"

namespace reprise {
namespace {

/// Master values of the elements of `box`. The weights of one parameter are compared with them.
struct Source {
  Box box;
  const std::byte* first = nullptr;  ///< first element of the box
  Dims strides;
  std::string_view holder;  ///< for messages: "this rank's", "the uninterrupted job's"
};

template <class T>
T value_at(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Returns the high half of a float's bits, rounded to nearest, ties to even. A NaN stays a NaN.
std::uint16_t rounded(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  const std::uint32_t low = bits & 0xffffU;
  const std::uint32_t high = bits >> 16U;
  const bool up = low > 0x8000U || (low == 0x8000U && (high & 1U) != 0);
  return static_cast<std::uint16_t>(high + (up ? 1U : 0U));
}

/// Computes a weight from its master. Returns the bytes of the weight, followed by zeros.
std::array<std::byte, sizeof(float)> derived(DType dtype, const std::byte* master) {
  std::array<std::byte, sizeof(float)> bytes{};
  if (dtype == DType::kFloat32) {
    std::memcpy(bytes.data(), master, sizeof(float));
  } else {
    const std::uint16_t bits = rounded(value_at<float>(master));
    std::memcpy(bytes.data(), &bits, sizeof bits);
  }
  return bytes;
}

/// Elements of one row: where they begin, and the bytes from one to the next.
struct Row {
  const std::byte* first = nullptr;
  std::ptrdiff_t step = 0;

  const std::byte* at(std::int64_t i) const { return first + i * step; }
};

/// Returns the position of the first of `count` weights that is not what its master gives; `count`
/// if all are.
std::int64_t first_stale(DType dtype, Row weights, Row masters, std::int64_t count) {
  std::int64_t i = 0;
  if (dtype == DType::kFloat32) {
    while (i < count &&
           value_at<std::uint32_t>(weights.at(i)) == value_at<std::uint32_t>(masters.at(i))) {
      ++i;
    }
  } else {
    while (i < count &&
           value_at<std::uint16_t>(weights.at(i)) == rounded(value_at<float>(masters.at(i)))) {
      ++i;
    }
  }
  return i;
}

std::ptrdiff_t element_offset(const Dims& within, const Dims& strides, std::size_t width) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < within.size(); ++d) at += within[d] * strides[d];
  return static_cast<std::ptrdiff_t>(at) * static_cast<std::ptrdiff_t>(width);
}

Dims minus(Dims index, const Dims& origin) {
  for (std::size_t d = 0; d < index.size(); ++d) index[d] -= origin[d];
  return index;
}

class Judge {
 public:
  Judge(GlobalRank rank, DerivedEvidence& evidence) : rank_(rank), evidence_(evidence) {}

  void weight(const TensorLeaf& leaf, const std::vector<Source>& sources) {
    if (leaf.dtype != DType::kBFloat16 && leaf.dtype != DType::kFloat32) return;
    reported_ = false;
    for (const auto& piece : leaf.pieces) {
      for (const auto& source : sources) {
        const auto box = intersect(piece.box, source.box);
        if (box) overlap(leaf, piece, source, *box);
      }
    }
  }

 private:
  void overlap(const TensorLeaf& leaf, const Piece& piece, const Source& source, const Box& box) {
    evidence_.elements += static_cast<std::uint64_t>(box.elements());
    if (reported_) return;
    const auto width = static_cast<std::ptrdiff_t>(size_of(leaf.dtype));
    const std::size_t dims = box.ndim();
    const std::int64_t row = dims == 0 ? 1 : box.extent[dims - 1];
    for (std::int64_t i = 0; i < box.elements(); i += row) {
      Dims index = index_at(i, box.extent);
      for (std::size_t d = 0; d < dims; ++d) index[d] += box.offset[d];
      Row weights{leaf.data + local_offset(piece, index) * width};
      Row masters{source.first +
                  element_offset(minus(index, source.box.offset), source.strides, sizeof(float))};
      if (dims > 0) {
        weights.step = piece.strides[dims - 1] * width;
        masters.step = source.strides[dims - 1] * static_cast<std::ptrdiff_t>(sizeof(float));
      }
      const std::int64_t stale = first_stale(leaf.dtype, weights, masters, row);
      if (stale == row) continue;
      if (dims > 0) index[dims - 1] += stale;
      return report(leaf, index, weights.at(stale), masters.at(stale), source.holder);
    }
  }

  void report(const TensorLeaf& leaf, const Dims& index, const std::byte* weight,
              const std::byte* master, std::string_view holder) {
    reported_ = true;
    const auto right = derived(leaf.dtype, master);
    evidence_.findings.push_back(
        {passed_on::kStaleDerived, leaf.key,
         "the weight at " + to_string(index) + " is " + print_element(leaf.dtype, weight) + "; " +
             std::string(holder) + " fp32 master is " + print_element(DType::kFloat32, master) +
             ", which gives " + print_element(leaf.dtype, right.data()),
         rank_});
  }

  GlobalRank rank_;
  DerivedEvidence& evidence_;
  bool reported_ = false;
};

std::vector<Source> pieces_as_sources(const TensorLeaf& master) {
  std::vector<Source> sources;
  if (master.dtype != DType::kFloat32) return sources;
  for (const auto& piece : master.pieces) {
    sources.push_back({piece.box,
                       master.data + static_cast<std::size_t>(piece.local) * sizeof(float),
                       piece.strides, "this rank's"});
  }
  return sources;
}

DerivedEvidence judge_all(const RankState& held,
                          const std::function<std::vector<Source>(const std::string&)>& masters) {
  DerivedEvidence evidence;
  Judge judge(held.rank, evidence);
  for (const auto& leaf : held.state->tensors) {
    judge.weight(leaf, masters(std::string(kMasterPrefix) + leaf.key));
  }
  return evidence;
}

}  // namespace

DerivedEvidence judge_derived(const RankState& held) {
  std::map<std::string, std::vector<Source>> own;
  for (const auto& leaf : held.state->tensors) {
    if (leaf.key.starts_with(kMasterPrefix)) own[leaf.key] = pieces_as_sources(leaf);
  }
  return judge_all(held, [&own](const std::string& key) {
    const auto found = own.find(key);
    return found == own.end() ? std::vector<Source>{} : found->second;
  });
}

DerivedEvidence judge_derived(const RankState& held, const GlobalState& sources) {
  return judge_all(held, [&sources](const std::string& key) {
    const GlobalTensor* master = sources.tensor(key);
    if (master == nullptr || master->dtype != DType::kFloat32) return std::vector<Source>{};
    return std::vector<Source>{{Box::whole(master->shape), master->data.data(),
                                contiguous_strides(master->shape), "the whole job's"}};
  });
}

}  // namespace reprise
