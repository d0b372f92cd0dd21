#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/store_path.hpp"
#include "properties/ruling_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/mutant_tables.hpp"
#include "sim/mutants/protocol_steps.hpp"

namespace reprise::sim {
namespace {

/// Returns the steps of a commit on `view`, a mutant's store that wraps the real one. The steps
/// keep `view` alive.
template <class View>
Steps over(const std::shared_ptr<View>& view, CommitTarget& target, const CommitContent& content,
           Part part) {
  Steps steps = commit_part(*view, target, content, part);
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

Steps unfenced(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  return over(std::make_shared<Unfenced>(store), target, content, part);
}

Steps by_lists(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  return over(std::make_shared<ByLists>(store), target, content, part);
}

Steps visible_first(Store& store, CommitTarget& target, const CommitContent& content, Part part) {
  const auto view = std::make_shared<Visible>(store, target);
  Steps steps = over(view, target, content, part);
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

// --- mutants -------------------------------------------------------------------------------------

/// Lets a writer change names even after another writer has taken over its lease.
void change_names_without_fence(Policies& policies) { policies.save.commit = asked<unfenced>; }
/// Lists a directory to find out if a name exists, although a listing may be outdated.
void trust_lists(Policies& policies) { policies.save.commit = asked<by_lists>; }
/// Reverses the order of puts: first puts the small object that makes the checkpoint visible, and
/// then the other objects.
void show_before_content(Policies& policies) { policies.save.commit = asked<visible_first>; }

}  // namespace

std::span<const Mutant> store_mutants() {
  static const std::vector<Mutant> all = {
      {"store-fence-not-looked-at",
       "A writer whose lease another one has taken changes names all the same.",
       "SaveSeams::commit",
       "a store without rename, and a lease that is taken before a name changes",
       {judged::kVerdictDisagreement},
       change_names_without_fence},
      {"store-list-trusted",
       "A commit asks a list whether what it wrote is there, and the list lags.",
       "SaveSeams::commit",
       "a store whose lists lag",
       {Code::kIo},
       trust_lists},
      {"store-shown-before-content",
       "The small object that makes a checkpoint visible is put before its content.",
       "SaveSeams::commit",
       "a crash between the two, in a save over the checkpoint that the tracker names",
       {judged::kLastGoodDeleted, Code::kTrackerDangling},
       show_before_content},
  };
  return all;
}

}  // namespace reprise::sim
