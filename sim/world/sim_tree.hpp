#pragma once
// Keeps files and directories in memory. For each of them, also keeps the content that would
// survive a power cut.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise::sim {

struct Inode;
using InodePtr = std::shared_ptr<Inode>;
using Names = std::map<std::string, InodePtr>;

enum class InodeKind : std::uint8_t { kFile, kDirectory };

/// Names that one call set in one directory; null removes the name. A rename within a directory
/// sets two names at once, and a crash never tears it apart.
using NameStep = std::vector<std::pair<std::string, InodePtr>>;

/// A file or a directory. Calls see the content on the left; after a power cut the content on the
/// right remains:
///
///   file        content ---- sync() -------------> durable_content
///   directory   names   ---- sync_directory() ---> durable_names
struct Inode {
  InodeKind kind = InodeKind::kFile;
  std::uint64_t number = 0;  ///< identifies the node
  Bytes content = {};
  Bytes durable_content = {};
  Names names = {};
  Names durable_names = {};
  std::vector<NameStep> unsynced = {};  ///< changes of names since the last sync, oldest first
};

InodePtr make_inode(InodeKind kind);

/// A change that was not synced when a crash came.
struct UnsyncedChange {
  enum class Kind : std::uint8_t {
    kNames,   ///< one NameStep of the directory at `path`
    kLength,  ///< the new length of the file at `path`
    kBlock,   ///< the bytes of one block of that file
  };
  Kind kind = Kind::kNames;
  std::string path;
};

/// Decides if a change survives the crash. It is asked once for each change, the outer directories
/// first. Changes below a name that did not survive are not asked for.
using Survives = std::function<bool(const UnsyncedChange&)>;

/// Size of the blocks of a file that survive a crash one by one.
inline constexpr std::size_t kCrashBlock = 512;

/// Returns the tree that remains after a crash. Its nodes are new, so files that were opened before
/// the crash no longer belong to it. A rename between two directories of which only one was synced
/// may leave a node with two durable names; the node then becomes two nodes.
InodePtr after_crash(const Inode& node, const Survives& survives, const std::string& path = "");

}  // namespace reprise::sim
