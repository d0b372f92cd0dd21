#include "core/verify/verify_copies.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/print.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kComparedMin = 64;  // fewer may be alike by chance
constexpr std::size_t kToldFirst = 3;

bool is_alike_by_chance(const StoredTensor& tensor) {
  return tensor.shape.size() < 2 || tensor.chunks.size() != 1 ||
         volume(tensor.shape) < kComparedMin;
}

/// True if each element is `first`.
bool is_all(ByteSpan elements, ByteSpan first) {
  return std::ranges::equal(elements.first(first.size()), first) &&
         std::equal(elements.begin() + static_cast<std::ptrdiff_t>(first.size()), elements.end(),
                    elements.begin());
}

}  // namespace

void EqualTensors::add(const StoredTensor& tensor, ByteRange at, ByteSpan elements) {
  if (is_alike_by_chance(tensor)) return;
  if (at.offset == 0) {
    hasher_.emplace();
    first_.assign(elements.begin(),
                  elements.begin() + static_cast<std::ptrdiff_t>(size_of(tensor.dtype)));
    constant_ = true;
  }
  constant_ = constant_ && is_all(elements, first_);
  hasher_->bytes(elements);
  if (at.offset + elements.size() < at.size || constant_) return;
  tensors_[{tensor.dtype, tensor.shape, hasher_->digest()}].push_back(&tensor);
}

void EqualTensors::add(const EqualTensors& more) {
  for (const auto& [alike, tensors] : more.tensors_) {
    auto& known = tensors_[alike];
    known.insert(known.end(), tensors.begin(), tensors.end());
  }
}

Findings EqualTensors::findings() const {
  std::vector<std::string> words;
  std::string key;
  for (const auto& [alike, tensors] : tensors_) {
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      if (words.empty()) key = tensors[i]->key;
      words.push_back(tensors[i]->key + " = " + tensors.front()->key);
    }
  }
  if (words.empty()) return {};
  return {{Severity::kNote, Code::kLoadRejected,
           "tensors hold the same bytes as others: " + join_first(words, kToldFirst) +
               "; they are tied or began as copies, or one was stored in the place of another",
           key}};
}

}  // namespace reprise
