#pragma once
// Stored records that several ranks need, from storage once: each rank of those reads its share of
// them, and gets the rest from the others (core/plan/shared_reads.hpp says who what). While a round
// is at hand, whoever reads the checkpoint's files gets its records from memory; so what is made of
// them is what a rank makes of them that reads by itself.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/agreement.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/plan/shared_reads.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Who reads what for whom, and in rounds of how many bytes.
struct Sharing {
  SharedReads (*plan)(std::span<const AlikeReaders> classes, std::uint64_t room) = shared_reads;
  std::uint64_t room = 0;
};

class RecordExchange final : public BytesAtHand {
 public:
  /// Collective over `group`. `wanted` gives this rank's records, in any order; where it fails at a
  /// rank all throw that. Borrows what it is given.
  RecordExchange(Fabric& fabric, Communicator& group, Checkpoint& checkpoint,
                 const std::function<std::vector<StoredRecord>()>& wanted, const Sharing& sharing);
  ~RecordExchange() override;
  RecordExchange(const RecordExchange&) = delete;
  RecordExchange& operator=(const RecordExchange&) = delete;

  /// Round by round; with each one's records at hand, calls `use(records)`. Every rank of `group`
  /// runs it. A rank in which something fails goes on taking part, so that nobody waits for it, and
  /// throws in the end, as do those that it had something for. After a call that failed it takes
  /// part in no more rounds: whoever is gone may be awaited in other circles too, a deadline in
  /// each.
  void run(const std::function<void(std::span<const StoredRecord>)>& use);

  /// Read from storage by this rank.
  std::uint64_t bytes_read() const { return bytes_read_; }
  /// The most that may be held at once, and the most that was.
  std::uint64_t bound() const;
  std::uint64_t peak() const { return peak_; }

  bool read(FileIndex file, std::uint64_t offset, MutableByteSpan out) const override;

 private:
  void note(const std::optional<Error>& error);
  Bytes read_share(const SharedRound& round, const Communicator& ranks);
  bool take(const SharedRound& round, Communicator& ranks);
  void hear_shares(Communicator& ranks, Contribution mine);
  void lay_out(const SharedRound& round);
  std::optional<std::uint64_t> place_of(FileIndex file, std::uint64_t offset,
                                        std::uint64_t bytes) const;

  Checkpoint& checkpoint_;
  SharedReads plan_;
  /// Of the groups that this rank is in, by their number.
  std::map<std::size_t, std::shared_ptr<Communicator>> circles_;
  std::optional<Error> failed_;  ///< the first
  const SharedRound* at_hand_ = nullptr;
  std::vector<std::uint64_t> begins_;  ///< of its records within it
  std::vector<Bytes> shares_;          ///< of the round at hand, one after another
  std::uint64_t bytes_read_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace reprise
