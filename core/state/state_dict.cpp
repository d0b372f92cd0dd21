#include "core/state/state_dict.hpp"

#include <charconv>

namespace reprise {
namespace {

std::string dotted(const Dims& dims) {
  std::string text;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    text += (d == 0 ? "" : ".") + std::to_string(dims[d]);
  }
  return text;
}

std::optional<Dims> parse_dotted(std::string_view text) {
  Dims dims;
  while (true) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0 || dims.size() == kMaxNdim) return std::nullopt;
    dims.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return dims;
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace

PieceMemory memory_of(const TensorLeaf& leaf, const Piece& piece) {
  if (leaf.memory.empty()) return {leaf.data, MemoryKind::kDevice};
  return leaf.memory[static_cast<std::size_t>(&piece - leaf.pieces.data())];
}

std::byte* address_of(const TensorLeaf& leaf, const Piece& piece, const Dims& index) {
  return memory_of(leaf, piece).data +
         static_cast<std::size_t>(local_offset(piece, index)) * size_of(leaf.dtype);
}

std::string stored_key(const ObjectLeaf& leaf) {
  return leaf.is_plain() ? leaf.key : object_key(leaf.key, leaf.coordinate, leaf.grid);
}

std::map<std::string, const ObjectLeaf*> objects_by_key(const StateDict& state) {
  std::map<std::string, const ObjectLeaf*> objects;
  for (const ObjectLeaf& leaf : state.objects) objects.emplace(stored_key(leaf), &leaf);
  return objects;
}

std::string object_key(const std::string& key, const Dims& coordinate, const Dims& grid) {
  return key + "/shard_" + dotted(coordinate) + "_" + dotted(grid);
}

std::optional<ObjectKey> parse_object_key(std::string_view name) {
  constexpr std::string_view kMark = "/shard_";
  const auto mark = name.find(kMark);
  if (mark == std::string_view::npos || name.find('/') != mark) return std::nullopt;
  const std::string_view tail = name.substr(mark + kMark.size());
  const auto bar = tail.find('_');
  if (bar == std::string_view::npos) return std::nullopt;
  const auto coordinate = parse_dotted(tail.substr(0, bar));
  auto grid = parse_dotted(tail.substr(bar + 1));
  if (!coordinate || !grid) return std::nullopt;
  if (grid->size() + 1 == coordinate->size()) grid->push_back(-1);
  if (grid->size() != coordinate->size()) return std::nullopt;
  return ObjectKey{std::string(name.substr(0, mark)), *coordinate, *grid};
}

}  // namespace reprise
