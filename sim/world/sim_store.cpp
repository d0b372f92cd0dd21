#include "sim/world/sim_store.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/random.hpp"
#include "core/ports/store_path.hpp"

namespace reprise::sim {
namespace {

/// An open file. `display` is the path shown in messages.
class OpenNode final : public ReadFile {
 public:
  OpenNode(InodePtr node, std::string display)
      : node_(std::move(node)), size_(node_->content.size()), display_(std::move(display)) {}

  std::uint64_t size() const override { return size_; }
  std::optional<Entry> entry() const override {
    return Entry{.name = {}, .size = size_, .identity = node_->number};
  }

  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (out.empty()) return;
    const std::uint64_t end = node_->content.size();
    const std::uint64_t there =
        offset < end ? std::min<std::uint64_t>(end - offset, out.size()) : 0;
    if (there > 0) std::memcpy(out.data(), node_->content.data() + offset, there);
    if (there < out.size()) {
      throw Error(Code::kTornFile,
                  "the file ends " + std::to_string(out.size() - there) +
                      " bytes too early; it was truncated or its writer never finished",
                  {.file = display_, .offset = offset + there});
    }
  }

 private:
  InodePtr node_;
  std::uint64_t size_;
  std::string display_;
};

/// A file that is written. Calls `put` whenever it is synced, and when it is closed.
class WriteNode final : public WriteFile {
 public:
  WriteNode(InodePtr node, std::string display, std::function<void()> put = {})
      : node_(std::move(node)), display_(std::move(display)), put_(std::move(put)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    CHECK(node_ != nullptr, display_);
    if (bytes.empty()) return;
    auto& content = node_->content;
    content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()));
    std::memcpy(content.data() + offset, bytes.data(), bytes.size());
  }

  void sync() override {
    CHECK(node_ != nullptr, display_);
    node_->durable_content = node_->content;
    if (put_) put_();
  }

  void close() override {
    CHECK(node_ != nullptr, display_);
    if (put_) put_();
    node_.reset();
  }

 private:
  InodePtr node_;
  std::string display_;
  std::function<void()> put_;
};

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_directory(const Inode& node) { return node.kind == InodeKind::kDirectory; }

Entry entry_of(std::string name, const Inode& node) {
  return {.name = std::move(name),
          .directory = is_directory(node),
          .size = node.content.size(),
          .identity = node.number};
}

std::uint64_t digest_of(const Inode& node) {
  std::uint64_t digest = mix64(node.names.size(), hash_of(ByteSpan(node.content)));
  for (const auto& [name, child] : node.names) {
    digest = mix64(mix64(digest, hash_of(std::string_view(name))), digest_of(*child));
  }
  return digest;
}

void sync_tree(Inode& node) {
  node.durable_content = node.content;
  node.durable_names = node.names;
  node.unsynced.clear();
  for (const auto& [name, child] : node.names) sync_tree(*child);
}

}  // namespace

SimStore::SimStore(std::string name, StoreCapabilities capabilities, std::uint64_t seed)
    : name_(std::move(name)), capabilities_(capabilities), seed_(seed) {}

void SimStore::crash() {
  if (capabilities_.renames) root_ = after_crash(*root_, [](const auto&) { return false; });
}

void SimStore::crash_keeping_some(std::uint64_t seed) {
  if (!capabilities_.renames) return;
  Stream fate(seed);
  root_ = after_crash(*root_, [&fate](const auto&) { return fate.below(2) == 1; });
}

SimStore SimStore::crashed(const Survives& survives) const {
  SimStore left(name_, capabilities_, seed_);
  left.root_ = after_crash(*root_, survives);
  return left;
}

std::uint64_t SimStore::digest() const { return digest_of(*root_); }

void SimStore::sync_all() { sync_tree(*root_); }

std::string SimStore::display(const std::string& path) const {
  return path.empty() ? name_ : name_ + "/" + path;
}

void SimStore::fail(Code code, const std::string& what, const std::string& path) const {
  throw Error(code, what, {.file = display(path)});
}

InodePtr SimStore::find(const std::string& path) const {
  check_store_path(path);
  InodePtr node = root_;
  for (std::size_t at = 0; node != nullptr && at < path.size();) {
    const auto slash = std::min(path.find('/', at), path.size());
    const auto child = node->names.find(path.substr(at, slash - at));
    node = child == node->names.end() ? nullptr : child->second;
    at = slash + 1;
  }
  return node;
}

InodePtr SimStore::existing(const char* call, const std::string& path) const {
  auto node = find(path);
  if (!node) fail(Code::kNotFound, std::string(call) + ": No such file or directory", path);
  return node;
}

InodePtr SimStore::existing_directory(const char* call, const std::string& path) const {
  auto node = existing(call, path);
  if (!is_directory(*node)) fail(Code::kNotFound, std::string(call) + ": Not a directory", path);
  return node;
}

void SimStore::set_name(const InodePtr& directory, const std::string& name, const InodePtr& node) {
  auto& names = directory->names;
  if (capabilities_.lists_lag) {
    const auto before = names.find(name);
    changes_.push_back({directory, name, before == names.end() ? nullptr : before->second});
    if (changes_.size() > kListLag) changes_.pop_front();
  }
  if (capabilities_.renames) directory->unsynced.push_back({{name, node}});
  if (node) {
    names[name] = node;
  } else {
    names.erase(name);
  }
}

void SimStore::join_last(const InodePtr& a, const InodePtr& b) {
  if (a != b || !capabilities_.renames) return;
  const NameStep last = std::move(a->unsynced.back());
  a->unsynced.pop_back();
  a->unsynced.back().insert(a->unsynced.back().end(), last.begin(), last.end());
}

Names SimStore::listed(const InodePtr& directory) {
  Names names = directory->names;
  if (changes_.empty()) return names;
  auto missed = mix64(seed_, ++lists_) % (changes_.size() + 1);
  for (auto last = changes_.rbegin(); missed > 0; ++last, --missed) {
    if (last->directory != directory) continue;
    if (last->before) {
      names[last->name] = last->before;
    } else {
      names.erase(last->name);
    }
  }
  return names;
}

std::unique_ptr<ReadFile> SimStore::open(const std::string& path) {
  auto node = existing("open", path);
  if (is_directory(*node)) fail(Code::kIo, "open: this is a directory, not a file", path);
  return std::make_unique<OpenNode>(std::move(node), display(path));
}

std::unique_ptr<WriteFile> SimStore::create(const std::string& path) {
  check_store_entry(path);
  const auto parent = existing_directory("open for writing", parent_path(path));
  const auto there = parent->names.find(name_in(path));
  const bool exists = there != parent->names.end();
  if (exists && is_directory(*there->second)) {
    fail(Code::kIo, "open for writing: Is a directory", path);
  }
  if (!capabilities_.renames) {
    const InodePtr object = make_inode(InodeKind::kFile);
    return std::make_unique<WriteNode>(
        object, display(path),
        [this, parent, name = name_in(path), object] { set_name(parent, name, object); });
  }
  if (!exists) set_name(parent, name_in(path), make_inode(InodeKind::kFile));
  const InodePtr& node = parent->names[name_in(path)];
  node->content.clear();
  return std::make_unique<WriteNode>(node, display(path));
}

std::optional<Entry> SimStore::stat(const std::string& path) {
  const auto node = find(path);
  if (!node) return std::nullopt;
  return entry_of(name_in(path), *node);
}

std::vector<Entry> SimStore::list(const std::string& directory) {
  std::vector<Entry> entries;
  for (const auto& [name, node] : listed(existing_directory("list", directory))) {
    entries.push_back(entry_of(name, *node));
  }
  return entries;
}

void SimStore::make_directory(const std::string& path) {
  check_store_path(path);
  InodePtr node = root_;
  for (std::size_t at = 0; at < path.size();) {
    const auto slash = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, slash - at);
    if (!node->names.contains(name)) set_name(node, name, make_inode(InodeKind::kDirectory));
    const InodePtr child = node->names[name];
    if (!is_directory(*child)) fail(Code::kIo, "mkdir: File exists", path.substr(0, slash));
    node = child;
    at = slash + 1;
  }
}

void SimStore::require_allowed(const char* call, const NameChange& change) const {
  check_store_entry(change.staged);
  check_store_entry(change.name);
  if (change.by != nullptr) leases_.require_held(*change.by, display(change.name));
  const bool of_that_name = change.staged.starts_with(change.name + ".") &&
                            change.staged.find('/', change.name.size()) == std::string::npos;
  if (!capabilities_.renames && !of_that_name) {
    fail(Code::kUnsupported, std::string(call) + ": this store can't rename", change.staged);
  }
}

void SimStore::move(const std::string& from, const std::string& to) {
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
  const auto source = existing_directory("rename", parent_path(from));
  set_name(source, name_in(from), nullptr);
  set_name(target, name_in(to), node);
  join_last(source, target);
}

void SimStore::publish(const NameChange& change) {
  require_allowed("publish", change);
  move(change.staged, change.name);
}

void SimStore::put_aside(const NameChange& change) {
  require_allowed("put aside", change);
  move(change.name, change.staged);
}

void SimStore::replace(const NameChange& change) {
  const std::string& a = change.staged;
  const std::string& b = change.name;
  require_allowed("exchange", change);
  for (const auto& path : {a, b}) {
    if (!is_directory(*existing("exchange", path))) {
      fail(Code::kIo, "exchange: this is not a directory", path);
    }
  }
  if (!capabilities_.exchange) {
    fail(Code::kUnsupported, "exchange: this file system cannot swap two directories", a);
  }
  if ((a + "/").starts_with(b + "/") || (b + "/").starts_with(a + "/")) {
    fail(Code::kIo, "exchange: Invalid argument", a);
  }
  const InodePtr staged = find(a);
  const InodePtr above_a = find(parent_path(a));
  const InodePtr above_b = find(parent_path(b));
  set_name(above_a, name_in(a), find(b));
  set_name(above_b, name_in(b), staged);
  join_last(above_a, above_b);
}

void SimStore::remove(const std::string& path) {
  check_store_entry(path);
  const auto parent = find(parent_path(path));
  if (parent && parent->names.contains(name_in(path))) set_name(parent, name_in(path), nullptr);
}

bool SimStore::remove_empty(const std::string& directory) {
  if (!find(directory)) return true;
  if (!existing_directory("rmdir", directory)->names.empty()) return false;
  remove(directory);
  return true;
}

std::unique_ptr<StoreLock> SimStore::lock(const std::string& path) {
  check_store_entry(path);
  const Names& beside = existing_directory("lock", parent_path(path))->names;
  // If a tree was copied into the store from another one, names in the parent directory of `path`
  // may contain tokens of the other store's locks. A new lock must not reuse these tokens.
  const auto is_used = [&beside](const std::string& token) {
    return std::any_of(beside.begin(), beside.end(),
                       [&token](const auto& entry) { return entry.first.ends_with("-" + token); });
  };
  return leases_.take({path, display(path)}, capabilities_, is_used);
}

std::optional<std::string> SimStore::lock_holder(const std::string& path) {
  check_store_entry(path);
  return leases_.is_held(path) ? std::optional<std::string>("another writer") : std::nullopt;
}

void SimStore::sync_directory(const std::string& directory) {
  const auto node = existing_directory("fsync", directory);
  node->durable_names = node->names;
  node->unsynced.clear();
}

}  // namespace reprise::sim
