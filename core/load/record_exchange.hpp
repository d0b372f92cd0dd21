#pragma once
// Reads each stored record from storage only once, even if several ranks need it. Each of these
// ranks reads a share of the record and gets the rest from the others (core/plan/shared_reads.hpp
// assigns the shares). During a round, reads of the checkpoint's files are served from memory, so
// the results are the same as if the rank had read everything itself. That memory is the device's,
// if all ranks have their tensors on devices and the data fabric belongs to these: then no share of
// another rank passes through memory of the host.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/agree/agreement.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/load/share_fill.hpp"
#include "core/plan/shared_reads.hpp"
#include "core/seams/load_seams.hpp"
#include "reprise/ports.hpp"

namespace reprise {

class RecordExchange final : public BytesAtHand {
 public:
  /// Collective over `group`. `wanted` returns the records that this rank needs, in any order. If
  /// `wanted` fails on one rank, all ranks throw that error. `share` assigns the records of all
  /// ranks to rounds of at most the smallest `room` of any rank, in bytes. Shares go over the
  /// ports' data fabric, all else over their fabric. If `may_be` is kOnDevice, they go from device
  /// to device where that is possible: each rank reads its share into memory from which the device
  /// copies without help of the CPU.
  /// The arguments must outlive the object.
  RecordExchange(const Ports& ports, Communicator& group, Checkpoint& checkpoint,
                 const std::function<std::vector<StoredRecord>()>& wanted, ShareReads share,
                 std::uint64_t room, AtHand may_be);
  ~RecordExchange() override;
  RecordExchange(const RecordExchange&) = delete;
  RecordExchange& operator=(const RecordExchange&) = delete;

  /// Runs all rounds, and reads the share of a round while the one before is exchanged and used. In
  /// each round, calls `use(records, at_hand)` while those records are in memory. Copies from
  /// memory of the device must be done when `use` returns. Every rank of `group` must call run().
  /// If a rank fails, it keeps taking part, so that nobody waits for it, and throws at the end. The
  /// ranks that need its shares throw at the end too. The same holds if the data fabric fails. If
  /// the other fabric fails because another rank is lost, this rank takes part in no more rounds.
  /// Otherwise it would wait for a deadline in every group to which the lost rank belongs.
  void run(const std::function<void(std::span<const StoredRecord>, AtHand)>& use);

  /// Returns the number of bytes that this rank read from storage.
  std::uint64_t bytes_read() const { return bytes_read_; }
  /// bound() returns the upper limit on the number of bytes in memory at once; peak() returns the
  /// highest number so far.
  std::uint64_t bound() const;
  std::uint64_t peak() const { return peak_; }

  bool read(FileIndex file, std::uint64_t offset, MutableByteSpan out) const override;
  const std::byte* on_device(FileIndex file, ByteRange bytes) const override;

 private:
  /// The communicators of a group. The data fabric may have no communicator after a failure.
  struct Circle {
    std::shared_ptr<Communicator> control;
    std::shared_ptr<Communicator> data;
  };

  /// This rank's share of a round, which a task may still be reading.
  struct Share {
    StagingMemory memory;
    MutableByteSpan bytes;  ///< `memory` in its whole length
    std::unique_ptr<Task> reading;
  };
  struct OwnRound {
    const SharedRound* round = nullptr;
    Circle* ranks = nullptr;
  };

  /// Bytes within the current round.
  struct Place {
    std::size_t record = 0;  ///< index of the record
    std::uint64_t within = 0;
  };
  /// A record's first and last bytes, or all of them, in fetched_.
  struct Ends {
    std::uint64_t place = 0;  ///< where they begin
    std::uint64_t first = 0;  ///< number of first bytes
    std::uint64_t bytes = 0;  ///< number of all of them
  };

  Circle circle_of(const Ports& ports, const Group& members);
  void note(const std::optional<Error>& error);
  std::unique_ptr<Share> start_share(const OwnRound& own);
  std::unique_ptr<Share> whole_share(const OwnRound& own, std::unique_ptr<Share> begun);
  bool take(const OwnRound& own, std::unique_ptr<Share> mine, const std::optional<Error>& failed);
  void gather_shares(const OwnRound& own, ByteSpan mine);
  void lay_out(const SharedRound& round);
  void fetch_ends(const SharedRound& round);
  void fetch(std::span<const GatherCopy> copies) const;
  void forget_round();
  bool goes_to_devices(const SharedRound& round) const;
  std::optional<Place> place_of(FileIndex file, std::uint64_t offset, std::uint64_t bytes) const;
  void read_from_device(const Place& place, MutableByteSpan out) const;

  Tasks& tasks_;
  Device& device_;
  Checkpoint& checkpoint_;
  bool on_device_ = false;  ///< true if shares go to memory of devices where that is possible
  SharedReads plan_;
  /// Communicators of the groups this rank belongs to, by group number.
  std::map<std::size_t, Circle> circles_;
  std::optional<Error> failed_;  ///< first error on this rank, or the cause of it
  const SharedRound* at_hand_ = nullptr;
  std::vector<std::uint64_t> begins_;  ///< where each record begins among the round's bytes
  std::vector<Bytes> shares_;          ///< shares of the current round, in order
  /// The bytes of the current round in memory of the device, or null, and the ends of its records.
  const std::byte* device_bytes_ = nullptr;
  std::vector<Ends> ends_;
  StagingMemory fetched_;
  mutable std::mutex fetching_;
  MutableByteSpan passing_;  ///< the rest of fetched_, used by one thread at a time (fetching_)
  std::uint64_t ahead_ = 0;  ///< bytes of the share that is read for the next round
  std::uint64_t bytes_read_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace reprise
