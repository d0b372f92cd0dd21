#include "core/agree/peer_wire.hpp"

#include "reprise/error.hpp"

namespace reprise {

ByteSpan PeerWire::bytes(std::uint64_t size) {
  if (size > rest_.size()) {
    refuse("claims " + std::to_string(size) + " bytes but has " + std::to_string(rest_.size()) +
           " left");
  }
  const ByteSpan taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

std::uint64_t PeerWire::count(std::uint64_t each) {
  const auto entries = number<std::uint64_t>();
  if (entries > rest_.size() / each) {
    refuse("claims " + std::to_string(entries) + " entries but has " +
           std::to_string(rest_.size()) + " bytes left");
  }
  return entries;
}

std::vector<std::string> PeerWire::texts() {
  std::vector<std::string> texts;
  for (auto left = count(sizeof(std::uint64_t)); left > 0; --left) texts.push_back(text());
  return texts;
}

void PeerWire::end() const {
  if (!rest_.empty()) refuse("has " + std::to_string(rest_.size()) + " bytes too many");
}

void PeerWire::refuse(const std::string& why) const {
  throw Error(Code::kCollectiveMismatch, std::string(what_) + " from another rank " + why);
}

}  // namespace reprise
