#pragma once
// Writes one rank's part of a save: copies the data that the plan assigns to this rank into
// staging; a background task writes the copy to the rank's file while the job trains. If there are
// several threads and the caller has to wait for them anyway, each writes a file of its own: a file
// system lets only one thread at a time write to a file.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/save/image_writer.hpp"
#include "core/save/leaf_source.hpp"
#include "core/seams/save_seams.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/fabric.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// A rank's items to write, in the order of the plan: objects, then tensor chunks.
struct WriteShare {
  std::vector<ImageItem> items;
  std::vector<LeafOrigin> origins;  ///< one per item; empty for objects
};

/// Returns what the plan assigns to `rank`. Throws STALE_PLAN if `state` lacks something that the
/// plan assigns to the rank. The result refers to `state`, which must live until the result is
/// staged.
WriteShare share_of(const GlobalPlan& plan, GroupRank rank, const StateDict& state);

/// Returns the name of a rank's file within the checkpoint; `number` counts the rank's files.
std::string payload_name(GroupRank rank, std::size_t number = 0);

/// The files of a rank, by their number. Together, their ranges are in the order of the rank's
/// items.
using WrittenFiles = std::vector<WrittenFile>;

/// The number of bytes that one rank writes, and the memory needed for that. The fields are
/// explained in SaveResult.
struct WriteCosts {
  std::uint64_t bytes = 0;
  std::uint64_t peak_staging = 0;
  bool waited_for_staging = false;
  std::uint64_t bound_staging = 0;
  std::uint64_t bound_empty = 0;
};

/// Writes one rank's file. None of the calls is collective.
class RankWrite {
 public:
  RankWrite(const Ports& ports, const SaveSeams& seams) : ports_(ports), seams_(seams) {}

  /// Copies the share into staging and starts to write it to files of `rank` in `directory`. After
  /// the call returns, the job can change its state, unless options.returns is kWhenQueued: then it
  /// can do so after wait_for_staging(). A rank without items creates no file. Must not be called
  /// twice.
  void snapshot(WriteShare share, const std::string& directory, GroupRank rank,
                const ImageOptions& options);
  /// Waits until the job can change its state. If a copy fails, wait() throws that error.
  void wait_for_staging() {
    if (writer_) writer_->wait_for_copies(*source_);
  }
  /// True once the file is durable or writing it has failed. Does not block.
  bool through();
  /// Waits until the file is durable. Throws the error if writing it failed.
  void wait();
  /// Like wait(), and also traces the end of the write phase. Returns the written files; none if
  /// the rank owns nothing.
  const WrittenFiles& end();
  /// Waits for pending writes and releases the staging. Never throws.
  void stop() { writer_.reset(); }

  const WriteCosts& costs() const { return costs_; }

 private:
  void write_now(std::vector<WriteShare> shares, const std::string& directory, GroupRank rank,
                 const ImageOptions& options);

  Ports ports_;
  SaveSeams seams_;
  std::unique_ptr<ContentSource> source_;
  std::unique_ptr<ImageWriter> writer_;  ///< null if nothing is written in the background
  std::optional<WrittenFiles> written_;  ///< set once the files are durable
  bool ended_ = false;                   ///< true once the end of the write phase has been traced
  WriteCosts costs_;
};

/// Collective. Returns each rank's vote, which is encoded WrittenFiles. Returns nothing if any
/// rank is still writing. If the write of any rank failed, throws that error on all ranks.
std::vector<Bytes> poll_votes(Communicator& group, RankWrite& write);
/// Collective. Returns every rank's vote. Every rank must first have waited until its own file is
/// durable.
std::vector<Bytes> take_votes(Communicator& group, RankWrite& write);
/// Decodes a rank's vote, which describes the files that the rank wrote. Throws COLLECTIVE_MISMATCH
/// if the vote cannot be decoded.
WrittenFiles decode_written(ByteSpan vote);

}  // namespace reprise
