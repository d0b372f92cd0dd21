#pragma once
// Keeps files and directories in memory. For each of them, also keeps the content that would
// survive a power cut.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/bytes.hpp"

namespace reprise::sim {

struct Inode;
using InodePtr = std::shared_ptr<Inode>;
using Names = std::map<std::string, InodePtr>;

enum class InodeKind : std::uint8_t { kFile, kDirectory };

/// A file or a directory. Calls see the content on the left; after a crash the content on the right
/// remains:
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
};

InodePtr make_inode(InodeKind kind);

/// Returns the tree that remains after a crash. Its nodes are new, so files that were opened before
/// the crash no longer belong to it. A rename between two directories of which only one was synced
/// may leave a node with two durable names; the node then becomes two nodes.
InodePtr after_crash(const Inode& node);

}  // namespace reprise::sim
