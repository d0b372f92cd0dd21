#include "driver/watch/work_tree.hpp"

#include <algorithm>
#include <map>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestShown = 4;

enum class Taken : std::uint8_t { kCopied, kLinked, kLeftOut };

bool lists(const std::vector<std::string>& entries, const fs::path& relative) {
  return std::ranges::any_of(entries, [&](const std::string& entry) {
    return (fs::path(entry) / "").lexically_normal().parent_path() == relative;
  });
}

/// True if the path is `folder` or lies below it.
bool is_within(const fs::path& path, const fs::path& folder) {
  const auto [at, end] = std::ranges::mismatch(folder, path);
  return at == folder.end();
}

Taken taken(const WorkSource& source, const fs::path& relative) {
  const fs::path path = source.directory / relative;
  if (lists(source.without, relative) || path.filename() == "__pycache__") return Taken::kLeftOut;
  const bool environment = fs::exists(path / "pyvenv.cfg") || fs::exists(path / "conda-meta");
  const bool linked = lists(source.links, relative) || path.filename() == ".git" || environment;
  return linked ? Taken::kLinked : Taken::kCopied;
}

struct Amount {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

/// Adds what copying the folder takes, by the entries at the top; stops above the limits.
void measure(const WorkSource& source, const fs::path& relative,
             std::map<std::string, Amount>& by_top, Amount& all) {
  for (const auto& entry : fs::directory_iterator(source.directory / relative)) {
    const fs::path own = relative / entry.path().filename();
    if (taken(source, own) != Taken::kCopied || entry.is_symlink()) continue;
    if (entry.is_directory()) {
      measure(source, own, by_top, all);
    } else if (entry.is_regular_file()) {
      const std::uint64_t bytes = entry.file_size();
      for (Amount* amount : {&by_top[own.begin()->string()], &all}) {
        amount->bytes += bytes;
        ++amount->files;
      }
    }
    // The names of the largest entries are of use, not the size of everything.
    if (all.files > 4 * source.files_max) return;
  }
}

[[noreturn]] void refuse(const WorkSource& source, const std::map<std::string, Amount>& by_top,
                         const Amount& all) {
  std::vector<std::pair<std::string, Amount>> largest(by_top.begin(), by_top.end());
  std::ranges::stable_sort(largest, std::ranges::greater(),
                           [](const auto& entry) { return entry.second.bytes; });
  std::vector<std::string> shown;
  for (const auto& [name, amount] : largest) {
    if (shown.size() == kLargestShown) break;
    shown.push_back(name + " (" + human_bytes(amount.bytes) + ", " + counted(amount.files, "file") +
                    ")");
  }
  throw Error(Code::kUsage,
              "each life runs in a copy of the working directory, and " + human_bytes(all.bytes) +
                  " in " + counted(all.files, "file") + " are too much to copy; the largest are " +
                  join(shown, ", ") +
                  ". Name with --link what the command only reads, with --without what it does "
                  "not need, or run it with --in-place",
              {.file = source.directory.string()});
}

void copy_link(const fs::path& from, const fs::path& to, const fs::path& root) {
  const fs::path aims = fs::read_symlink(from);
  const fs::path absolute = (from.parent_path() / aims).lexically_normal();
  const bool inside = aims.is_relative() && is_within(absolute, root);
  fs::create_symlink(inside ? aims : absolute, to);
}

void copy_below(const WorkSource& source, const fs::path& relative, const fs::path& target) {
  fs::create_directory(target / relative);
  for (const auto& entry : fs::directory_iterator(source.directory / relative)) {
    const fs::path own = relative / entry.path().filename();
    const Taken how = taken(source, own);
    if (how == Taken::kLeftOut) continue;
    if (how == Taken::kLinked) {
      fs::create_symlink(entry.path(), target / own);
    } else if (entry.is_symlink()) {
      copy_link(entry.path(), target / own, source.directory);
    } else if (entry.is_directory()) {
      copy_below(source, own, target);
    } else if (entry.is_regular_file()) {
      fs::copy_file(entry.path(), target / own);
    }
  }
}

void require_links(const WorkSource& source) {
  for (const auto& entry : source.links) {
    const fs::path path(entry);
    const bool inside = path.is_relative() && !entry.empty() &&
                        is_within((source.directory / path).lexically_normal(), source.directory);
    if (inside && fs::exists(fs::symlink_status(source.directory / path))) continue;
    throw Error(Code::kUsage,
                "--link: is not in the working directory " + source.directory.string(),
                {.file = entry});
  }
}

/// Returns the path as the life needs it.
std::string path_in(const WorkSource& source, const fs::path& target, const std::string& word) {
  const fs::path path(word);
  if (word.starts_with("..") && fs::exists(source.directory / path)) {
    const fs::path absolute = (source.directory / path).lexically_normal();
    return is_within(absolute, source.directory) ? path_in(source, target, absolute.string())
                                                 : absolute.string();
  }
  if (!path.is_absolute() || !is_within(path, source.directory)) return word;
  const fs::path relative = path.lexically_relative(source.directory);
  fs::path above;
  for (const auto& part : relative) {
    above /= part;
    if (fs::exists(source.directory / above) && taken(source, above) == Taken::kLinked) return word;
  }
  return (target / relative).lexically_normal().string();
}

std::string replaced(std::string word, const std::string& name, const std::string& value) {
  for (auto at = word.find(name); at != std::string::npos;
       at = word.find(name, at + value.size())) {
    word.replace(at, name.size(), value);
  }
  return word;
}

}  // namespace

void copy_work_tree(const WorkSource& source, const fs::path& target) {
  require_links(source);
  std::map<std::string, Amount> by_top;
  Amount all;
  measure(source, "", by_top, all);
  if (all.bytes > source.bytes_max || all.files > source.files_max) refuse(source, by_top, all);
  const std::uint64_t space = fs::space(target.parent_path()).available;
  if (all.bytes > space) {
    throw Error(Code::kNoSpace,
                "the copy of the working directory takes " + human_bytes(all.bytes) + ", and " +
                    human_bytes(space) + " are free",
                {.file = target.string()});
  }
  copy_below(source, "", target);
}

std::vector<std::string> words_in(const WorkSource& source, const fs::path& target,
                                  const std::vector<std::string>& words) {
  std::vector<std::string> own;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    std::string shown = source.in_place ? word : path_in(source, target, word);
    if (!source.in_place && shown == word && equals != std::string::npos) {
      shown = word.substr(0, equals + 1) + path_in(source, target, word.substr(equals + 1));
    }
    own.push_back(replaced(std::move(shown), "{work}", target.string()));
  }
  return own;
}

}  // namespace reprise::driver
