#include "core/load/checksum_vote.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"

namespace reprise {
namespace {

void put_count(Bytes& wire, const ChecksumTally::Count& count) {
  append_le(wire, count.records);
  append_le(wire, count.mismatches);
  append_le(wire, count.unset);
}

ChecksumTally::Count take_count(PeerWire& wire) {
  ChecksumTally::Count count;
  count.records = wire.number<std::uint64_t>();
  count.mismatches = wire.number<std::uint64_t>();
  count.unset = wire.number<std::uint64_t>();
  return count;
}

void add(const ChecksumTally::Count& more, ChecksumTally::Count& sum) {
  sum.records += more.records;
  sum.mismatches += more.mismatches;
  sum.unset += more.unset;
}

/// Collective. Returns the counts of each rank, in group order.
std::vector<FileChecksums> counts_of_ranks(Communicator& group, const ChecksumTally& mine) {
  const auto wires = agree_on(group, [&] {
    Bytes wire;
    for (const auto& [file, counts] : mine.counts()) {
      put_text(wire, file);
      put_count(wire, counts.all);
      put_count(wire, counts.elements);
    }
    return wire;
  });
  std::vector<FileChecksums> ranks;
  for (const Bytes& bytes : wires) {
    PeerWire wire(bytes, "a count of checksums");
    auto& of_file = ranks.emplace_back().of_file;
    while (!wire.empty()) {
      auto& counts = of_file[wire.text()];
      counts.all = take_count(wire);
      counts.elements = take_count(wire);
    }
  }
  return ranks;
}

}  // namespace

FileChecksums add_up(std::span<const FileChecksums> of_ranks, GroupRank /*self*/) {
  FileChecksums sums;
  for (const auto& rank : of_ranks) {
    for (const auto& [file, counts] : rank.of_file) {
      ChecksumTally::Counts& sum = sums.of_file[file];
      add(counts.all, sum.all);
      add(counts.elements, sum.elements);
    }
  }
  return sums;
}

bool judge_checksums(Communicator& group, const ChecksumTally& mine, const LoadSeams& seams) {
  const auto seen = agree_on(group, [&] {
    Bytes wire;
    append_le(wire, mine.mismatches());
    return wire;
  });
  const bool none = std::all_of(seen.begin(), seen.end(), [](const Bytes& bytes) {
    return PeerWire(bytes, "a count of checksums").number<std::uint64_t>() == 0;
  });
  if (none) return false;
  const FileChecksums sums = seams.checksums(counts_of_ranks(group, mine), group.rank());
  agree_on(group, [&] {
    mine.require_matches(
        [&](const std::string& file) { return !sums.of_file.at(file).switched_off(); });
    return Bytes{};
  });
  return true;
}

}  // namespace reprise
