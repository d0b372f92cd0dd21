#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "core/base/codes.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/store_path.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/protocol_steps.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

/// Returns the steps of a commit on `view`, a mutant's store that wraps the real one. The steps
/// keep `view` alive.
template <class View>
Steps over(const std::shared_ptr<View>& view, CommitTarget& target, const CommitContent& content,
           Role role) {
  Steps steps = commit_part(*view, target, content, role);
  for (ProtocolStep& step : steps) step.run = [view, run = std::move(step.run)] { run(); };
  return steps;
}

class Unfenced final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void publish(const NameChange& change) override {
    PassingStore::publish({change.staged, change.name});
  }
  void replace(const NameChange& change) override {
    PassingStore::replace({change.staged, change.name});
  }
  void put_aside(const NameChange& change) override {
    PassingStore::put_aside({change.staged, change.name});
  }
};

Steps unfenced(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  return over(std::make_shared<Unfenced>(store), target, content, role);
}

const Registration kStoreFenceNotLookedAt({
    "store-fence-not-looked-at",
    "A writer whose lease has been taken over still renames objects.",
    "SaveSeams::commit",
    "a store without rename, and a lease that is taken over before a name changes",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.save.commit = asked<unfenced>; },
});

class ByLists final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::optional<Entry> stat(const std::string& path) override {
    if (!PassingStore::stat(parent_path(path))) return std::nullopt;
    for (Entry& entry : list(parent_path(path))) {
      if (join_path(parent_path(path), entry.name) == path) return std::move(entry);
    }
    return std::nullopt;
  }
};

Steps by_lists(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  return over(std::make_shared<ByLists>(store), target, content, role);
}

const Registration kStoreListTrusted({
    "store-list-trusted",
    "The commit lists the store to check that its objects are there, but listings lag behind "
    "writes.",
    "SaveSeams::commit",
    "a store with lagging listings",
    {Code::kIo},
    [](Policies& policies) { policies.save.commit = asked<by_lists>; },
});

/// Redirects access to files of the staged tree to the checkpoint's final, visible directory.
class Visible final : public PassingStore {
 public:
  Visible(Store& inner, const CommitTarget& target) : PassingStore(inner), target_(target) {}
  bool is_early = false;

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return PassingStore::open(seen(path));
  }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    return PassingStore::create(seen(path));
  }
  std::optional<Entry> stat(const std::string& path) override {
    return PassingStore::stat(seen(path));
  }
  void sync_directory(const std::string& path) override {
    PassingStore::sync_directory(seen(path));
  }

 private:
  std::string seen(const std::string& path) const {
    const std::string staged = target_.saving();
    if (!is_early || !path.starts_with(staged)) return path;
    return target_.directory + path.substr(staged.size());
  }

  const CommitTarget& target_;
};

Steps visible_first(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  const auto view = std::make_shared<Visible>(store, target);
  Steps steps = over(view, target, content, role);
  const auto first = named(steps, "common_state");
  const auto swap_in = named(steps, "swap_in");
  if (first == steps.end()) return steps;
  const auto sets = [view](ProtocolStep& step, bool early) {
    step.run = [view, early, run = std::move(step.run)] {
      run();
      view->is_early = early;
    };
  };
  sets(*swap_in, true);
  sets(*named(steps, "read_back"), false);
  std::rotate(first, swap_in, swap_in + 1);
  return steps;
}

const Registration kStoreShownBeforeContent({
    "store-shown-before-content",
    "The small object that makes a checkpoint visible is written before the checkpoint's "
    "content.",
    "SaveSeams::commit",
    "a crash between the two, in a save over the checkpoint that the tracker names",
    {judged::kLastGoodDeleted, Code::kTrackerDangling},
    [](Policies& policies) { policies.save.commit = asked<visible_first>; },
});

/// Removes every unfinished directory of the iteration, or every unpublished tracker, when it
/// clears what dead writers left.
template <const std::string_view& Suffix>
Steps clears_all(Store& store, CommitTarget& target) {
  Steps steps = prepare_protocol(store, target);
  const auto clear = named(steps, "clear");
  clear->run = [&store, &target, run = std::move(clear->run)] {
    run();
    const std::string tracker = join_path(parent_path(target.directory), std::string(kTrackerFile));
    for (const std::string& path : {target.directory, tracker}) {
      for (const Aside& aside : asides_of(store, path)) {
        if (aside.suffix == Suffix) store.remove(aside.path);
      }
    }
  };
  return steps;
}

const Registration kStoreLaterWriterCleared({
    "store-later-writer-cleared",
    "A writer whose lease has expired comes back and clears the unfinished directory of the "
    "writer that took over.",
    "SaveSeams::prepare",
    "a store without rename, and a lease that another writer takes over before the first one "
    "clears",
    {judged::kProtocol},
    [](Policies& policies) { policies.save.prepare = asked<clears_all<kSavingSuffix>>; },
});

const Registration kStoreLaterWriterClearedTracker({
    "store-later-writer-cleared/tracker",
    "A writer whose lease has expired comes back and removes the tracker that the writer that "
    "took over is about to publish.",
    "SaveSeams::prepare",
    "a store without rename, and a lease that another writer takes over before the first one "
    "clears",
    {judged::kProtocol},
    [](Policies& policies) { policies.save.prepare = asked<clears_all<kNextSuffix>>; },
});

void trust(Store& /*store*/, const std::string& /*path*/, std::span<const WrittenPart> /*parts*/,
           MutableByteSpan /*room*/) {}

const Registration kPayloadNotReadBack({
    "payload-not-read-back",
    "The save trusts the store that its payload was written and removes the previous "
    "checkpoint.",
    "SaveSeams::stage.confirm",
    "keep 1 or a save over the same step, and a store that reports a write that did not happen",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.save.stage.confirm = asked<trust>; },
});

void confirm_length(Store& store, const std::string& path, std::span<const WrittenPart> parts,
                    MutableByteSpan /*room*/) {
  std::uint64_t written = 0;
  for (const WrittenPart& part : parts) written += part.bytes;
  const auto found = store.stat(path);
  if (!found || found->size != written) throw Error(Code::kIo, "too short", {.file = path});
}

const Registration kPayloadNotReadBackLengthAlone({
    "payload-not-read-back/length-alone",
    "The save checks only the length of its payload before it removes the previous checkpoint.",
    "SaveSeams::stage.confirm",
    "keep 1 or a save over the same step, and a store that loses bytes but keeps the file's "
    "length",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.save.stage.confirm = asked<confirm_length>; },
});

/// A file that reads back as it was written, whatever the store did with it.
class ToldFile final : public ReadFile {
 public:
  explicit ToldFile(Bytes content) : content_(std::move(content)) {}
  std::uint64_t size() const override { return content_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  Bytes content_;
};

/// Passes on what is written, and notes it.
class NotedFile final : public WriteFile {
 public:
  NotedFile(std::unique_ptr<WriteFile> inner, Bytes& noted)
      : inner_(std::move(inner)), noted_(noted) {}
  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    inner_->write_at(offset, bytes);
    noted_.resize(std::max<std::size_t>(noted_.size(), offset + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), noted_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void sync() override { inner_->sync(); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<WriteFile> inner_;
  Bytes& noted_;
};

/// Answers questions about the file `name` with what was written to it, without asking the store.
class Trusting final : public PassingStore {
 public:
  Trusting(Store& inner, std::string_view name) : PassingStore(inner), name_(name) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    if (noted_.empty() || !is_it(path)) return PassingStore::open(path);
    return std::make_unique<ToldFile>(noted_);
  }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    if (!is_it(path)) return PassingStore::create(path);
    return std::make_unique<NotedFile>(PassingStore::create(path), noted_);
  }
  std::optional<Entry> stat(const std::string& path) override {
    auto entry = PassingStore::stat(path);
    if (entry && !noted_.empty() && is_it(path)) entry->size = noted_.size();
    return entry;
  }

 private:
  bool is_it(const std::string& path) const {
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto aside = aside_name(name);
    return (aside ? aside->base : name) == name_;
  }

  std::string_view name_;
  Bytes noted_;
};

template <const std::string_view& Name>
Steps trusting(Store& store, CommitTarget& target, const CommitContent& content, Role role) {
  return over(std::make_shared<Trusting>(store, Name), target, content, role);
}

/// Commits a small file without reading it back.
template <const std::string_view& Name>
void trust_file(Policies& policies) {
  policies.save.commit = asked<trusting<Name>>;
}

const Registration kSmallFileNotReadBackBackend({
    "small-file-not-read-back/backend",
    "The save trusts the store that metadata.json was written and does not read it back.",
    "SaveSeams::commit",
    "a store that reports a write that did not happen",
    {judged::kVerdictDisagreement},
    trust_file<kBackendFile>,
});

const Registration kSmallFileNotReadBackCommon({
    "small-file-not-read-back/common",
    "The save trusts the store that common.pt was written and does not read it back.",
    "SaveSeams::commit",
    "a store that reports a write that did not happen",
    {judged::kVerdictDisagreement},
    trust_file<kCommonFile>,
});

const Registration kSmallFileNotReadBackMetadata({
    "small-file-not-read-back/metadata",
    "The save trusts the store that .metadata was written and does not read it back.",
    "SaveSeams::commit",
    "a store that reports a write that did not happen",
    {judged::kVerdictDisagreement},
    trust_file<kMetadataFile>,
});

const Registration kSmallFileNotReadBackTracker({
    "small-file-not-read-back/tracker",
    "The save trusts the store that the tracker was written and does not read it back.",
    "SaveSeams::commit",
    "a store that reports a write that did not happen",
    {judged::kVerdictDisagreement},
    trust_file<kTrackerFile>,
});

}  // namespace
}  // namespace reprise::sim
