#include "core/checkpoint/checkpoints_below.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include "core/base/natural_order.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/stored_form.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr int kSearchDepthMax = 16;

bool is_file_of_torch_save(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEnds{".pt", ".pth", ".ckpt"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

class Search {
 public:
  explicit Search(Store& store) : store_(store) {}

  CheckpointsBelow below(const std::string& root) {
    if (!look_through(root, 0)) found_.beside.push_back({root, "a directory"});
    std::ranges::sort(found_.checkpoints, in_natural_order);
    std::ranges::sort(found_.beside, in_natural_order, &BesideCheckpoints::path);
    return std::move(found_);
  }

 private:
  /// Returns true if there is a checkpoint in the directory or below it. What lies in a directory
  /// without any is not listed.
  bool look_through(const std::string& directory, int depth) {
    const auto form = form_in(store_, directory);
    const std::string name = directory.substr(directory.rfind('/') + 1);
    if (form == StoredForm::kTorchCheckpointing && name.starts_with("tmp_")) {
      unfinished_.insert(directory);
      return false;
    }
    if (form) found_.checkpoints.push_back(directory);
    const bool whole_files = form == StoredForm::kSafetensors || form == StoredForm::kTorchSave;
    if (form && !whole_files) return true;
    std::vector<BesideCheckpoints> beside;
    bool any = form.has_value();
    for (const Entry& entry : store_.list(directory)) {
      const std::string path = join_path(directory, entry.name);
      if (entry.directory) {
        const auto aside = aside_name(entry.name);
        std::string why = why_passed_over(entry, depth);
        const bool holds = why.empty() && can_look_through(path, depth + 1);
        any = any || holds;
        if (unfinished_.contains(path)) why = "left by a save that did not end";
        if (holds || unread_.contains(path)) continue;
        // We tell what a save left even where there is nothing else.
        auto& list = aside || unfinished_.contains(path) ? found_.beside : beside;
        list.push_back({path, why.empty() ? "a directory" : why});
      } else if (form != StoredForm::kTorchSave && is_file_of_torch_save(entry.name)) {
        found_.checkpoints.push_back(path);
        any = true;
      } else if (!form) {
        beside.push_back({path, "a file"});
      }
    }
    if (any) std::ranges::move(beside, std::back_inserter(found_.beside));
    return any;
  }

  /// The same for a directory that perhaps can't be read, which is then in the result.
  bool can_look_through(const std::string& directory, int depth) {
    try {
      return look_through(directory, depth);
    } catch (const Error& error) {
      unread_.insert(directory);
      found_.beside.push_back(
          {directory, "a directory that can't be read: " + error.message(), true});
      return false;
    }
  }

  static std::string why_passed_over(const Entry& entry, int depth) {
    if (entry.link) return "a link";
    if (depth == kSearchDepthMax) return "a directory that is nested too deeply";
    const auto aside = aside_name(entry.name);
    if (!aside) return "";
    return aside->suffix == kReplacedSuffix ? "an older checkpoint that was set aside"
                                            : "left by a save or a removal that did not end";
  }

  Store& store_;
  CheckpointsBelow found_;
  std::set<std::string> unread_;
  std::set<std::string> unfinished_;  ///< of torch_checkpointing, which renames when it is done
};

}  // namespace

CheckpointsBelow checkpoints_below(Store& store, const std::string& root) {
  return Search(store).below(root);
}

}  // namespace reprise
