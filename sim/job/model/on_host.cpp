#include "sim/job/model/on_host.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

/// Returns the range from the first element of the pieces to the end of the last.
Interval span_of(const std::vector<Piece>& pieces) {
  Interval all;
  for (const auto& piece : pieces) {
    if (piece.box.empty()) continue;
    Interval span{piece.local, piece.local + 1};
    for (std::size_t d = 0; d < piece.box.ndim(); ++d) {
      span.end += (piece.box.extent[d] - 1) * piece.strides[d];
    }
    const bool is_first = all.length() == 0;
    all = is_first ? span : Interval{std::min(all.begin, span.begin), std::max(all.end, span.end)};
  }
  return all;
}

}  // namespace

OnHost::OnHost(Processor& processor, const StateDict& state) : given_(state) {
  if (processor.host_memory()) return;
  copy_ = state;
  for (auto& leaf : copy_->tensors) {
    const Interval span = span_of(leaf.pieces);
    const std::size_t width = size_of(leaf.dtype);
    Bytes& elements = elements_.emplace_back(static_cast<std::size_t>(span.length()) * width);
    processor.copy_out(leaf.data + static_cast<std::size_t>(span.begin) * width, elements);
    for (auto& piece : leaf.pieces) piece.local -= span.begin;
    leaf.data = elements.data();
  }
}

}  // namespace reprise::sim
