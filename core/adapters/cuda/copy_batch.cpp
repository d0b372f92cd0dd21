#include "core/adapters/cuda/copy_batch.hpp"

#include <limits>

#include "core/base/check.hpp"

namespace reprise {
namespace {

/// With contiguous copies of at most this size, the number of a part of a table fits in 32 bits.
constexpr std::int64_t kContiguousMax = std::int64_t{1} << 20U;
static_assert(CopyParameters<ContiguousCopy>::kCopiesMax * (kContiguousMax / kBlockBytes + 1) <=
              std::numeric_limits<std::uint32_t>::max());

/// Copies that were queued by themselves run already. This limits how many share an end.
constexpr std::int64_t kAloneMax = std::int64_t{4} << 20U;

template <class Copy>
void append_to(CopyTables::Table<Copy>& to, const Copy& copy, std::int64_t parts) {
  CHECK(!to.filled.full(), to.filled.count);
  Copy& placed = to.filled.copies[to.filled.count++];
  placed = copy;
  placed.first_part = static_cast<decltype(placed.first_part)>(to.parts);
  to.parts += parts;
}

template <class Copy>
void queue_table(CudaStreamRef stream, CopyTables::Table<Copy>& table) {
  if (table.parts > 0) queue_copies(stream, table.filled, table.parts);
  table.clear();
}

}  // namespace

void CopyBatch::add(const StridedCopy& copy) {
  CHECK(copy.runs > 0, copy.runs);
  bytes_ += copy.bytes();
  if (copy.runs > 1) return append_to(tables_.strided, copy, copy.parts());
  CHECK(copy.run_bytes <= kContiguousMax, copy.run_bytes);
  auto& contiguous = tables_.contiguous;
  if (contiguous.at(tables_.filling).filled.full()) ++tables_.filling;
  append_to(contiguous.at(tables_.filling),
            {copy.source, copy.target, static_cast<std::uint32_t>(copy.run_bytes)}, copy.parts());
}

bool CopyBatch::full(std::int64_t collected_max) const {
  return tables_.strided.filled.full() || tables_.contiguous.back().filled.full() ||
         alone_bytes_ >= kAloneMax || bytes_ >= collected_max;
}

void CopyBatch::queue(CudaStreamRef kernels, CudaStreamRef engine) {
  for (auto& table : tables_.contiguous) queue_table(kernels, table);
  queue_table(kernels, tables_.strided);
  tables_.filling = 0;
  if (ways().kernels) by_kernels_.record(kernels);
  if (ways().engine) by_engine_.record(engine);
}

void CopyBatch::drop() {
  for (auto& table : tables_.contiguous) table.clear();
  tables_.strided.clear();
  tables_.filling = 0;
  deliveries_.clear();
  finish();
}

void CopyBatch::finish() {
  for (const auto& [pinned, host, extents, element_bytes] : deliveries_) {
    copy_strided(pinned, host, extents, element_bytes);
  }
  bytes_ = alone_bytes_ = 0;
  deliveries_.clear();
  kept_.clear();
}

}  // namespace reprise
