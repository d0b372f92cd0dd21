#pragma once
// Files and directories in memory, each with the content that would survive a power cut.

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

/// A file or a directory. Calls see the left half; a crash leaves the right half:
///
///   file        content ---- sync() -------------> durable_content
///   directory   names   ---- sync_directory() ---> durable_names
struct Inode {
  InodeKind kind = InodeKind::kFile;
  std::uint64_t number = 0;  ///< unique
  Bytes content = {};
  Bytes durable_content = {};
  Names names = {};
  Names durable_names = {};
};

InodePtr make_inode(InodeKind kind);

/// Returns the tree that a crash leaves, in new nodes: files opened before it are detached. A node
/// with two durable names, because only one of two directories was synced after a rename, becomes
/// two.
InodePtr after_crash(const Inode& node);

}  // namespace reprise::sim
