#pragma once
// Files and directories in memory, each with what would survive a power cut.

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

/// A file or a directory. The left half is what calls see, the right half what a crash leaves:
///
///   file        content ---- sync() -------------> durable_content
///   directory   names   ---- sync_directory() ---> durable_names
struct Inode {
  InodeKind kind = InodeKind::kFile;
  std::uint64_t number = 0;  ///< no other one has it
  Bytes content = {};
  Bytes durable_content = {};
  Names names = {};
  Names durable_names = {};
};

InodePtr make_inode(InodeKind kind);

/// The tree that a crash leaves, in fresh nodes: files open before it are detached. A node that
/// stands under two durable names, because only one of two directories was synced after a rename,
/// becomes two.
InodePtr after_crash(const Inode& node);

}  // namespace reprise::sim
