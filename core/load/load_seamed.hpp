#pragma once
// Variants of the functions in load.hpp in which some decisions are replaced, for mutants and
// engine tests. All other code uses load.hpp.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/checkpoint/parsed_metadata.hpp"
#include "core/load/load.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

/// Metadata as read from the files of a checkpoint.
struct KnownMetadata {
  std::shared_ptr<const Metadata> metadata;
  std::uint64_t content = 0;  ///< hash of the metadata files' names and bytes
};

/// The same as load() in load.hpp, except that `seams` provides the functions that make the
/// decisions. If every rank has the metadata already, such as for many loads of one checkpoint, all
/// pass it as `known`; it is then neither read nor broadcast. If ranks share a process, they may
/// share `parsed`: then one of them parses what all have read.
LoadResult load(const Ports& ports, Communicator& group, const LoadOptions& options, const Ask& ask,
                const LoadSeams& seams, const KnownMetadata* known = nullptr,
                ParsedMetadata* parsed = nullptr);
LoadResult load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options, const LoadSeams& seams,
                ParsedMetadata* parsed = nullptr);

/// The same as read_common() in load.hpp, except that `seams` chooses the leader.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams, const StepNames& names = {});

}  // namespace reprise
