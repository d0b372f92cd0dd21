#pragma once
// Defines ports that report every point at which the rank can be killed: each begin and end that
// the engine traces, and each call in between that changes the store. A tree is removed one name at
// a time, and each removal is durable at once. This models the worst possible file system.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/ports/store_path.hpp"
#include "core/save/phases.hpp"
#include "reprise/ports.hpp"

namespace reprise::sim {

/// A point of a run at which a rank can be killed. Examples of its text are "commit/tracker begins"
/// and "commit/tracker: publish".
struct MortalPlace {
  std::string phase;
  std::string step;
  std::string what;  ///< "begins", "ends", or the name of a call

  std::string text() const {
    const std::string where = step.empty() ? phase : phase + "/" + step;
    return what == "begins" || what == "ends" ? where + " " + what : where + ": " + what;
  }
};

/// Whether a call is really made (kDone), or only reports success (kClaimed).
enum class Deed : std::uint8_t { kDone, kClaimed };

class MortalPorts {
 public:
  /// Calls `passes` before each store call that changes something, and after each begin or end in
  /// the trace. If `reads` is true, also calls it before each store call that changes nothing.
  MortalPorts(const Ports& inner, std::function<Deed(const MortalPlace&)> passes,
              bool reads = false)
      : passes_(std::move(passes)),
        store_(
            inner.store, [this](const char* call) { return pass(call); },
            [this, reads](const char* call) {
              if (reads) pass(call);
            }),
        trace_(inner.trace, *this),
        ports_{store_, inner.fabric, inner.device, inner.tasks, trace_} {}
  MortalPorts(const MortalPorts&) = delete;
  MortalPorts& operator=(const MortalPorts&) = delete;

  const Ports& ports() const { return ports_; }

 private:
  using Pass = std::function<Deed(const char*)>;

  class MortalFile final : public WriteFile {
   public:
    MortalFile(std::unique_ptr<WriteFile> file, Pass pass)
        : file_(std::move(file)), pass_(std::move(pass)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      pass_("write");
      file_->write_at(offset, bytes);
    }
    void sync() override {
      pass_("sync");
      file_->sync();
    }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<WriteFile> file_;
    Pass pass_;
  };

  class MortalStore final : public Store {
   public:
    MortalStore(Store& store, Pass pass, std::function<void(const char*)> reads)
        : store_(store), pass_(std::move(pass)), reads_(std::move(reads)) {}

    StoreCapabilities capabilities() const override { return store_.capabilities(); }
    std::unique_ptr<ReadFile> open(const std::string& path) override {
      reads_("open");
      return store_.open(path);
    }
    std::unique_ptr<WriteFile> create(const std::string& path) override {
      pass_("create");
      return std::make_unique<MortalFile>(store_.create(path), pass_);
    }
    std::optional<Entry> stat(const std::string& path) override {
      reads_("stat");
      return store_.stat(path);
    }
    std::vector<Entry> list(const std::string& directory) override {
      reads_("list");
      return store_.list(directory);
    }
    void make_directory(const std::string& path) override {
      pass_("make_directory");
      store_.make_directory(path);
    }
    void publish(const NameChange& change) override {
      if (pass_("publish") == Deed::kDone) store_.publish(change);
    }
    void replace(const NameChange& change) override {
      if (pass_("replace") == Deed::kDone) store_.replace(change);
    }
    void put_aside(const NameChange& change) override {
      if (pass_("put_aside") == Deed::kDone) store_.put_aside(change);
    }
    void remove(const std::string& path) override {
      const auto entry = store_.stat(path);
      if (!entry) return;
      if (entry->directory) {
        std::vector<Entry> inside = store_.list(path);
        std::reverse(inside.begin(), inside.end());  // so that .metadata is removed last
        for (const auto& inner : inside) {
          remove(join_path(path, inner.name));
          store_.sync_directory(path);
        }
      }
      pass_("remove");
      store_.remove(path);
    }
    void sync_directory(const std::string& directory) override {
      pass_("sync_directory");
      store_.sync_directory(directory);
    }
    std::unique_ptr<StoreLock> lock(const std::string& path) override {
      reads_("lock");
      return store_.lock(path);
    }
    std::string display(const std::string& path) const override { return store_.display(path); }

   private:
    Store& store_;
    Pass pass_;
    std::function<void(const char*)> reads_;
  };

  class MortalTrace final : public Trace {
   public:
    MortalTrace(Trace& inner, MortalPorts& owner) : inner_(inner), owner_(owner) {}
    void event(const TraceEvent& event) override {
      inner_.event(event);
      owner_.phase(event);
    }

   private:
    Trace& inner_;
    MortalPorts& owner_;
  };

  void phase(const TraceEvent& event) {
    const bool known = [&event] {
      for (const auto list : {phases_of_save(), phases_of_load()}) {
        for (const auto phase : list) {
          if (phase == event.phase) return true;
        }
      }
      return false;
    }();
    if (!known) return;
    const MortalPlace place{std::string(event.phase), event.detail,
                            event.moment == Moment::kBegin ? "begins" : "ends"};
    if (event.moment == Moment::kBegin) {
      open_.emplace_back(place.phase, place.step);
    } else {
      // Phases overlap. For example, the vote may begin while background work still writes. The
      // phase that ends is therefore not always the one that began last.
      const auto begun =
          std::find(open_.rbegin(), open_.rend(), std::pair(place.phase, place.step));
      open_.erase(std::next(begun).base());
    }
    passes_(place);
  }
  Deed pass(const char* call) {
    MortalPlace place{"nowhere", "", call};
    if (!open_.empty()) std::tie(place.phase, place.step) = open_.back();
    return passes_(place);
  }

  std::function<Deed(const MortalPlace&)> passes_;
  std::vector<std::pair<std::string, std::string>> open_;  ///< phases that have begun but not ended
  MortalStore store_;
  MortalTrace trace_;
  Ports ports_;
};

}  // namespace reprise::sim
