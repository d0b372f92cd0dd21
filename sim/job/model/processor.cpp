#include "sim/job/model/processor.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

class HostProcessor final : public Processor {
 public:
  bool host_memory() const override { return true; }

  ArrayMemory allocate(std::size_t bytes) override { return ArrayMemory(new std::byte[bytes]); }
  void copy_in(ByteSpan host, std::byte* to) override { std::copy(host.begin(), host.end(), to); }
  void copy_out(const std::byte* from, MutableByteSpan host) override {
    std::copy_n(from, host.size(), host.begin());
  }
  void copy(std::span<const BoxCopy> copies) override {
    for (const auto& copy : copies) {
      copy_strided(copy.source, copy.target, copy.extents, copy.element_bytes);
    }
  }

  void run(std::span<const ElementMap> over, const ElementWork& work) override {
    std::visit(
        [over](const auto& body) {
          for (const auto& map : over) for_each_element(map, body);
        },
        work);
  }

  Sums sum(std::span<const ElementMap> over, const ElementTerm& term) override {
    return std::visit(
        [over](const auto& body) {
          Sums sums;
          for (const auto& map : over) {
            for_each_element(map, [&](const ElementPlace& at) { sums += body(at); });
          }
          return sums;
        },
        term);
  }

  std::optional<std::int64_t> first(std::span<const ElementMap> over,
                                    const StaleWeight& stale) override {
    std::int64_t before = 0;
    for (const auto& map : over) {
      for (std::int64_t i = 0; i < map.elements; ++i) {
        if (stale(map.at(i))) return before + i;
      }
      before += map.elements;
    }
    return std::nullopt;
  }
};

template <class Word>
ElementTerm digest_term(const TensorLeaf& leaf, std::uint64_t key) {
  return DigestTerm<Word>{{leaf.data, key}};
}

ElementTerm digest_term(const TensorLeaf& leaf, std::uint64_t key) {
  switch (size_of(leaf.dtype)) {
    case 1:
      return digest_term<std::uint8_t>(leaf, key);
    case 2:
      return digest_term<std::uint16_t>(leaf, key);
    case 4:
      return digest_term<std::uint32_t>(leaf, key);
    case 8:
      return digest_term<std::uint64_t>(leaf, key);
    default:
      return digest_term<WideWord>(leaf, key);
  }
}

}  // namespace

Processor& host_processor() {
  static HostProcessor host;
  return host;
}

std::uint64_t leaf_digest(Processor& processor, const TensorLeaf& leaf, std::uint64_t key) {
  const auto maps = element_maps(leaf.shape, leaf.pieces, leaf.pieces);
  return processor.sum(maps, digest_term(leaf, key)).values[0];
}

}  // namespace reprise::sim
