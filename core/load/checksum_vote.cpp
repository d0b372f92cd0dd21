#include "core/load/checksum_vote.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"

namespace reprise {
namespace {

void put_count(Bytes& wire, const ChecksumTally::Count& count) {
  append_le(wire, count.records);
  append_le(wire, count.mismatches);
  append_le(wire, count.unset);
}

void add_count(ChecksumTally::Count& count, PeerWire& wire) {
  count.records += wire.number<std::uint64_t>();
  count.mismatches += wire.number<std::uint64_t>();
  count.unset += wire.number<std::uint64_t>();
}

/// Returns the counts of each file, summed over all ranks.
std::map<std::string, ChecksumTally::Counts> counts_of_all(Communicator& group,
                                                           const ChecksumTally& mine) {
  const auto wires = agree_on(group, [&] {
    Bytes wire;
    for (const auto& [file, counts] : mine.counts()) {
      put_text(wire, file);
      put_count(wire, counts.all);
      put_count(wire, counts.elements);
    }
    return wire;
  });
  std::map<std::string, ChecksumTally::Counts> sums;
  for (const Bytes& bytes : wires) {
    PeerWire wire(bytes, "a count of checksums");
    while (!wire.empty()) {
      ChecksumTally::Counts& sum = sums[wire.text()];
      add_count(sum.all, wire);
      add_count(sum.elements, wire);
    }
  }
  return sums;
}

}  // namespace

bool judge_checksums(Communicator& group, const ChecksumTally& mine) {
  const auto seen = agree_on(group, [&] {
    Bytes wire;
    append_le(wire, mine.mismatches());
    return wire;
  });
  const bool none = std::all_of(seen.begin(), seen.end(), [](const Bytes& bytes) {
    return PeerWire(bytes, "a count of checksums").number<std::uint64_t>() == 0;
  });
  if (none) return false;
  const auto sums = counts_of_all(group, mine);
  agree_on(group, [&] {
    mine.require_matches([&](const std::string& file) { return !sums.at(file).switched_off(); });
    return Bytes{};
  });
  return true;
}

}  // namespace reprise
