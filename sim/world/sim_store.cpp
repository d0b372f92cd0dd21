#include "sim/world/sim_store.hpp"

#include <algorithm>
#include <utility>

#include "core/ports/store_path.hpp"
#include "sim/world/sim_file.hpp"

namespace reprise::sim {
namespace {

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_directory(const Node& node) { return node.kind == NodeKind::kDirectory; }

Entry entry_of(std::string name, const Node& node) {
  return {.name = std::move(name), .directory = is_directory(node), .size = node.content.size()};
}

void sync_tree(Node& node) {
  node.durable_content = node.content;
  node.durable_names = node.names;
  for (const auto& [name, child] : node.names) sync_tree(*child);
}

}  // namespace

SimStore::SimStore(std::string name, StoreCapabilities capabilities)
    : name_(std::move(name)), capabilities_(capabilities) {}

void SimStore::crash() { root_ = after_crash(*root_); }

void SimStore::sync_all() { sync_tree(*root_); }

std::string SimStore::display(const std::string& path) const {
  return path.empty() ? name_ : name_ + "/" + path;
}

void SimStore::fail(Code code, const std::string& what, const std::string& path) const {
  throw Error(code, what, {.file = display(path)});
}

NodePtr SimStore::find(const std::string& path) const {
  check_store_path(path);
  NodePtr node = root_;
  for (std::size_t at = 0; node != nullptr && at < path.size();) {
    const auto slash = std::min(path.find('/', at), path.size());
    const auto child = node->names.find(path.substr(at, slash - at));
    node = child == node->names.end() ? nullptr : child->second;
    at = slash + 1;
  }
  return node;
}

NodePtr SimStore::existing(const char* call, const std::string& path) const {
  auto node = find(path);
  if (!node) fail(Code::kNotFound, std::string(call) + ": No such file or directory", path);
  return node;
}

NodePtr SimStore::existing_directory(const char* call, const std::string& path) const {
  auto node = existing(call, path);
  if (!is_directory(*node)) fail(Code::kNotFound, std::string(call) + ": Not a directory", path);
  return node;
}

std::unique_ptr<ReadFile> SimStore::open(const std::string& path) {
  auto node = existing("open", path);
  if (is_directory(*node)) fail(Code::kIo, "open: this is a directory, not a file", path);
  return open_node(std::move(node), display(path));
}

std::unique_ptr<WriteFile> SimStore::create(const std::string& path) {
  check_store_entry(path);
  const auto parent = existing_directory("open for writing", parent_path(path));
  auto& node = parent->names[name_in(path)];
  if (!node) node = make_node(NodeKind::kFile);
  if (is_directory(*node)) fail(Code::kIo, "open for writing: Is a directory", path);
  node->content.clear();
  return write_node(node, display(path));
}

std::optional<Entry> SimStore::stat(const std::string& path) {
  const auto node = find(path);
  if (!node) return std::nullopt;
  return entry_of(name_in(path), *node);
}

std::vector<Entry> SimStore::list(const std::string& directory) {
  std::vector<Entry> entries;
  for (const auto& [name, node] : existing_directory("list", directory)->names) {
    entries.push_back(entry_of(name, *node));
  }
  return entries;
}

void SimStore::make_directory(const std::string& path) {
  check_store_path(path);
  NodePtr node = root_;
  for (std::size_t at = 0; at < path.size();) {
    const auto slash = std::min(path.find('/', at), path.size());
    auto& child = node->names[path.substr(at, slash - at)];
    if (!child) child = make_node(NodeKind::kDirectory);
    if (!is_directory(*child)) fail(Code::kIo, "mkdir: File exists", path.substr(0, slash));
    node = child;
    at = slash + 1;
  }
}

void SimStore::rename(const std::string& from, const std::string& to) {
  check_store_entry(from);
  check_store_entry(to);
  const auto node = existing("rename", from);
  const auto target = existing_directory("rename", parent_path(to));
  if (const auto there = find(to)) {
    if (is_directory(*there)) {
      fail(Code::kIo, "rename: a directory is in the way; remove or exchange it first", to);
    }
    if (is_directory(*node)) fail(Code::kNotFound, "rename: Not a directory", to);
  }
  if ((to + "/").starts_with(from + "/") && to != from) {
    fail(Code::kIo, "rename: Invalid argument", to);
  }
  existing_directory("rename", parent_path(from))->names.erase(name_in(from));
  target->names[name_in(to)] = node;
}

void SimStore::exchange(const std::string& a, const std::string& b) {
  check_store_entry(a);
  check_store_entry(b);
  for (const auto& path : {a, b}) {
    if (!is_directory(*existing("exchange", path))) {
      fail(Code::kIo, "exchange: this is no directory", path);
    }
  }
  if (!capabilities_.exchange) {
    fail(Code::kUnsupported, "exchange: this file system cannot swap two directories", a);
  }
  if ((a + "/").starts_with(b + "/") || (b + "/").starts_with(a + "/")) {
    fail(Code::kIo, "exchange: Invalid argument", a);
  }
  std::swap(find(parent_path(a))->names[name_in(a)], find(parent_path(b))->names[name_in(b)]);
}

void SimStore::remove(const std::string& path) {
  check_store_entry(path);
  const auto parent = find(parent_path(path));
  if (parent) parent->names.erase(name_in(path));
}

void SimStore::sync_directory(const std::string& directory) {
  const auto node = existing_directory("fsync", directory);
  node->durable_names = node->names;
}

}  // namespace reprise::sim
