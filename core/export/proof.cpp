#include "core/export/proof.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "core/checkpoint/batches.hpp"
#include "core/geometry/convert.hpp"
#include "core/geometry/tiling.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Returns the parts of `whole` that are in none of `boxes`.
std::vector<Box> outside(const Box& whole, std::span<const Box> boxes) {
  std::vector<Box> left;
  if (!whole.empty()) left.push_back(whole);
  for (const Box& box : boxes) {
    std::vector<Box> next;
    for (const Box& one : left) {
      const auto common = intersect(one, box);
      if (!common) {
        next.push_back(one);
        continue;
      }
      for (const Box& rest : subtract(one, *common)) next.push_back(rest);
    }
    left = std::move(next);
  }
  return left;
}

/// True if two buffers have the same bytes where the piece has its elements.
bool are_same(const std::byte* a, const std::byte* b, const Piece& piece, std::size_t width) {
  struct Step {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
  };
  std::array<Step, kMaxNdim> steps;
  std::size_t count = 0;
  for (std::size_t d = 0; d < piece.box.ndim(); ++d) {
    if (piece.box.extent[d] != 1) steps[count++] = {piece.box.extent[d], piece.strides[d]};
  }
  std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Step& left, const Step& right) { return left.stride < right.stride; });
  std::int64_t run = 1;
  std::size_t first = 0;
  while (first < count && steps[first].stride == run) run *= steps[first++].extent;
  const auto step = static_cast<std::int64_t>(width);
  const auto bytes = static_cast<std::size_t>(run * step);
  std::array<std::int64_t, kMaxNdim> at = {};
  std::int64_t element = piece.local;
  for (;;) {
    if (std::memcmp(a + element * step, b + element * step, bytes) != 0) return false;
    std::size_t d = first;
    for (; d < count; ++d) {
      element += steps[d].stride;
      if (++at[d] < steps[d].extent) break;
      element -= at[d] * steps[d].stride;
      at[d] = 0;
    }
    if (d == count) return true;
  }
}

class Prover {
 public:
  Prover(const Checkpoint& source, const std::vector<MappedTensor>& tensors,
         const Checkpoint& written, const ProofPorts& ports)
      : source_(source),
        tensors_(tensors),
        written_(written),
        ports_(ports),
        written_checksums_(written, ports.device) {}

  std::uint64_t prove(std::vector<std::unique_ptr<PieceReader>>& readers) {
    const auto back = mapped_back();
    std::vector<Batch> batches;
    for (std::uint32_t t = 0; t < back.size(); ++t) {
      if (back[t].empty()) continue;
      add_batches(t, volume(logical_shape(source_.catalog().tensors[t])), sizeof(double), batches);
    }
    std::vector<std::unique_ptr<PieceReader>> of_written;
    for (std::size_t thread = 0; thread < readers.size(); ++thread) {
      of_written.push_back(std::make_unique<PieceReader>(written_, ports_.device));
      of_written.back()->count_in(written_checksums_);
    }
    do_all(ports_.tasks, batches.size(), [&](std::size_t thread) {
      return [&, source = readers[thread].get(), target = of_written[thread].get(),
              elements = Bytes(), found = Bytes()](std::size_t b) mutable {
        const auto t = static_cast<std::uint32_t>(batches[b].item);
        compare({t, batches[b], back[t]}, {*source, *target, elements, found});
      };
    });
    for (const auto& reader : readers) reader->hand_over();
    for (const auto& reader : of_written) reader->hand_over();
    for (const auto& tensor : tensors_) prove_rest(tensor);
    written_checksums_.judge();
    return proved_;
  }

 private:
  struct Compared {
    std::uint32_t tensor = 0;  ///< of the source
    Batch batch;
    const std::vector<MappedBack>& back;
  };
  struct Worker {
    PieceReader& source;
    PieceReader& target;
    Bytes& elements;
    Bytes& found;
  };

  /// Returns the index of a tensor that was written.
  std::uint32_t index_of(const std::string& key) const {
    const Catalog& catalog = written_.catalog();
    return static_cast<std::uint32_t>(catalog.tensor(key) - catalog.tensors.data());
  }

  /// Returns, for each tensor of the source, the parts of written tensors that came from it.
  std::vector<std::vector<MappedBack>> mapped_back() const {
    std::vector<std::vector<MappedBack>> back(source_.catalog().tensors.size());
    for (const auto& tensor : tensors_) {
      const StoredTensor* found = written_.catalog().tensor(tensor.key);
      if (found == nullptr || found->dtype != tensor.dtype ||
          logical_shape(*found) != tensor.shape) {
        fail(tensor.key);
      }
      const std::uint32_t index = index_of(tensor.key);
      for (const auto& part : tensor.parts) back[part.source].push_back({index, part});
    }
    return back;
  }

  void compare(const Compared& what, const Worker& by) {
    const StoredTensor& stored = source_.catalog().tensors[what.tensor];
    const Dims& shape = logical_shape(stored);
    const auto count = static_cast<std::size_t>(what.batch.end - what.batch.begin);
    by.elements.resize(count * size_of(stored.dtype));
    by.source.read(sources_of(mapped(stored, what.tensor), what.batch.begin, what.batch.end),
                   by.elements.data());
    std::uint64_t proved = 0;
    for (const auto& one : targets_of(shape, what.back, what.batch.begin, what.batch.end)) {
      const StoredTensor& now = written_.catalog().tensors[one.tensor];
      const bool same = now.dtype == stored.dtype ? is_same(one, now.dtype, by)
                                                  : is_converted(one, stored.dtype, now.dtype, by);
      if (!same) fail(now.key);
      proved += static_cast<std::uint64_t>(one.piece.box.elements());
      const std::scoped_lock lock(telling_);
      ports_.progress.go(stored.key,
                         static_cast<std::uint64_t>(one.piece.box.elements()) * size_of(now.dtype));
    }
    const std::scoped_lock lock(telling_);
    proved_ += proved;
  }

  /// True if the piece of a written tensor has the elements that stand at its places in
  /// `by.elements`.
  static bool is_same(const PieceOf& one, DType dtype, const Worker& by) {
    by.found.resize(by.elements.size());
    by.target.read(std::span(&one, 1), by.found.data());
    return are_same(by.elements.data(), by.found.data(), one.piece, size_of(dtype));
  }

  static bool is_converted(const PieceOf& one, DType from, DType to, const Worker& by) {
    const Piece packed = contiguous_piece(one.piece.box);
    const auto count = static_cast<std::size_t>(one.piece.box.elements());
    Bytes found(count * size_of(to));
    const PieceOf whole{one.tensor, packed};
    by.target.read(std::span(&whole, 1), found.data());
    Bytes in_order(count * size_of(from));
    const auto first = static_cast<std::size_t>(one.piece.local) * size_of(from);
    copy_strided({by.elements.data() + first, one.piece.strides}, {in_order.data(), packed.strides},
                 one.piece.box.extent, size_of(from));
    Bytes expected(found.size());
    convert(from, in_order, to, expected.data());
    return expected == found;
  }

  /// Looks at what has no element of the source: padding, and tensors without elements.
  void prove_rest(const MappedTensor& tensor) {
    if (!tensor.padded && volume(tensor.shape) != 0) return;
    const std::uint32_t index = index_of(tensor.key);
    PieceReader reader(written_, ports_.device);
    reader.count_in(written_checksums_);
    if (volume(tensor.shape) == 0) reader.open(index);
    Bytes elements;
    for (const Box& gap : gaps(tensor.shape, targets(tensor))) {
      std::vector<Batch> batches;
      add_batches(index, gap.elements(), size_of(tensor.dtype), batches);
      for (const Batch& batch : batches) {
        const auto count = static_cast<std::size_t>(batch.end - batch.begin);
        elements.assign(count * size_of(tensor.dtype), std::byte{1});
        for (const Piece& piece : pieces_of_range(gap, batch.begin, batch.end)) {
          const PieceOf one{index, piece};
          reader.read(std::span(&one, 1), elements.data());
        }
        const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
        if (std::ranges::any_of(elements, is_set)) fail(tensor.key);
        ports_.progress.go(tensor.key, elements.size());
      }
    }
    reader.hand_over();
  }

  [[noreturn]] void fail(const std::string& key) const {
    throw Error(Code::kChecksum,
                "what was read back from the new files is not what the checkpoint has; nothing "
                "was exported",
                {.key = key, .file = written_.store().display(written_.location().directory)});
  }

  const Checkpoint& source_;
  const std::vector<MappedTensor>& tensors_;
  const Checkpoint& written_;
  const ProofPorts& ports_;
  SharedChecksums written_checksums_;
  std::mutex telling_;
  std::uint64_t proved_ = 0;
};

}  // namespace

std::vector<Box> gaps(const Dims& shape, std::vector<Box> boxes) {
  const Box whole = Box::whole(shape);
  if (!boxes.empty() && !tiling_fault(whole, boxes)) return {};
  std::sort(boxes.begin(), boxes.end());
  return outside(whole, boxes);
}

std::vector<Box> targets(const MappedTensor& tensor) {
  std::vector<Box> boxes;
  for (const auto& part : tensor.parts) boxes.push_back(part.target());
  return boxes;
}

std::uint64_t prove(const Checkpoint& source, const std::vector<MappedTensor>& tensors,
                    const Checkpoint& written, std::vector<std::unique_ptr<PieceReader>>& readers,
                    const ProofPorts& ports) {
  return Prover(source, tensors, written, ports).prove(readers);
}

}  // namespace reprise
